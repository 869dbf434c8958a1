package engine

import (
	"fmt"
	"slices"
	"testing"
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

// F12: what a refresh of every source costs the owner of a book, step by step.
func BenchmarkF12_Refresh(b *testing.B) {
	for _, institutions := range []int{45, 450} {
		for _, sources := range []int{1, 36} {
			name := fmt.Sprintf("institutions=%d/sources=%d/", institutions, sources)
			c := newCrowd(institutions, sources)
			var decision Decision
			b.Run(name+"decide", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					refreshes := c.refreshes()
					b.StartTimer()
					decision, _ = c.book.Decide(Observe{refreshes}, c.now)
				}
			})
			b.Run(name+"apply", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					for _, event := range decision.Events {
						c.book.Apply(event)
					}
				}
			})
			b.Run(name+"board", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					c.book.Apply(decision.Events[0])
					b.StartTimer()
					c.book.Board()
				}
			})
			b.Run(name+"view", func(b *testing.B) {
				board := c.book.Board()
				b.ReportAllocs()
				for b.Loop() {
					board.View(c.now)
				}
			})
		}
	}
}

// F12: the longest piece between two pauses, each piece taken at its best of some rounds, because a noisy machine only ever adds.
func BenchmarkF12_LongestPiece(b *testing.B) {
	for _, institutions := range []int{45, 450} {
		b.Run(fmt.Sprintf("institutions=%d", institutions), func(b *testing.B) {
			c := newCrowd(institutions, 36)
			var decision Decision
			var view *View
			var decide, apply, publish []time.Duration
			for b.Loop() {
				refreshes := c.refreshes()
				decide = shortest(decide, pieces(c.book, func() { decision, _ = c.book.Decide(Observe{refreshes}, c.now) }))
				apply = shortest(apply, pieces(c.book, func() {
					for _, event := range decision.Events {
						c.book.Apply(event)
					}
				}))
				publish = shortest(publish, pieces(c.book, func() { view = c.book.View(view, c.now) }))
			}
			b.ReportMetric(float64(slices.Max(decide).Microseconds()), "µs/decide")
			b.ReportMetric(float64(slices.Max(apply).Microseconds()), "µs/apply")
			b.ReportMetric(float64(slices.Max(publish).Microseconds()), "µs/publish")
			b.ReportMetric(float64(len(decide)+len(apply)+len(publish)), "pieces")
		})
	}
}

// pieces are the times between the pauses of some work.
func pieces(book *Book, work func()) []time.Duration {
	var all []time.Duration
	last := time.Now() //nolint:forbidigo // a benchmark measures real time
	cut := func() {
		now := time.Now() //nolint:forbidigo // the same
		all, last = append(all, now.Sub(last)), now
	}
	book.Paced(cut)
	work()
	book.Paced(nil)
	cut()
	return all
}

func shortest(best, one []time.Duration) []time.Duration {
	if len(best) != len(one) {
		return one // the first round, or the state has changed
	}
	for i := range best {
		best[i] = min(best[i], one[i])
	}
	return best
}
