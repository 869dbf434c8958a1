package simulated

import (
	"cmp"
	"math/rand/v2"
	"slices"
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
	peso           = 10_000
	swingMax       = 20_000             // largest distance of a level from its initial level (2 %)
	swingDays      = 16                 // days from one random distance to the next; in between the level moves steadily
	offsetMax      = 2_000              // largest lasting distance of a quote from the level
	noiseMax       = 1_000              // largest further distance, which changes when the quote moves
	belowPercent   = 73                 // percent of a bank's spread that lies below the middle of a quote
	commercialTick = 500                // commercial prices are multiples of 5 centavos
	stepsPerMove   = 2                  // steps from one move of an institution's quotes to the next
	hideOdds       = 100                // 1 of 100 quotes lacks a side
	silenceDays    = 2                  // longer than the default lifetime of a rate, so that rates expire
	silenceOdds    = 30                 // 1 of 30 spans of silenceDays is a silence
	referenceDays  = 40                 // business days in the workbooks of reference rates
	marketStream   = 0x7461736172642131 // second part of the seed
	millionth      = 1_000_000
	hoursPerDay    = 24
)

// The purposes of random numbers: first keys of Market.draw. Numbers for different purposes are independent.
const (
	forLevel = iota
	forOffset
	forNoise
	forHiding
	forSilence
)

// Market is a simulated market with the institutions of the built-in catalogue. The market has one level for each
// currency, which stays within 2 % of the rate of mid-2026. In every second step, an institution moves its quotes to
// the levels, or a little off them. Sometimes a side is missing. Sometimes a site is silent for two days, so that its
// rates expire. Buy never exceeds sell, and rates stay within the plausible ranges of the catalogue.
//
// Everything depends only on the seed and on the number and the times of the steps. A Market is safe for concurrent
// use.
type Market struct {
	seed    uint64
	quotes  []quote // grouped by institution
	sources []sourceQuotes

	mu     sync.Mutex
	newest step
}

// step is one step of the market. It is zero before the first step.
type step struct {
	number            int64
	at, before, first time.Time // times of this step, of the step before and of the first one
}

// quote describes a quote of an institution. Its prices depend on the step, see Market.sides.
type quote struct {
	*quoteSpec
	*levelSpec
	number, owner, currency int64 // numbers of the quote, its institution and its currency
	channel                 engine.Channel
	kind                    engine.Kind
	tick                    int64 // prices are multiples of tick
}

// NewMarket returns the market of a seed.
func NewMarket(seed uint64) *Market {
	m := &Market{seed: seed}
	levels, owner := levelSpecs(), int64(-1)
	for i, spec := range quoteSpecs() {
		if i == 0 || spec.institution != m.quotes[len(m.quotes)-1].institution {
			owner++
		}
		for _, code := range spec.currencies {
			currency := slices.IndexFunc(levels, func(l levelSpec) bool { return l.code == code })
			q := quote{
				quoteSpec: &spec, levelSpec: &levels[currency], number: int64(len(m.quotes)), owner: owner, currency: int64(currency),
				channel: cmp.Or(spec.channel, engine.Unspecified), kind: engine.Commercial, tick: commercialTick,
			}
			if spec.dating == businessDays {
				q.kind, q.tick = engine.Reference, 1
			}
			m.quotes = append(m.quotes, q)
		}
	}
	m.sources = m.assignQuotes(source.DefaultSet())
	return m
}

// Step moves the market. now should not be before the time of the previous step.
func (m *Market) Step(now time.Time) { m.advance(now) }

func (m *Market) advance(now time.Time) step {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = now.UTC()
	m.newest = step{m.newest.number + 1, now, cmp.Or(m.newest.at, now), cmp.Or(m.newest.first, now)}
	return m.newest
}

// Refreshes does a step as Step does. It returns the refreshes that a collector would then publish; a refresh has the
// rates of one source at one time. Rates of silent institutions are missing.
func (m *Market) Refreshes(now time.Time) []engine.Refresh { return m.refreshes(m.advance(now)) }

