package collectors

import (
	"context"
	"fmt"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// RunNow reads all pages of a source at once, publishes their rates and returns the result. The rates belong to the
// current slot if it has not been tried yet, otherwise to no slot. The next slot is not affected. RunNow waits for a
// running try.
//
// The error is an *engine.Error: the source is unknown or disabled, or the collector is not running.
func (c *Collector) RunNow(ctx context.Context, id string) (Report, error) {
	r, found := c.find(id)
	switch {
	case !found:
		return Report{}, &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("there is no source %q", id)}
	case r.definition.Disabled != "":
		return Report{}, &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf(
			"the source %s is disabled (%s), so it is not published; tasard sources check %s reads it once", id, r.definition.Disabled, id)}
	}
	stopped := &engine.Error{Code: engine.CodeDataUnavailable, Message: "this node does not collect now: it starts, stops or reads its definitions again; try again"}
	if !c.running.Load() {
		return Report{}, stopped
	}
	reply := make(chan tryResult, 1)
	select {
	case r.requests <- reply:
	case <-c.ended:
		return Report{}, stopped
	case <-ctx.Done():
		return Report{}, stopped
	}
	if a, ok := <-reply; ok {
		return r.report(&a), nil
	}
	return Report{}, stopped
}

// tryNow makes a try for RunNow.
func (r *runner) tryNow(ctx context.Context, reply chan<- tryResult) {
	defer close(reply)
	r.plan(r.collector.now()) // a slot may have begun during the pause
	if a, ok := r.try(ctx); ok {
		reply <- a
	}
}

func (r *runner) report(a *tryResult) Report {
	report := Report{SourceID: r.definition.ID, Pages: a.pages.pages, Failure: a.failure(), Duration: a.endedAt.Sub(a.startedAt)}
	for i := range a.pages.results {
		result := &a.pages.results[i]
		report.Observations = append(report.Observations, result.Observations...)
		report.HistoryDays += len(result.History)
		report.Notes = append(report.Notes, result.Notes...)
	}
	report.Observations = source.JoinSides(report.Observations)
	decisions := a.published.decisions()
	for i := range report.Observations {
		decision, known := decisions[quoteIDOf(&report.Observations[i])]
		if !known {
			decision.Reason = NotPublished
		}
		report.Refusals = append(report.Refusals, decision)
	}
	return report
}

// NotPublished is the reason for a quote that did not reach the sink: publishing failed, there is no sink, or the page
// with the other side could not be read.
const NotPublished engine.Reason = "not_published"

// decisions returns the sink's decision on each current quote, without past days. An accepted quote has no reason.
func (o *publishOutcome) decisions() map[quoteID]engine.Refusal {
	decisions := map[quoteID]engine.Refusal{}
	for i := o.historyCount; i < len(o.refreshes); i++ {
		for _, observation := range o.refreshes[i].Observations {
			decisions[quoteIDOf(&observation)] = engine.Refusal{}
		}
	}
	for _, refusal := range o.receipt.Refused {
		if refusal.Refresh >= o.historyCount {
			decisions[quoteIDOf(&refusal.Observation)] = refusal
		}
	}
	return decisions
}
