package collectors

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// clockCheckMax is the maximum wait of a runner between two readings of the clock. The runner thus notices that the
// clock was set, or that the machine was suspended.
const clockCheckMax = time.Minute

// A runner.slot that is more than clockErrorMin in the future comes from a wrong clock, and is ignored. Otherwise the
// source would not be collected until that slot.
const clockErrorMin = 24 * time.Hour

// runner fetches one source at each slot and publishes its rates. Only its goroutine (run) uses the fields from slot to
// learnt.
type runner struct {
	collector  *Collector
	definition *source.Definition
	seed       uint64 // of the jitter

	slot    time.Time // current slot: the newest begun
	pending bool      // the slot has not been tried yet
	nextTry time.Time // time of that try
	catchUp bool      // plan was not called yet; its first call may begin a missed slot
	learnt  Baseline  // history of the source

	requests chan chan<- tryResult // of RunNow; each gets at most one result and is closed

	mu     sync.Mutex
	health Health // guarded by mu
}

// resume restores the state of an earlier process: the newest slot with published rates, and the encoded Baseline.
func (r *runner) resume(slot time.Time, learnt string) {
	r.slot = slot
	var err error
	if r.learnt, err = DecodeBaseline(learnt); err != nil {
		r.collector.config.Logger.Warn("what the source gave before is forgotten and learnt again", "source", r.definition.ID, "cause", err.Error())
	}
	r.updateHealth(func(h *Health) {
		h.LastSlot, h.Baseline = slot, r.learnt
		h.Confirmed = h.Confirmed || !slot.IsZero()
	})
}

func (r *runner) run(ctx context.Context) {
	for ctx.Err() == nil {
		now := r.collector.now()
		next := r.plan(now)
		r.updateHealth(func(h *Health) { h.NextRun = next })
		if wait := next.Sub(now); wait > 0 {
			r.pause(ctx, min(wait, clockCheckMax))
		} else {
			r.try(ctx)
		}
	}
}

// pause waits until the span has passed or ctx ends. A request of RunNow ends the wait with a try.
func (r *runner) pause(ctx context.Context, span time.Duration) {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case reply := <-r.requests:
		r.tryNow(ctx, reply)
	}
}

// plan returns the time of the next try. If a newer slot is due, it first makes that slot the current one.
func (r *runner) plan(now time.Time) time.Time {
	if r.slot.After(now.Add(clockErrorMin)) {
		r.collector.config.Logger.Warn("the last slot is in the future: the clock is or was wrong",
			"source", r.definition.ID, "slot", r.slot, "now", now)
		r.slot = time.Time{}
	}
	if newest := r.collector.config.Schedule.Last(now); newest.After(r.slot) {
		r.beginSlot(newest, now)
	}
	r.catchUp = false
	if r.pending {
		return r.nextTry
	}
	after := now
	if r.slot.After(now) { // the clock was set back
		after = r.slot
	}
	return r.timeOf(r.collector.config.Schedule.Next(after))
}

// beginSlot makes slot the current one, which has not been tried.
func (r *runner) beginSlot(slot, now time.Time) {
	r.slot, r.pending, r.nextTry = slot, true, r.timeOf(slot)
	if r.catchUp {
		r.nextTry = now // no jitter: nodes do not start at the same moment
	}
}

// timeOf returns the time at which the source is fetched for a slot: after a random jitter up to Config.Jitter, but at
// most half the time to the next slot. In a demo, slots may be seconds apart.
func (r *runner) timeOf(slot time.Time) time.Time {
	span := min(r.collector.config.Jitter, r.collector.config.Schedule.Next(slot).Sub(slot)/2)
	random := rand.New(rand.NewPCG(r.seed, uint64(slot.Unix()))) //nolint:gosec // G115: any bits do
	return slot.Add(time.Duration(random.Int64N(int64(span) + 1)))
}

