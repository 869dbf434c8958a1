package simulated

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// HistoryHour is the hour of the day, in Santo Domingo, at which the central bank publishes the reference rate. All
// rates of History have this time of day.
const HistoryHour = 17

// Rates are in ten-thousandths of a peso, changes of rates in parts per million. A level is the market rate of a
// currency. A step is one change of the market (Market.Step). During a silence the site of an institution gives no
// rates.
const (
	peso                = 10_000
	stepMax             = 3_000               // largest change of a level or of a quote in one step (0.3 %)
	noiseMax            = 1_000               // largest random change in one step; see moveLevels
	reversion           = 20                  // divisor: in one step, a level returns 1/20 of the way to its initial level
	offsetMax           = 2_000               // largest distance of an institution from the market level
	belowPercent        = 73                  // percent of a bank's spread that lies below quoteState.middle
	commercialTick      = 500                 // commercial prices are multiples of 5 centavos
	followOdds          = 2                   // an institution follows the market in 1 of 2 steps
	hideOdds            = 100                 // 1 of 100 changed quotes lacks a side
	silenceInterval     = 60 * 24 * time.Hour // mean time between two silences of an institution
	silenceMin          = 27 * time.Hour      // longer than the default lifetime of a rate, so that rates expire
	silenceSpan         = 24 * time.Hour      // a silence takes at most silenceMin + silenceSpan
	referenceDaysMax    = 420                 // days in the workbooks of reference rates
	referenceDaysBefore = 40                  // business days in these workbooks before the first step
	marketStream        = 0x7461736172642131  // second seed of the random generator
	millionth           = 1_000_000
)

// Market is a simulated market with the institutions of the built-in catalogue. The market has one level for each
// currency, which moves around the rate of mid-2026. In some of the steps, at random, an institution moves its quotes
// towards the levels, by at most 0.3 %. Sometimes a side is missing. Sometimes a site is silent for a day or two, so
// that its rates expire. Buy never exceeds sell, and rates stay within the plausible ranges of the catalogue.
//
// Everything depends only on the seed and the calls. A Market is safe for concurrent use.
type Market struct {
	mu           sync.Mutex
	random       *rand.Rand
	levels       []marketLevel
	institutions []institutionState
	last         time.Time // time of the newest step
	sources      []sourceQuotes
}

type marketLevel struct {
	levelSpec
	current int64
}

type institutionState struct {
	institution   string
	dating        dating
	quotes        []quoteState
	pricedAt      time.Time      // time of the newest price change
	effective     engine.Date    // date of the reference rates, if dating is businessDays
	silentUntil   time.Time      // the site is silent before this time
	referenceDays []referenceDay // the newest days, if dating is businessDays; oldest first
}

type quoteState struct {
	code      string
	currency  int // index in Market.levels
	channel   engine.Channel
	kind      engine.Kind
	published publishedSides
	spread    int64
	tick      int64 // prices are multiples of tick
	offset    int64 // distance from the level, in parts per million
	middle    int64 // rate of the institution between buy and sell; it follows the level
	buy, sell int64 // 0 = not published
}

// referenceDay has the quotes of the central bank for one business day.
type referenceDay struct {
	date   engine.Date
	quotes []engine.Observation // in the order of institutionState.quotes
}

// NewMarket returns the market of a seed.
func NewMarket(seed uint64) *Market {
	m := &Market{random: rand.New(rand.NewPCG(seed, marketStream))}
	for _, spec := range levelSpecs() {
		m.levels = append(m.levels, marketLevel{spec, spec.level})
	}
	for _, spec := range quoteSpecs() {
		if n := len(m.institutions); n == 0 || m.institutions[n-1].institution != spec.institution {
			m.institutions = append(m.institutions, institutionState{institution: spec.institution, dating: spec.dating})
		}
		inst := &m.institutions[len(m.institutions)-1]
		for _, code := range spec.currencies {
			inst.quotes = append(inst.quotes, m.newQuote(&spec, code))
		}
	}
	m.sources = m.assignQuotes(source.DefaultSet())
	return m
}

func (m *Market) newQuote(spec *quoteSpec, code string) quoteState {
	index := 0
	for m.levels[index].code != code {
		index++
	}
	level := &m.levels[index]
	q := quoteState{
		code: code, currency: index, channel: spec.channel, kind: engine.Commercial, published: spec.published,
		spread: spec.spread * level.spreadPermille / 1000, tick: commercialTick, offset: m.randomBetween(-offsetMax, offsetMax),
	}
	if spec.institution == "bcrd" {
		q.kind, q.tick, q.offset = engine.Reference, 1, 0
	}
	if q.channel == "" {
		q.channel = engine.Unspecified
	}
	q.middle = q.target(level.current)
	q.setSides()
	return q
}

// Step moves the market. now should not be before the time of the previous step.
func (m *Market) Step(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now, true)
}

// Refreshes does a step as Step does. It returns the refreshes that a collector would then publish; a refresh has the
// rates of one source at one time. Rates of silent institutions are missing.
func (m *Market) Refreshes(now time.Time) []engine.Refresh {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now, true)
	return m.currentRefreshes()
}

// History simulates each day between two dates, both included. It returns the refreshes of each day, at 17:00 in Santo
// Domingo. Call it before Step. Rates do not move on Sundays. A year has about 9,500 refreshes and 32,000 observations.
func (m *Market) History(from, to engine.Date) []engine.Refresh {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []engine.Refresh
	for day := from; day <= to; day++ {
		m.advance(day.Start().Add(HistoryHour*time.Hour), weekdayOf(day) != time.Sunday)
		all = append(all, m.currentRefreshes()...)
	}
	return all
}

