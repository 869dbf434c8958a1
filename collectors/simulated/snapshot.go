package simulated

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

const demoPrefix = "demo-" // of the ids of simulated sources

// Definitions returns the sources of a set as simulated ones, with other ids and names, so that their rates are not
// taken for real ones. They request the same addresses: fetch them only through Site.Dial.
func Definitions(set *source.Set) *source.Set {
	var all []*source.Definition
	for _, real := range set.Definitions() {
		demo := *real
		demo.ID, demo.Name, demo.URL = demoPrefix+real.ID, "Demo, tasas simuladas: "+real.Name, ""
		all = append(all, &demo)
	}
	return source.NewSet(all...)
}

// quoteID identifies a quote of the market.
type quoteID struct {
	engine.QuoteKey
	currency string
}

// sourceQuotes are the quotes of one source in History and Refreshes: those for which it is the first choice.
type sourceQuotes struct {
	source string
	dated  bool
	quotes []quoteIndex
}

type quoteIndex struct{ institution, quote int } // indexes of Market.institutions and of its quotes

// assignQuotes assigns every quote to the source of the best priority among the enabled ones that read it. A quote
// that no source reads is left out. Sources are in the order of their first quote.
func (m *Market) assignQuotes(set *source.Set) []sourceQuotes {
	best := map[quoteID]*source.Definition{}
	for _, d := range set.Definitions() {
		if d.Disabled != "" {
			continue
		}
		for quote := range readableQuotes(d) {
			if known, ok := best[quote]; !ok || cmp.Or(cmp.Compare(d.Priority, known.Priority), cmp.Compare(d.ID, known.ID)) < 0 {
				best[quote] = d
			}
		}
	}
	var all []sourceQuotes
	index := map[string]int{}
	for i := range m.institutions {
		for j := range m.institutions[i].quotes {
			d, ok := best[m.institutions[i].quoteName(j)]
			if !ok {
				continue
			}
			at, seen := index[d.ID]
			if !seen {
				at = len(all)
				index[d.ID] = at
				all = append(all, sourceQuotes{source: demoPrefix + d.ID, dated: isDated(d)})
			}
			all[at].quotes = append(all[at].quotes, quoteIndex{i, j})
		}
	}
	return all
}

// readableQuotes returns the quotes that a definition names.
func readableQuotes(d *source.Definition) map[quoteID]bool {
	found := map[quoteID]bool{}
	for i := range d.Pages {
		for _, t := range d.Targets(&d.Pages[i]) {
			found[quoteID{engine.QuoteKey{Institution: t.Institution, Channel: t.Channel, Kind: d.Kind}, t.Currency}] = true
		}
	}
	return found
}

func isDated(d *source.Definition) bool {
	return slices.ContainsFunc(d.Pages, func(page source.Page) bool { return page.Dated() })
}

// currentRefreshes returns a refresh of every source that is not silent.
func (m *Market) currentRefreshes() []engine.Refresh {
	all := make([]engine.Refresh, 0, len(m.sources))
	for i := range m.sources {
		refresh := engine.Refresh{SourceID: m.sources[i].source, ObservedAt: m.last, Complete: true}
		for _, at := range m.sources[i].quotes {
			d := &m.institutions[at.institution]
			if m.silent(d) {
				continue
			}
			o := m.observation(d, at.quote)
			if !m.sources[i].dated {
				o.EffectiveDate, o.PublishedAt = 0, time.Time{}
			}
			refresh.Observations = append(refresh.Observations, o)
		}
		if len(refresh.Observations) > 0 {
			all = append(all, refresh)
		}
	}
	return all
}

// Quotes returns the current quotes of all institutions, silent ones included, each dated as its institution does.
func (m *Market) Quotes() []engine.Observation { return m.snapshot().quotes }

func (m *Market) snapshot() snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := snapshot{at: m.last, silent: map[string]bool{}}
	for i := range m.institutions {
		d := &m.institutions[i]
		for j := range d.quotes {
			seen.quotes = append(seen.quotes, m.observation(d, j))
		}
		seen.silent[d.institution] = m.silent(d)
		if d.dating == businessDays {
			seen.days = d.referenceDays
		}
	}
	return seen
}

// snapshot is the market at one instant. It is immutable.
type snapshot struct {
	at     time.Time
	quotes []engine.Observation
	silent map[string]bool // institutions whose sites are silent
	days   []referenceDay  // of the central bank, oldest first
}

func (d *institutionState) quoteName(quote int) quoteID {
	q := &d.quotes[quote]
	return quoteID{engine.QuoteKey{Institution: d.institution, Channel: q.channel, Kind: q.kind}, q.code}
}

// observations returns all quotes of an institution, dated with a day.
func (m *Market) observations(d *institutionState, date engine.Date) []engine.Observation {
	all := make([]engine.Observation, len(d.quotes))
	for i := range d.quotes {
		all[i] = m.observation(d, i)
		all[i].EffectiveDate = date
	}
	return all
}

func (m *Market) observation(d *institutionState, quote int) engine.Observation {
	q := &d.quotes[quote]
	o := engine.Observation{
		InstitutionID: d.institution, Currency: q.code, Channel: q.channel, Kind: q.kind, Buy: q.text(q.buy), Sell: q.text(q.sell),
	}
	switch d.dating {
	case dayDated:
		o.EffectiveDate = engine.DateOf(m.last)
	case minuteDated:
		o.PublishedAt = d.pricedAt.Truncate(time.Minute)
		o.EffectiveDate = engine.DateOf(o.PublishedAt)
	case businessDays:
		o.EffectiveDate = d.effective
	case undated:
	}
	return o
}

// text formats commercial prices with two decimals, reference rates with up to four.
func (q *quoteState) text(value int64) string {
	switch {
	case value == 0:
		return ""
	case q.kind == engine.Reference:
		return shortest(fmt.Sprintf("%d.%04d", value/peso, value%peso))
	}
	return fmt.Sprintf("%d.%02d", value/peso, value%peso/(peso/100))
}
