package simulated

import (
	"cmp"
	_ "embed"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// HistoryHour is the hour of the central bank's publication, in Santo Domingo. All rates of History have this time of
// day.
const HistoryHour = 17

// marketTable lists the quotes of all institutions, with their mean prices as in mid-2026. The quotes of an institution
// are adjacent. Columns with other names than a field:
//
//	sides   "may lack one": now and then a side is missing, as on many institutions' sites
//	dates   the date of a rate: none, the day of the request, the minute of the last change, or for a reference rate
//	        the newest business day with a published rate
//	listed  the name in the lists of sites that copy rates; empty if not listed
//	source  the source that a node takes the rate from: of the enabled ones that read it, that with the best priority
//
//go:embed market.csv
var marketTable string

// Rates are in ten-thousandths of a peso, changes of rates in parts per million. A step is one change of the market
// (Market.Step).
const (
	peso           = 10_000
	swingMax       = 20_000             // maximum distance of a currency's rates from the table (2 %)
	swingDays      = 16                 // days between two random distances; in between the rates move steadily
	noiseMax       = 1_000              // maximum additional distance, which changes with each move of the quote
	commercialTick = 500                // commercial prices are multiples of 5 centavos
	stepsPerMove   = 2                  // steps between two moves of an institution's quotes
	hideOdds       = 100                // 1 of 100 quotes lacks a side
	marketStream   = 0x7461736172642131 // second part of the seed
	millionth      = 1_000_000
	priceUnits     = 100_000_000 // of engine.Decimal
	hoursPerDay    = 24
)

// businessDays are the dates of reference rates in the table.
const businessDays = "business day"

// Purposes of random numbers: first keys of Market.draw. Numbers for different purposes are independent.
const (
	forSwing = iota
	forNoise
	forHiding
)

// Market is a simulated market with the institutions of the built-in catalogue. The rates of a currency move together
// and stay within 2 % of those of mid-2026. In every second step, an institution moves its quotes with the market, or a
// little off it. Sometimes a side is missing. Buy never exceeds sell, and rates stay within the plausible ranges of the
// catalogue.
//
// Everything depends only on the seed and on the number and the times of the steps. A Market is safe for concurrent
// use.
type Market struct {
	seed   uint64
	quotes []quote // grouped by institution

	mu     sync.Mutex
	newest step
}

// step is one step of the market. It is zero before the first step.
type step struct {
	number     int64
	at, before time.Time // times of this step and of the step before
}

// quote is a quote of an institution: a row of the table. Its prices depend on the step; see Market.sides.
type quote struct {
	quoteID
	number, owner, currencyKey int64 // for random numbers: of the quote, its institution and its currency
	buy, sell                  int64 // mean prices; 0 = never published
	tick                       int64 // prices are multiples of tick
	mayLackSide                bool
	dates, listed              string
	source                     string // id, with demoPrefix
}

// NewMarket returns the market of a seed.
func NewMarket(seed uint64) *Market {
	m := &Market{seed: seed}
	rows, err := csv.NewReader(strings.NewReader(marketTable)).ReadAll()
	if err != nil {
		panic("simulated: the embedded table of prices: " + err.Error()) // impossible: a test reads it
	}
	owner := int64(-1)
	for i, row := range rows[1:] {
		if row[0] != rows[i][0] {
			owner++
		}
		key := engine.QuoteKey{Institution: row[0], Channel: engine.Channel(row[1]), Kind: engine.Commercial}
		q := quote{
			quoteID: quoteID{key, row[2]}, number: int64(i), owner: owner, currencyKey: int64(binary.BigEndian.Uint16([]byte(row[2])[1:])),
			buy: price(row[3]), sell: price(row[4]), tick: commercialTick, mayLackSide: row[5] != "", dates: row[6], listed: row[7],
			source: demoPrefix + row[8],
		}
		if q.dates == businessDays {
			q.Kind, q.tick = engine.Reference, 1
		}
		m.quotes = append(m.quotes, q)
	}
	return m
}

// price returns a price of the table in ten-thousandths of a peso. An empty text is 0.
func price(text string) int64 {
	d, err := engine.ParseDecimal(cmp.Or(text, "0"))
	if err != nil {
		panic("simulated: the embedded table of prices: " + err.Error()) // impossible: a test reads it
	}
	return d.Units() / (priceUnits / peso)
}

// Step moves the market. now should not be before the time of the previous step.
func (m *Market) Step(now time.Time) { m.advance(now) }

func (m *Market) advance(now time.Time) step {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = now.UTC()
	m.newest = step{m.newest.number + 1, now, cmp.Or(m.newest.at, now)}
	return m.newest
}

// Refreshes does a step like Step, and returns the refreshes that a collector would publish (each: one source's rates
// at one time).
func (m *Market) Refreshes(now time.Time) []engine.Refresh { return m.refreshes(m.advance(now)) }

// History does a step for each day between two dates, both included, at 17:00 in Santo Domingo, and returns the
// refreshes of all steps. Call it before Step. A year has about 9,500 refreshes and 32,000 observations.
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

// swing returns the distance of a currency's rates from the table at a time.
func (m *Market) swing(currencyKey int64, at time.Time) int64 {
	const span = swingDays * hoursPerDay * 60 * 60
	index, into := at.Unix()/span, at.Unix()%span
	from, to := m.drawAround(swingMax, forSwing, currencyKey, index), m.drawAround(swingMax, forSwing, currencyKey, index+1)
	return from + (to-from)*into/span
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
	distance := millionth + m.swing(q.currencyKey, at) + m.drawAround(noiseMax, forNoise, q.number, move)
	buy, sell = q.buy*distance/millionth/q.tick*q.tick, (q.sell*distance/millionth+q.tick-1)/q.tick*q.tick
	if q.mayLackSide {
		switch m.draw(2*hideOdds, forHiding, q.number, move) {
		case 0:
			return 0, sell
		case 1:
			return buy, 0
		}
	}
	return buy, sell
}

func publicationTime(date engine.Date) time.Time { return date.Start().Add(HistoryHour * time.Hour) }

// lastBusinessDay returns the newest weekday with a published reference rate at the time t.
func lastBusinessDay(t time.Time) engine.Date {
	date := engine.DateOf(t.Add(-HistoryHour * time.Hour))
	for localDay(date).Weekday() == time.Saturday || localDay(date).Weekday() == time.Sunday {
		date = date.AddDays(-1)
	}
	return date
}

const demoPrefix = "demo-" // prefix of the ids of simulated sources

// Definitions returns copies of the definitions of a set, with ids and names that mark the rates as simulated. They
// request the same addresses over plain HTTP, so fetch them only through Site.Dial. Sources disabled as old are
// enabled; those that need a secret are disabled.
func Definitions(set *source.Set) *source.Set {
	var all []*source.Definition
	for _, original := range set.Definitions() {
		demo := *original
		demo.Pages = slices.Clone(original.Pages)
		for i := range demo.Pages {
			page := &demo.Pages[i]
			page.Requests = slices.Clone(page.Requests)
			for j := range page.Requests {
				page.Requests[j].URL = strings.Replace(page.Requests[j].URL, "https://", "http://", 1)
			}
		}
		demo.ID, demo.Name, demo.URL = demoPrefix+original.ID, "Demo, tasas simuladas: "+original.Name, ""
		switch {
		case isEnabled(original):
			demo.Disabled = ""
		case demo.SecretNames() != nil:
			demo.Disabled = "It needs a secret, which a simulated source has not."
		}
		all = append(all, &demo)
	}
	return source.NewSet(all...)
}

// isEnabled reports whether a source is collected here. A definition is never too old here, because the simulated sites
// have the expected form. There are no secrets.
func isEnabled(d *source.Definition) bool {
	return d.SecretNames() == nil && (d.Disabled == "" || d.Disabled == d.Evidence.OldReason())
}

// quoteID identifies a quote of the market: its institution, channel, kind and currency.
type quoteID struct {
	engine.QuoteKey
	currency string
}

// refreshes returns a refresh for each source, in the order of their first quotes.
func (m *Market) refreshes(s step) []engine.Refresh {
	all, indexes := []engine.Refresh{}, map[string]int{}
	for i := range m.quotes {
		q := &m.quotes[i]
		index, known := indexes[q.source]
		if !known {
			index, indexes[q.source] = len(all), len(all)
			all = append(all, engine.Refresh{SourceID: q.source, ObservedAt: s.at, Complete: true})
		}
		all[index].Observations = append(all[index].Observations, m.observation(q, s))
	}
	return all
}

// Quotes returns the current quotes of all institutions, with the institutions' dates.
func (m *Market) Quotes() []engine.Observation { return m.snapshot().quotes }

// snapshot is the market at one time. It is immutable.
type snapshot struct {
	time   time.Time // of the last step
	quotes []engine.Observation
}

func (m *Market) snapshot() snapshot {
	m.mu.Lock()
	newest := m.newest
	m.mu.Unlock()
	s := snapshot{time: newest.at}
	if s.time.IsZero() {
		return s
	}
	for i := range m.quotes {
		s.quotes = append(s.quotes, m.observation(&m.quotes[i], newest))
	}
	return s
}

// observation returns a quote after a step.
func (m *Market) observation(q *quote, s step) engine.Observation {
	at, move := q.lastMove(s)
	o := m.observationAt(q, at, move)
	switch q.dates {
	case "day":
		o.EffectiveDate = engine.DateOf(s.at)
	case "minute":
		o.PublishedAt = at.Truncate(time.Minute)
		o.EffectiveDate = engine.DateOf(o.PublishedAt)
	case businessDays:
		date := lastBusinessDay(s.at)
		o = m.observationAt(q, publicationTime(date), int64(date))
		o.EffectiveDate = date
	}
	return o
}

func (m *Market) observationAt(q *quote, at time.Time, move int64) engine.Observation {
	buy, sell := m.sides(q, at, move)
	return engine.Observation{
		InstitutionID: q.Institution, Currency: q.currency, Channel: q.Channel, Kind: q.Kind, Buy: q.text(buy), Sell: q.text(sell),
	}
}

// text formats a price: a commercial price with two decimals, a reference rate with up to four.
func (q *quote) text(value int64) string {
	switch {
	case value == 0:
		return ""
	case q.Kind == engine.Reference:
		return trimZeros(fmt.Sprintf("%d.%04d", value/peso, value%peso))
	}
	return fmt.Sprintf("%d.%02d", value/peso, value%peso/(peso/100))
}
