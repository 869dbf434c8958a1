package simulated

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// Rates of the demo market are whole numbers of ten-thousandths of a peso; steps are in parts per million.
const (
	peso                = 10_000
	stepMax             = 3_000 // of a level, and of an institution, from one publication to the next: 0.3 %
	noiseMax            = 1_000 // of the peso, and of each currency, in one step
	reversion           = 20    // a step goes back by this fraction of the distance to the initial level
	offsetMax           = 2_000 // between the level of an institution and that of the market
	belowPercent        = 73    // of a commercial spread are below the middle of the market: institutions buy low
	commercialTick      = 500   // commercial prices are multiples of 5 centavos
	followOdds          = 2     // an institution follows the market in one of so many publications
	hideOdds            = 100   // a changed price lacks a side in one of so many cases
	silenceInterval     = 60 * 24 * time.Hour
	silenceMin          = 27 * time.Hour     // longer than the default lifetime of a rate, so that rates go stale
	silenceSpan         = 24 * time.Hour     // added to it at most
	HistoryHour         = 17                 // in Santo Domingo: when History and the reference rate are published
	referenceDaysMax    = 420                // in the workbooks of the reference rate
	referenceDaysBefore = 40                 // business days of the reference rate before the market begins
	marketStream        = 0x7461736172642131 // the stream of the random generator
	millionth           = 1_000_000
)

// Market is a simulated market of the institutions of the catalogue. Levels move around those of mid-2026.
// Institutions follow them from time to time, by at most 0.3 %; sometimes a side is missing, and sometimes a site is
// silent for a day or two, so that its rates go stale. Rates are never crossed and stay within the plausible ranges
// of the catalogue.
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
	now int64
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
	for _, start := range levelSpecs() {
		m.levels = append(m.levels, marketLevel{start, start.level})
	}
	for _, line := range quoteSpecs() {
		if n := len(m.institutions); n == 0 || m.institutions[n-1].institution != line.institution {
			m.institutions = append(m.institutions, institutionState{institution: line.institution, dating: line.dating})
		}
		d := &m.institutions[len(m.institutions)-1]
		for _, code := range line.currencies {
			d.quotes = append(d.quotes, m.newQuote(&line, code))
		}
	}
	m.sources = m.assignQuotes(source.DefaultSet())
	return m
}

func (m *Market) newQuote(line *quoteSpec, code string) quoteState {
	index := 0
	for m.levels[index].code != code {
		index++
	}
	at := &m.levels[index]
	q := quoteState{
		code: code, currency: index, channel: line.channel, kind: engine.Commercial, published: line.published,
		spread: line.spread * at.spreadPermille / 1000, tick: commercialTick, offset: m.randomBetween(-offsetMax, offsetMax),
	}
	if line.institution == "bcrd" {
		q.kind, q.tick, q.offset = engine.Reference, 1, 0
	}
	if q.channel == "" {
		q.channel = engine.Unspecified
	}
	q.middle = q.target(at.now)
	q.setSides()
	return q
}

// Step moves levels and institutions to an instant. Instants should not go backwards.
func (m *Market) Step(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(at, true)
}

// Refreshes steps the market and returns what a collector would then read from every source whose site is not silent.
func (m *Market) Refreshes(at time.Time) []engine.Refresh {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(at, true)
	return m.currentRefreshes()
}

// History returns one publication for each day from from to to, at 17:00 in Santo Domingo. Nothing moves on Sundays.
// It moves the same market, so ask for the past before the present. A year is about 9,500 refreshes with 32,000
// observations.
func (m *Market) History(from, to engine.Date) []engine.Refresh {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []engine.Refresh
	for day := from; day <= to; day++ {
		m.advance(day.Start().Add(HistoryHour*time.Hour), weekday(day) != time.Sunday)
		all = append(all, m.currentRefreshes()...)
	}
	return all
}

