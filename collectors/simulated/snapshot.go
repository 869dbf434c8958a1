package simulated

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

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