// History does a step for each day between two dates, both included, at 17:00 in Santo Domingo, and returns the
// refreshes of all of them. Call it before Step. A year has about 9,500 refreshes and 32,000 observations.
func (m *Market) History(from, to engine.Date) []engine.Refresh {
	var all []engine.Refresh
	for date := from; date <= to; date++ {
		all = append(all, m.Refreshes(publicationTime(date))...)
	}
	return all
}

// draw returns a random number from 0 to count-1. It depends only on the seed and the keys.
func (m *Market) draw(count int64, keys ...int64) int64 {
	h := m.seed ^ marketStream
	for _, key := range keys {
		h = rand.NewPCG(h, uint64(key)).Uint64() //nolint:gosec // G115: any bits do
	}
	return int64(h % uint64(count)) //nolint:gosec // G115: count is positive
}

// drawAround returns a random number from -limit to limit.
func (m *Market) drawAround(limit int64, keys ...int64) int64 {
	return m.draw(2*limit+1, keys...) - limit
}

// levelAt returns the market rate of the currency of a quote.
func (m *Market) levelAt(q *quote, at time.Time) int64 {
	const span = swingDays * hoursPerDay * 60 * 60
	index, into := at.Unix()/span, at.Unix()%span
	from, to := m.drawAround(swingMax, forLevel, q.currency, index), m.drawAround(swingMax, forLevel, q.currency, index+1)
	return q.level + q.level*(from+(to-from)*into/span)/millionth
}

// silent reports whether the site of the institution of a quote gives no rates. On the first day no site is silent.
func (m *Market) silent(q *quote, s step) bool {
	days := int64(s.at.Sub(s.first)/(hoursPerDay*time.Hour)) + q.owner // not all silences begin on the same day
	return days/silenceDays > q.owner/silenceDays && m.draw(silenceOdds, forSilence, q.owner, days/silenceDays) == 0
}

// lastMove returns the time of the newest move of a commercial quote, and the number of the move.
func (q *quote) lastMove(s step) (at time.Time, move int64) {
	steps := s.number + q.owner // half of the institutions move in each step
	if steps%stepsPerMove == 0 {
		return s.at, steps / stepsPerMove
	}
	return s.before, steps / stepsPerMove
}

// sides returns the prices of a quote after a move. 0 means not published. It rounds buy down and sell up to a multiple
// of the tick.
func (m *Market) sides(q *quote, at time.Time, move int64) (buy, sell int64) {
	level, distance := m.levelAt(q, at), m.drawAround(noiseMax, forNoise, q.number, move)
	spread, below := q.spread*q.spreadPermille/1000, int64(50)
	if q.kind == engine.Commercial {
		distance += m.drawAround(offsetMax, forOffset, q.number)
		below = belowPercent
	}
	middle := level + level*distance/millionth
	if q.published == singleRate {
		return middle, middle
	}
	low := middle - spread*below/100
	buy, sell = low/q.tick*q.tick, (low+spread+q.tick-1)/q.tick*q.tick
	hidden := int64(-1)
	if q.kind == engine.Commercial && q.published == usuallyBoth {
		hidden = m.draw(2*hideOdds, forHiding, q.number, move)
	}
	switch {
	case hidden == 0:
		return 0, sell
	case hidden == 1, q.published == buyOnly:
		return buy, 0
	}
	return buy, sell
}

func publicationTime(date engine.Date) time.Time { return date.Start().Add(HistoryHour * time.Hour) }

// lastBusinessDay returns the newest weekday whose reference rate has been published by the time t.
func lastBusinessDay(t time.Time) engine.Date {
	date := engine.DateOf(t.Add(-HistoryHour * time.Hour))
	for isWeekend(date) {
		date = date.AddDays(-1)
	}
	return date
}

func isWeekend(date engine.Date) bool {
	weekday := date.Start().In(engine.Location()).Weekday()
	return weekday == time.Saturday || weekday == time.Sunday
}