func (m *Market) advance(at time.Time, moving bool) {
	at = at.UTC()
	if moving {
		m.moveLevels()
	}
	passed := time.Duration(0)
	if !m.last.IsZero() {
		passed = min(max(at.Sub(m.last), 0), 24*time.Hour)
	}
	m.last = at
	for i := range m.institutions {
		d := &m.institutions[i]
		if !m.goSilent(d, passed) {
			m.updateQuotes(d, moving)
		}
	}
}

// moveLevels moves every level by a common and by an own random step, and back to where it began. At a distance of 4
// % the way back is as strong as both random steps, so no level goes further.
func (m *Market) moveLevels() {
	common := m.randomBetween(-noiseMax, noiseMax)
	for i := range m.levels {
		l := &m.levels[i]
		back := (l.level - l.now) * millionth / l.now / reversion
		l.now += l.now * clamp(common+m.randomBetween(-noiseMax, noiseMax)+back, stepMax) / millionth
	}
}

func (m *Market) silent(d *institutionState) bool { return m.last.Before(d.silentUntil) }

// goSilent decides at random, in proportion to the time passed, so that a fast demo has no more silence.
func (m *Market) goSilent(d *institutionState, passed time.Duration) bool {
	if m.silent(d) {
		return true
	}
	if m.random.Int64N(int64(silenceInterval)) >= int64(passed) {
		return false
	}
	d.silentUntil = m.last.Add(silenceMin + time.Duration(m.random.Int64N(int64(silenceSpan))))
	return true
}

// updateQuotes lets an institution follow the market, if it is due.
func (m *Market) updateQuotes(d *institutionState, moving bool) {
	due := moving && m.random.IntN(followOdds) == 0
	if d.dating == businessDays {
		day := lastBusinessDay(m.last)
		due = day != d.effective
		d.effective = day
	}
	if d.pricedAt.IsZero() {
		d.pricedAt = m.last
	}
	if !due {
		return
	}
	d.pricedAt = m.last
	for i := range d.quotes {
		q := &d.quotes[i]
		most := q.middle * stepMax / millionth
		q.middle += clamp(q.target(m.levels[q.currency].now)-q.middle, most)
		q.setSides()
		if q.kind == engine.Commercial && q.published == usuallyBoth {
			m.hideSide(q)
		}
	}
	if d.dating == businessDays {
		m.keepReferenceDay(d)
	}
}

// keepReferenceDay keeps a day for the workbooks. The first one is preceded by days with the same values.
func (m *Market) keepReferenceDay(d *institutionState) {
	if len(d.referenceDays) == 0 {
		for date := d.effective.AddDays(-referenceDaysBefore * 7 / 5); date < d.effective; date++ {
			if !weekend(date) {
				d.referenceDays = append(d.referenceDays, referenceDay{date, m.observations(d, date)})
			}
		}
	}
	if len(d.referenceDays) == referenceDaysMax {
		d.referenceDays = append([]referenceDay(nil), d.referenceDays[1:]...) // readers may still hold the old slice
	}
	d.referenceDays = append(d.referenceDays, referenceDay{d.effective, m.observations(d, d.effective)})
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

// setSides sets both sides around the middle, buy rounded down to the tick, sell up.
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
func lastBusinessDay(at time.Time) engine.Date {
	day := engine.DateOf(at.Add(-HistoryHour * time.Hour))
	for weekend(day) {
		day = day.AddDays(-1)
	}
	return day
}

func weekend(day engine.Date) bool {
	return weekday(day) == time.Saturday || weekday(day) == time.Sunday
}

func weekday(day engine.Date) time.Weekday { return day.Start().In(engine.Location()).Weekday() }

// randomBetween returns a number from low to high, both included.
func (m *Market) randomBetween(low, high int64) int64 { return low + m.random.Int64N(high-low+1) }

// clamp limits value to ±most.
func clamp(value, most int64) int64 { return min(max(value, -most), most) }
