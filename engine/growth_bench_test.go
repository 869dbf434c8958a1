package engine

import (
	"fmt"
	"time"
)

// crowd is a market of many institutions, as many sources, and a book that has taken a refresh of each in.
type crowd struct {
	catalogue    *Catalogue
	book         *Book
	institutions []string
	sources      int
	now          time.Time
	n            int
}

// newCrowd makes institutions of its own, so that there may be more of them than are known.
func newCrowd(institutions, sources int) *crowd {
	c := &crowd{sources: sources, now: noon}
	known := &Catalogue{
		institutions: map[string]*Institution{}, currencies: cloned(DefaultCatalogue().currencies), currencyList: DefaultCatalogue().currencyList,
	}
	for i := range institutions {
		id := fmt.Sprintf("institution-%04d", i)
		c.institutions = append(c.institutions, id)
		known.institutions[id] = &Institution{ID: id, Name: "Institution " + id, Type: Bank, Active: true}
	}
	known.institutionList = sortedValues(known.institutions)
	c.catalogue = known
	c.book = NewBook("USD", known, DefaultRules())
	c.take(c.refreshes())
	return c
}

// refreshes is one of every source, each with a quote of every institution, a minute after the last.
func (c *crowd) refreshes() []Refresh {
	c.n++
	c.now = c.now.Add(time.Minute)
	refreshes := make([]Refresh, c.sources)
	for s := range refreshes {
		refreshes[s] = Refresh{SourceID: fmt.Sprintf("list-%02d", s), ObservedAt: c.now, Complete: true, Slot: c.now}
		for i, id := range c.institutions {
			cents := (i + c.n) % 40
			refreshes[s].Observations = append(refreshes[s].Observations, Observation{
				InstitutionID: id, Currency: "USD", Channel: Branch, Buy: fmt.Sprintf("57.%02d", cents), Sell: fmt.Sprintf("60.%02d", cents),
			})
		}
	}
	return refreshes
}

func (c *crowd) take(refreshes []Refresh) Decision {
	decision, err := c.book.Decide(Observe{refreshes}, c.now)
	if err != nil {
		panic(err)
	}
	for _, event := range decision.Events {
		c.book.Apply(event)
	}
	return decision
}
