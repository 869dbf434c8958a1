package collectors

import (
	"context"
	"fmt"

	"github.com/tasard/tasard/engine"
)

// RunReport is the result of RunNow. Its Observations were sent to the engine: the two sides of a quote are in one
// observation, even from two pages.
type RunReport struct {
	Report
	Refusals []engine.Refusal // by index of Observations; Reason "" = accepted
}

// RunNow reads all pages of a source at once, publishes their rates and returns the result. The rates belong to the
// current slot if it has not been tried yet, otherwise to no slot. The next slot is not affected. RunNow waits for a
// running try.
//
// The error is an *engine.Error: the source is unknown or disabled, or the collector is not running.
func (c *Collector) RunNow(ctx context.Context, id string) (RunReport, error) {
	r, found := c.find(id)
	switch {
	case !found:
		return RunReport{}, &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("there is no source %q", id)}
	case r.definition.Disabled != "":
		return RunReport{}, &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf(
			"the source %s is disabled (%s), so it is not published; tasard sources check %s reads it once", id, r.definition.Disabled, id)}
	}
	stopped := &engine.Error{Code: engine.CodeDataUnavailable, Message: "this node does not collect now: it starts, stops or reads its definitions again; try again"}
	if !c.running.Load() {
		return RunReport{}, stopped
	}
	reply := make(chan attempt, 1)
	select {
	case r.requests <- reply:
	case <-c.ended:
		return RunReport{}, stopped
	case <-ctx.Done():
		return RunReport{}, stopped
	}
	if a, ok := <-reply; ok {
		return r.report(&a), nil
	}
	return RunReport{}, stopped
}

// tryNow makes a try for RunNow.
func (r *runner) tryNow(ctx context.Context, reply chan<- attempt) {
	defer close(reply)
	r.plan(r.collector.now()) // a slot may have begun during the pause
	if a, ok := r.try(ctx); ok {
		reply <- a
	}
}

func (r *runner) report(a *attempt) RunReport {
	report := RunReport{Report: newReport(r.definition, &a.pages)}
	report.Failure, report.Duration = a.failure(), a.endedAt.Sub(a.startedAt)
	fates := a.published.fates()
	report.Observations = joinSides(report.Observations)
	for i := range report.Observations {
		refusal, known := fates[quoteIDOf(&report.Observations[i])]
		if !known {
			refusal.Reason = NotPublished
		}
		report.Refusals = append(report.Refusals, refusal)
	}
	return report
}

// NotPublished is the reason for a quote that did not reach the engine: publishing failed, the run was only a check, or
// the page with the other side could not be read.
const NotPublished engine.Reason = "not_published"

// fates returns the engine's decision on each current quote, without past days. An accepted quote has no reason.
func (o *publishOutcome) fates() map[quoteID]engine.Refusal {
	fates := map[quoteID]engine.Refusal{}
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