// try reads all pages and publishes the results for the slot. If the slot was tried before (RunNow), it publishes
// them without a slot. It returns false if ctx ended or a newer slot began before it read anything.
func (r *runner) try(ctx context.Context) (tryResult, bool) {
	c := r.collector
	a := tryResult{late: !r.pending}
	started := c.runLimited(ctx, func(ctx context.Context) {
		if !c.config.Schedule.Last(c.now()).Equal(r.slot) {
			return // a newer slot began during the wait for the semaphore
		}
		a.startedAt = c.now()
		r.updateHealth(func(h *Health) { h.Running, h.LastTry = a.startedAt, a.startedAt })
		a.pages = c.read(ctx, r.definition, allPages(r.definition))
	})
	if started && !a.startedAt.IsZero() && ctx.Err() == nil {
		a.published, a.publishFailure = r.publish(a.pages, a.late)
	}
	if !started || a.startedAt.IsZero() || ctx.Err() != nil && (a.publishFailure != nil || len(a.published.refreshes) == 0) {
		r.updateHealth(func(h *Health) { h.Running = time.Time{} }) // the node is stopping; not the source's fault
		return tryResult{}, false
	}
	a.endedAt, r.pending = c.now(), false
	r.record(a)
	return a, true
}

// publishOutcome is the result of publishing the rates of a try. The receipt tells which observations the engine
// accepted.
type publishOutcome struct {
	refreshes    []engine.Refresh
	historyCount int // refreshes[:historyCount] contain past days, the others current quotes
	receipt      engine.Receipt
}

// publish publishes the rates of the pages read, and updates the Baseline. It returns a failure after an error or panic
// of Config.Sink, and if the engine rejects all rates.
func (r *runner) publish(outcome pageResults, late bool) (published publishOutcome, failure *source.Failure) {
	if len(outcome.succeeded()) == 0 {
		return publishOutcome{}, nil
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			published, failure = publishOutcome{}, r.collector.panicFailure(r.definition, panicked)
		}
	}()
	observedAt := r.collector.now().Truncate(time.Second) // the API publishes times in whole seconds
	results := trimHistory(outcome.results, r.collector.config.HistoryDays, observedAt)
	published.refreshes = publishable(BuildRefreshes(r.definition, results, observedAt, r.slot))
	isCurrent := func(refresh engine.Refresh) bool { return !refresh.Slot.IsZero() }
	if published.historyCount = slices.IndexFunc(published.refreshes, isCurrent); published.historyCount < 0 {
		published.historyCount = len(published.refreshes)
	}
	current, learnt := published.refreshes[published.historyCount:], r.learnt
	if !late {
		learnt = r.learnt.after(r.runOf(results, observedAt))
	}
	for i := range current {
		switch {
		case late: // the engine accepts a source and currency only once for a slot
			current[i].Slot, current[i].Complete = time.Time{}, false
		case i == len(current)-1: // rates and Baseline become durable together
			current[i].Baseline = learnt.Encode()
		}
	}
	if len(published.refreshes) > 0 {
		if published.receipt, failure = r.observe(published.refreshes); failure != nil {
			return publishOutcome{}, failure
		}
	}
	r.learnt = learnt
	return published, published.failure()
}

// runOf returns the quotes of a try for the baseline.
func (r *runner) runOf(results []source.Result, at time.Time) baselineRun {
	run := baselineRun{slot: r.slot, at: at, complete: func(currency string) bool { return isCurrencyComplete(r.definition, results, currency) }}
	for i := range results {
		run.observations = append(run.observations, results[i].Observations...)
	}
	return run
}

func (r *runner) observe(refreshes []engine.Refresh) (engine.Receipt, *source.Failure) {
	receipt, err := r.collector.config.Sink.Observe(refreshes)
	if err != nil {
		failure := source.Failf(source.Internal, "publish %d refreshes: %v", len(refreshes), err)
		failure.Cause = err
		return engine.Receipt{}, failure
	}
	return receipt, nil
}
