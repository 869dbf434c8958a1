package collectors

import (
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// fetchedPage is a document that was fetched, and what was read from it.
type fetchedPage struct {
	page     int
	document *source.Document
	result   source.Result
	failure  *source.Failure // nil = the document was read
}

// keep gives the documents of a try to the archive. published is what became of their quotes; nil = they were not to be
// published.
func (c *Collector) keep(d *source.Definition, outcome *pageResults, published *publishOutcome) {
	if c.config.Archive == nil {
		return
	}
	fates := published.fates()
	for i := range outcome.fetched {
		fetched := &outcome.fetched[i]
		record := archive.Record{Definition: d, Page: fetched.page, Document: fetched.document}
		if fetched.failure != nil {
			record.Failure = fetched.failure.Error()
		}
		for j := range fetched.result.Observations {
			observation := &fetched.result.Observations[j]
			rate := archive.RateOf(observation)
			fate, known := fates[quoteIDOf(observation)]
			record.Published = record.Published || known
			if rate.Refused = fate.Reason; !known {
				rate.Refused = NotPublished
			}
			record.Rates = append(record.Rates, rate)
		}
		c.config.Archive.Keep(record)
	}
}

// NotPublished is the reason why a quote was not given to the engine: publishing failed, it was only tried, or the page
// with its other side could not be read.
const NotPublished engine.Reason = "not_published"

// fates returns the current quotes that were given to the engine, without past days. A quote that was refused has the
// reason. A nil publishOutcome has none.
func (o *publishOutcome) fates() map[quoteID]engine.Refusal {
	fates := map[quoteID]engine.Refusal{}
	if o == nil {
		return fates
	}
	for i := o.historyCount; i < len(o.refreshes); i++ {
		for _, observation := range o.refreshes[i].Observations {
			fates[quoteIDOf(&observation)] = engine.Refusal{}
		}
	}
	for _, refusal := range o.receipt.Refused {
		if refusal.Refresh >= o.historyCount {
			fates[quoteIDOf(&refusal.Observation)] = refusal
		}
	}
	return fates
}
