package simulated

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tasard/tasard/engine"
)

// Rates of the demo market are whole numbers of ten-thousandths of a peso; steps are in parts per million.
const (
	peso         = 10_000
	stepMax      = 3_000 // of a level, and of a desk, from one publication to the next: 0.3 %
	noiseMax     = 1_000 // of the peso, and of each currency, in one step
	reversion    = 20    // a step leads back by this part of the distance to where the currency began
	offsetMax    = 2_000 // by which a desk's view of a currency differs from the market's
	belowPercent = 73    // of a commercial spread lie below the middle of the market: desks buy low
	deskTick     = 500   // commercial prices are multiples of 5 centavos
	followIn     = 2     // a desk follows the market in one of so many publications
	hideIn       = 100   // a changed price comes with a side missing in one of so many
	silenceEvery = 60 * 24 * time.Hour
	silenceMin   = 27 * time.Hour // longer than a source is believed without a word, so that its rates go stale
	silenceSpan  = 24 * time.Hour // added to it at most
	historyHour  = 17             // the hour of a day's publication, and of the reference rate
	demoPrefix   = "demo-"
	marketStream = 0x7461736172642131 // which of the generator's streams a seed chooses from
	millionth    = 1_000_000
)

// Market is a simulated market over the institutions of the catalogue, for demonstrations and load. Levels wander around
// those of the middle of 2026, desks follow them now and then and by at most 0.3 % at a time; a side is missing sometimes,
// and now and then a source says nothing for a day or two, so that its rates go stale. Rates are never crossed and never
// leave the bands of the catalogue. Source ids begin with demo-.
//
// Everything follows from the seed and from the calls that were made. A Market is not safe for concurrent use.
type Market struct {
	random *rand.Rand
	levels []demoLevel
	pages  []demoPage
	last   time.Time // of the last publication
}

type demoLevel struct {
	currencyLevel
	now int64
}

// demoPage is one institution's page.
type demoPage struct {
	institution string
	dating      dating
	quotes      []demoQuote
	pricedAt    time.Time
	effective   engine.Date // of a source with business days
	silentUntil time.Time
}

// demoQuote is one price on it.
type demoQuote struct {
	code      string
	currency  int // index of levels
	channel   engine.Channel
	kind      engine.Kind
	published quotedSides
	spread    int64
	tick      int64
	offset    int64 // parts per million of the level
	middle    int64
	buy, sell int64 // 0 = not published
}

// NewMarket opens the market of a seed: every desk stands at the market's level.
func NewMarket(seed uint64) *Market {
	m := &Market{random: rand.New(rand.NewPCG(seed, marketStream))}
	for _, start := range currencyLevels() {
		m.levels = append(m.levels, demoLevel{start, start.level})
	}
	for _, row := range priceBoards() {
		if n := len(m.pages); n == 0 || m.pages[n-1].institution != row.institution {
			m.pages = append(m.pages, demoPage{institution: row.institution, dating: row.dating})
		}
		page := &m.pages[len(m.pages)-1]
		for _, code := range row.currencies {
			page.quotes = append(page.quotes, m.list(&row, code))
		}
	}
	return m
}

func (m *Market) list(row *boardLine, code string) demoQuote {
	index := 0
	for m.levels[index].code != code {
		index++
	}
	at := &m.levels[index]
	q := demoQuote{
		code: code, currency: index, channel: row.channel, kind: engine.Commercial, published: row.published,
		spread: row.spread * at.spreadPermille / 1000, tick: deskTick, offset: m.between(-offsetMax, offsetMax),
	}
	if row.institution == "bcrd" {
		q.kind, q.tick, q.offset = engine.Reference, 1, 0
	}
	if q.channel == "" {
		q.channel = engine.Unspecified
	}
	q.middle = q.target(at.now)
	q.price()
	return q
}

// Refreshes is the next publication of every source that is not silent, read at an instant. It moves the market by one
// step. Instants should not go backwards.
func (m *Market) Refreshes(at time.Time) []engine.Refresh { return m.publish(at, true) }

// History is one publication a day, at 17:00 in Santo Domingo, from one date to another, both included; on Sundays
// nothing moves. Ask for the past before the present: it moves the same market. A year is about 12,000 refreshes with
// 29,000 observations.
func (m *Market) History(from, to engine.Date) []engine.Refresh {
	var all []engine.Refresh
	for day := from; day <= to; day++ {
		at := day.Start().Add(historyHour * time.Hour)
		all = append(all, m.publish(at, weekday(day) != time.Sunday)...)
	}
	return all
}

