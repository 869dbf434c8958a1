package simulated

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// Rates of the demo market are in ten-thousandths of a peso, their changes in parts per million.
const (
	peso                = 10_000
	stepMax             = 3_000               // largest change of a level, or of the rate of an institution, in one step: 0.3 %
	noiseMax            = 1_000               // largest random change in one step, common to all currencies or of one currency
	reversion           = 20                  // divisor: a step also removes 1/20 of the distance to the initial level
	offsetMax           = 2_000               // largest offset of an institution from the level of the market
	belowPercent        = 73                  // part of a commercial spread that is below the middle of the market
	commercialTick      = 500                 // commercial prices are multiples of 5 centavos
	followOdds          = 2                   // an institution follows the market in one of 2 steps
	hideOdds            = 100                 // a changed quote lacks a side in one of 100 cases
	silenceInterval     = 60 * 24 * time.Hour // mean time between two silences of an institution
	silenceMin          = 27 * time.Hour      // longer than the default lifetime of a rate, so that rates go stale
	silenceSpan         = 24 * time.Hour      // largest random time added to silenceMin
	HistoryHour         = 17                  // in Santo Domingo: when History and the reference rate are published
	referenceDaysMax    = 420                 // days in the workbooks of the reference rate
	referenceDaysBefore = 40                  // business days in the workbooks before the first step
	marketStream        = 0x7461736172642131  // the stream of the random generator
	millionth           = 1_000_000
)

// Market is a simulated market of the institutions of the catalogue. Its levels move around the rates of mid-2026. An
// institution follows them in some steps, by at most 0.3 %. Sometimes a side is missing. Sometimes a site is silent
// for a day or two, so that its rates go stale. Buy never exceeds sell, and rates stay within the plausible ranges of
// the catalogue.
//
// Everything depends only on the seed and the calls. A Market is safe for concurrent use.
type Market struct {
	mu           sync.Mutex
	random       *rand.Rand
	levels       []marketLevel
	institutions []institutionState
	last         time.Time // of the last step
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
	pricedAt      time.Time
	effective     engine.Date // with businessDays
	silentUntil   time.Time
	referenceDays []referenceDay // with businessDays, oldest first
}

type quoteState struct {
	code      string
	currency  int // index of levels
	channel   engine.Channel
	kind      engine.Kind
	published publishedSides
	spread    int64
	tick      int64
	offset    int64 // parts per million of the level
	middle    int64
	buy, sell int64 // 0 = not published
}

// referenceDay is what an institution with business days published for one of them, in the order of its quotes.
type referenceDay struct {
	date   engine.Date
	quotes []engine.Observation
}

// NewMarket returns the market of a seed. All institutions begin at the level of the market.
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

// Step moves the market to an instant, which should not be before that of the previous step.
func (m *Market) Step(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now, true)
}

// Refreshes steps the market and returns the refreshes that a collector would then publish. Silent sites have none.
func (m *Market) Refreshes(now time.Time) []engine.Refresh {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now, true)
	return m.currentRefreshes()
}

// History returns the refreshes of each day in [from, to], at 17:00 in Santo Domingo. Rates do not move on Sundays.
// History steps the market, so call it before Step. A year has about 9,500 refreshes with 32,000 observations.
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

// moveLevels changes every level by a random step for all currencies, a random step of its own, and a pull towards its
// initial value. At a distance of 4 % the pull equals both random steps, so a level stays within it.
func (m *Market) moveLevels() {
	common := m.randomBetween(-noiseMax, noiseMax)
	for i := range m.levels {
		l := &m.levels[i]
		pull := (l.level - l.current) * millionth / l.current / reversion
		l.current += l.current * clamp(common+m.randomBetween(-noiseMax, noiseMax)+pull, stepMax) / millionth
	}
}

func (m *Market) silent(inst *institutionState) bool { return m.last.Before(inst.silentUntil) }

// goSilent reports whether an institution is silent, or becomes so by chance. The probability grows with the elapsed
// time, so that a demo with fast steps has no more silence.
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

// updateQuotes moves the quotes of an institution towards the market, if it is due.
func (m *Market) updateQuotes(inst *institutionState, moveRates bool) {
	due := moveRates && m.random.IntN(followOdds) == 0
	if inst.dating == businessDays {
		day := lastBusinessDay(m.last)
		due = day != inst.effective
		inst.effective = day
	}
	if inst.pricedAt.IsZero() {
		inst.pricedAt = m.last
	}
	if !due {
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

// addReferenceDay adds a day for the workbooks. The first call also adds earlier days with the same values.
func (m *Market) addReferenceDay(inst *institutionState) {
	if len(inst.referenceDays) == 0 {
		for date := inst.effective.AddDays(-referenceDaysBefore * 7 / 5); date < inst.effective; date++ {
			if !isWeekend(date) {
				inst.referenceDays = append(inst.referenceDays, referenceDay{date, m.observations(inst, date)})
			}
		}
	}
	if len(inst.referenceDays) == referenceDaysMax {
		inst.referenceDays = append([]referenceDay(nil), inst.referenceDays[1:]...) // a snapshot may still use the old slice
	}
	inst.referenceDays = append(inst.referenceDays, referenceDay{inst.effective, m.observations(inst, inst.effective)})
}

// hideSide removes a side at random.
func (m *Market) hideSide(q *quoteState) {
	switch m.random.IntN(2 * hideOdds) {
	case 0:
		q.buy = 0
	case 1:
		q.sell = 0
	}
}

func (q *quoteState) target(level int64) int64 { return level + level*q.offset/millionth }

// setSides sets buy and sell around the middle. It rounds buy down and sell up to the tick.
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

// lastBusinessDay returns the last weekday whose reference rate has been published at an instant.
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

// clamp limits value to the range -limit to limit.
func clamp(value, limit int64) int64 { return min(max(value, -limit), limit) }
