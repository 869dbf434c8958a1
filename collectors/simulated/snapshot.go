package simulated

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

const demoPrefix = "demo-" // first part of the ids of simulated sources

// Definitions returns copies of the definitions of a set. A definition says how the pages of a source are fetched and
// read. The copies have ids and names that say that the rates are simulated. The copies request the same addresses as
// the originals, so fetch them only through Site.Dial.
func Definitions(set *source.Set) *source.Set {
	var all []*source.Definition
	for _, original := range set.Definitions() {
		demo := *original
		demo.ID, demo.Name, demo.URL = demoPrefix+original.ID, "Demo, tasas simuladas: "+original.Name, ""
		all = append(all, &demo)
	}
	return source.NewSet(all...)
}

// quoteID identifies a quote of the market: its institution, channel, kind and currency.
type quoteID struct {
	engine.QuoteKey
	currency string
}

// sourceQuotes lists the quotes that Market.History and Market.Refreshes return for one source.
type sourceQuotes struct {
	source string // id, with demoPrefix
	dated  bool   // the definition of the source reads the dates of quotes
	quotes []quoteIndex
}

type quoteIndex struct{ institution, quote int } // indexes in Market.institutions and institutionState.quotes

// assignQuotes assigns each quote to one enabled source. If several sources can read a quote, it chooses the one with
// the best priority, as a node does. Quotes that no source reads are omitted. Sources are in the order of their first
// quotes.
func (m *Market) assignQuotes(set *source.Set) []sourceQuotes {
	best := map[quoteID]*source.Definition{}
	for _, d := range set.Definitions() {
		if d.Disabled != "" {
			continue
		}
		for quote := range readableQuotes(d) {
			if other, ok := best[quote]; !ok || cmp.Or(cmp.Compare(d.Priority, other.Priority), cmp.Compare(d.ID, other.ID)) < 0 {
				best[quote] = d
			}
		}
	}
	var all []sourceQuotes
	indexes := map[string]int{} // index in the slice all, by the id of the source's definition
	for i := range m.institutions {
		for j := range m.institutions[i].quotes {
			d, ok := best[m.institutions[i].quoteID(j)]
			if !ok {
				continue
			}
			index, known := indexes[d.ID]
			if !known {
				index = len(all)
				indexes[d.ID] = index
				all = append(all, sourceQuotes{source: demoPrefix + d.ID, dated: isDated(d)})
			}
			all[index].quotes = append(all[index].quotes, quoteIndex{i, j})
		}
	}
	return all
}

// readableQuotes returns the quotes that a definition can read.
func readableQuotes(d *source.Definition) map[quoteID]bool {
	quotes := map[quoteID]bool{}
	for i := range d.Pages {
		for _, t := range d.Targets(&d.Pages[i]) {
			quotes[quoteID{engine.QuoteKey{Institution: t.Institution, Channel: t.Channel, Kind: d.Kind}, t.Currency}] = true
		}
	}
	return quotes
}

func isDated(d *source.Definition) bool {
	return slices.ContainsFunc(d.Pages, func(page source.Page) bool { return page.Dated() })
}

// currentRefreshes returns a refresh for each source: its quotes at the time of the newest step. It omits the quotes of
// silent institutions, whose sites give no rates.
func (m *Market) currentRefreshes() []engine.Refresh {
	all := make([]engine.Refresh, 0, len(m.sources))
	for i := range m.sources {
		refresh := engine.Refresh{SourceID: m.sources[i].source, ObservedAt: m.last, Complete: true}
		for _, index := range m.sources[i].quotes {
			inst := &m.institutions[index.institution]
			if m.silent(inst) {
				continue
			}
			o := m.observation(inst, index.quote)
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

// Quotes returns the current quotes of all institutions, with the dates that the institutions give. It includes
// institutions whose sites give no rates at the moment.
func (m *Market) Quotes() []engine.Observation { return m.snapshot().quotes }

func (m *Market) snapshot() snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := snapshot{time: m.last, silent: map[string]bool{}}
	for i := range m.institutions {
		inst := &m.institutions[i]
		for j := range inst.quotes {
			s.quotes = append(s.quotes, m.observation(inst, j))
		}
		s.silent[inst.institution] = m.silent(inst)
		if inst.dating == businessDays {
			s.days = inst.referenceDays
		}
	}
	return s
}

// snapshot is the market at one time. It is immutable.
type snapshot struct {
	time   time.Time // of the last step
	quotes []engine.Observation
	silent map[string]bool // institutions whose sites give no rates at this time
	days   []referenceDay  // reference rates of the central bank by day, oldest first
}

func (inst *institutionState) quoteID(quote int) quoteID {
	q := &inst.quotes[quote]
	return quoteID{engine.QuoteKey{Institution: inst.institution, Channel: q.channel, Kind: q.kind}, q.code}
}

// observations returns all quotes of an institution, with a date.
func (m *Market) observations(inst *institutionState, date engine.Date) []engine.Observation {
	all := make([]engine.Observation, len(inst.quotes))
	for i := range inst.quotes {
		all[i] = m.observation(inst, i)
		all[i].EffectiveDate = date
	}
	return all
}

func (m *Market) observation(inst *institutionState, quote int) engine.Observation {
	q := &inst.quotes[quote]
	o := engine.Observation{
		InstitutionID: inst.institution, Currency: q.code, Channel: q.channel, Kind: q.kind, Buy: q.text(q.buy), Sell: q.text(q.sell),
	}
	switch inst.dating {
	case dayDated:
		o.EffectiveDate = engine.DateOf(m.last)
	case minuteDated:
		o.PublishedAt = inst.pricedAt.Truncate(time.Minute)
		o.EffectiveDate = engine.DateOf(o.PublishedAt)
	case businessDays:
		o.EffectiveDate = inst.effective
	case undated:
	}
	return o
}

// text formats a price: a commercial price with two decimals, a reference rate with up to four.
func (q *quoteState) text(value int64) string {
	switch {
	case value == 0:
		return ""
	case q.kind == engine.Reference:
		return trimZeros(fmt.Sprintf("%d.%04d", value/peso, value%peso))
	}
	return fmt.Sprintf("%d.%02d", value/peso, value%peso/(peso/100))
}