func (m *Market) publish(at time.Time, moving bool) []engine.Refresh {
	at = at.UTC()
	if moving {
		m.step()
	}
	passed := time.Duration(0)
	if !m.last.IsZero() {
		passed = min(max(at.Sub(m.last), 0), 24*time.Hour)
	}
	m.last = at
	all := make([]engine.Refresh, 0, len(m.pages))
	for i := range m.pages {
		page := &m.pages[i]
		if m.silent(page, at, passed) {
			continue
		}
		m.follow(page, at, moving)
		all = append(all, page.refresh(at))
	}
	return all
}

// step moves every level: with the peso, by its own chance, and back to where it began. The way back is as strong as
// all chance at 4 % from there, so that no level goes further.
func (m *Market) step() {
	common := m.between(-noiseMax, noiseMax)
	for i := range m.levels {
		l := &m.levels[i]
		back := (l.level - l.now) * millionth / l.now / reversion
		l.now += l.now * limited(common+m.between(-noiseMax, noiseMax)+back, stepMax) / millionth
	}
}

// silent falls silent by chance, in proportion to the time that passed, so that a fast demo has no more of it.
func (m *Market) silent(page *demoPage, at time.Time, passed time.Duration) bool {
	if at.Before(page.silentUntil) {
		return true
	}
	if m.random.Int64N(int64(silenceEvery)) >= int64(passed) {
		return false
	}
	page.silentUntil = at.Add(silenceMin + time.Duration(m.random.Int64N(int64(silenceSpan))))
	return true
}

// follow brings the page up to the market, if its desk looks at the market today.
func (m *Market) follow(page *demoPage, at time.Time, moving bool) {
	due := moving && m.random.IntN(followIn) == 0
	if page.dating == businessDays {
		day := lastBusinessDay(at)
		due = day != page.effective
		page.effective = day
	}
	if page.pricedAt.IsZero() {
		page.pricedAt = at
	}
	if !due {
		return
	}
	page.pricedAt = at
	for i := range page.quotes {
		q := &page.quotes[i]
		most := q.middle * stepMax / millionth
		q.middle += limited(q.target(m.levels[q.currency].now)-q.middle, most)
		q.price()
		if q.kind == engine.Commercial && q.published == bothSides {
			m.hide(q)
		}
	}
}

// hide takes a side away by chance.
func (m *Market) hide(q *demoQuote) {
	switch m.random.IntN(2 * hideIn) {
	case 0:
		q.buy = 0
	case 1:
		q.sell = 0
	}
}

func (q *demoQuote) target(level int64) int64 { return level + level*q.offset/millionth }

// price sets both sides around the middle: buy is rounded down, sell up, to the tick.
func (q *demoQuote) price() {
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

// refresh is what the page says.
func (s *demoPage) refresh(at time.Time) engine.Refresh {
	refresh := engine.Refresh{SourceID: demoPrefix + s.institution, ObservedAt: at, Complete: true}
	for i := range s.quotes {
		q := &s.quotes[i]
		o := engine.Observation{
			InstitutionID: s.institution, Currency: q.code, Channel: q.channel, Kind: q.kind,
			Buy: q.text(q.buy), Sell: q.text(q.sell),
		}
		switch s.dating {
		case dayDated:
			o.EffectiveDate = engine.DateOf(at)
		case minuteDated:
			o.PublishedAt = s.pricedAt.Truncate(time.Minute)
			o.EffectiveDate = engine.DateOf(o.PublishedAt)
		case businessDays:
			o.EffectiveDate = s.effective
		case undated:
		}
		refresh.Observations = append(refresh.Observations, o)
	}
	return refresh
}

// text writes commercial prices with two decimals, reference rates with four.
func (q *demoQuote) text(value int64) string {
	switch {
	case value == 0:
		return ""
	case q.kind == engine.Reference:
		return fmt.Sprintf("%d.%04d", value/peso, value%peso)
	}
	return fmt.Sprintf("%d.%02d", value/peso, value%peso/(peso/100))
}

// lastBusinessDay is the newest day from Monday to Friday whose reference rate is out at an instant.
func lastBusinessDay(at time.Time) engine.Date {
	day := engine.DateOf(at.Add(-historyHour * time.Hour))
	switch weekday(day) {
	case time.Saturday:
		return day.AddDays(-1)
	case time.Sunday:
		return day.AddDays(-2)
	}
	return day
}

func weekday(day engine.Date) time.Weekday { return day.Start().In(engine.Location()).Weekday() }

// between is a number from low to high, both included.
func (m *Market) between(low, high int64) int64 { return low + m.random.Int64N(high-low+1) }

// limited is value within ±most.
func limited(value, most int64) int64 { return min(max(value, -most), most) }