func (m *Market) advance(now time.Time, moveRates bool) {
	now = now.UTC()
	if moveRates {
		m.moveLevels()
	}
	elapsed := time.Duration(0)
	if !m.last.IsZero() {
		elapsed = min(max(now.Sub(m.last), 0), 24*time.Hour)
	}
	m.last = now
	for i := range m.institutions {
		inst := &m.institutions[i]
		if !m.goSilent(inst, elapsed) {
			m.updateQuotes(inst, moveRates)
		}
	}
}

// moveLevels changes every level by the sum of three parts: a random change that is the same for all currencies, a
// random change of its own, and a pull back to its initial level. At a distance of 4 % the pull is as large as both
// random changes together, so a level stays within 4 %.
func (m *Market) moveLevels() {
	common := m.randomBetween(-noiseMax, noiseMax)
	for i := range m.levels {
		l := &m.levels[i]
		pull := (l.level - l.current) * millionth / l.current / reversion
		l.current += l.current * clamp(common+m.randomBetween(-noiseMax, noiseMax)+pull, stepMax) / millionth
	}
}

func (m *Market) silent(inst *institutionState) bool { return m.last.Before(inst.silentUntil) }

// goSilent reports whether an institution is silent. If it is not, goSilent may make it silent at random. The
// probability is proportional to the elapsed time, so that a demo with many fast steps does not have more silences.
func (m *Market) goSilent(inst *institutionState, elapsed time.Duration) bool {
	if m.silent(inst) {
		return true
	}
	if m.random.Int64N(int64(silenceInterval)) >= int64(elapsed) {
		return false
	}
	inst.silentUntil = m.last.Add(silenceMin + time.Duration(m.random.Int64N(int64(silenceSpan))))
	return true
}

// updateQuotes moves the quotes of an institution towards the market with probability 1/followOdds. If the
// institution's dating is businessDays, its quotes move once on each business day instead.
func (m *Market) updateQuotes(inst *institutionState, moveRates bool) {
	moves := moveRates && m.random.IntN(followOdds) == 0
	if inst.dating == businessDays {
		day := lastBusinessDay(m.last)
		moves = day != inst.effective
		inst.effective = day
	}
	if inst.pricedAt.IsZero() {
		inst.pricedAt = m.last
	}
	if !moves {
		return
	}
	inst.pricedAt = m.last
	for i := range inst.quotes {
		q := &inst.quotes[i]
		limit := q.middle * stepMax / millionth
		q.middle += clamp(q.target(m.levels[q.currency].current)-q.middle, limit)
		q.setSides()
		if q.kind == engine.Commercial && q.published == usuallyBoth {
			m.hideSide(q)
		}
	}
	if inst.dating == businessDays {
		m.addReferenceDay(inst)
	}
}

// addReferenceDay adds a day to the workbooks of reference rates. The first call also adds earlier days with the same
// prices.
func (m *Market) addReferenceDay(inst *institutionState) {
	if len(inst.referenceDays) == 0 {
		for date := inst.effective.AddDays(-referenceDaysBefore * 7 / 5); date < inst.effective; date++ {
			if !isWeekend(date) {
				inst.referenceDays = append(inst.referenceDays, referenceDay{date, m.observations(inst, date)})
			}
		}
	}
	if len(inst.referenceDays) == referenceDaysMax {
		inst.referenceDays = append([]referenceDay(nil), inst.referenceDays[1:]...) // copied, because snapshots share the slice
	}
	inst.referenceDays = append(inst.referenceDays, referenceDay{inst.effective, m.observations(inst, inst.effective)})
}

// hideSide removes one side of a quote (buy or sell) in 1 of hideOdds cases.
func (m *Market) hideSide(q *quoteState) {
	switch m.random.IntN(2 * hideOdds) {
	case 0:
		q.buy = 0
	case 1:
		q.sell = 0
	}
}

func (q *quoteState) target(level int64) int64 { return level + level*q.offset/millionth }

// setSides sets buy and sell around q.middle. It rounds buy down and sell up to a multiple of q.tick.
func (q *quoteState) setSides() {
	if q.published == singleRate {
		q.buy, q.sell = q.middle, q.middle
		return
	}
	below := q.spread * belowPercent / 100
	if q.kind == engine.Reference {
		below = q.spread / 2
	}
	q.buy = (q.middle - below) / q.tick * q.tick
	q.sell = (q.middle + q.spread - below + q.tick - 1) / q.tick * q.tick
	if q.published == buyOnly {
		q.sell = 0
	}
}

// lastBusinessDay returns the newest weekday whose reference rate has been published by the time t.
func lastBusinessDay(t time.Time) engine.Date {
	day := engine.DateOf(t.Add(-HistoryHour * time.Hour))
	for isWeekend(day) {
		day = day.AddDays(-1)
	}
	return day
}

func isWeekend(day engine.Date) bool {
	return weekdayOf(day) == time.Saturday || weekdayOf(day) == time.Sunday
}

func weekdayOf(day engine.Date) time.Weekday { return day.Start().In(engine.Location()).Weekday() }

// randomBetween returns a number from low to high, both included.
func (m *Market) randomBetween(low, high int64) int64 { return low + m.random.Int64N(high-low+1) }

// clamp limits value to the range from -limit to limit.
func clamp(value, limit int64) int64 { return min(max(value, -limit), limit) }
