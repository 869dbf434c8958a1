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

// clockCheckMax is the longest time before a source reads the clock again, so that it does not miss a slot after the
// clock was set or the machine was suspended.
const clockCheckMax = time.Minute

// clockErrorMin is how far the last slot may be in the future. A later one comes from a wrong clock and is ignored;
// otherwise the source would not be read until then.
const clockErrorMin = 24 * time.Hour

// jitterSteps is the number of different values of jitterShare.
const jitterSteps = 1 << 16

// runner collects one source in its own goroutine. Only that goroutine uses the fields between definition and mu.
type runner struct {
	collector  *Collector
	definition *source.Definition
	random     *rand.Rand

	slot                time.Time       // the newest slot that was begun or skipped; it is not begun again
	catchUp             bool            // whether a slot that is due now was missed before the start
	pendingPages        []int           // pages of the slot that have not been published; empty = the slot is over
	results             []source.Result // by page: the results of the slot so far
	publishedCurrencies map[string]bool // currencies that were published for the slot
	tries               int             // number of tries in the slot
	due                 time.Time       // when the pending pages are tried next
	anyRead             bool            // whether any page was read in the slot
	jitterShare         time.Duration   // the random part of the jitter used for the next slot, in 1/jitterSteps
	breaker             circuitBreaker
	changes             changeDetector
	loggedNotes         map[string]bool // notes that have been logged

	mu     sync.Mutex
	health Health
}

func newRunner(c *Collector, d *source.Definition, random *rand.Rand) *runner {
	r := &runner{
		collector: c, definition: d, random: random, catchUp: true,
		breaker: circuitBreaker{failuresToOpen: c.config.BreakerFailures}, changes: newChangeDetector(), loggedNotes: map[string]bool{},
		health: newHealth(d),
	}
	r.drawJitter()
	return r
}

// drawJitter draws the jitter of the next slot in advance, so that NextRun is known.
func (r *runner) drawJitter() { r.jitterShare = time.Duration(r.random.IntN(jitterSteps + 1)) }

func (r *runner) offset(span time.Duration) time.Duration {
	return span * r.jitterShare / jitterSteps
}

// resume sets the newest slot that an earlier process has published.
func (r *runner) resume(slot time.Time) {
	r.slot = slot
	r.updateHealth(func(h *Health) { h.LastSlot = slot })
}

func (r *runner) run(ctx context.Context) {
	for ctx.Err() == nil {
		now := r.collector.now()
		due := r.plan(now)
		r.updateHealth(func(h *Health) { h.NextRun = due })
		if wait := due.Sub(now); wait > 0 {
			pause(ctx, min(wait, clockCheckMax))
		} else {
			r.try(ctx)
		}
	}
}

// pause waits for a span, or until ctx ends.
func pause(ctx context.Context, span time.Duration) {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// plan returns the time of the next try. If new slots have come, it begins the newest of them.
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
	if len(r.pendingPages) > 0 {
		return r.due
	}
	return r.nextRun(now)
}

// beginSlot begins a new slot, unless the circuit breaker skips it. It gives up the pending pages of the previous slot.
func (r *runner) beginSlot(slot, now time.Time) {
	if len(r.pendingPages) > 0 && r.tries > 0 {
		r.finishSlot()
	}
	r.slot, r.pendingPages, r.tries, r.anyRead, r.publishedCurrencies = slot, nil, 0, false, map[string]bool{}
	if !r.breaker.allows(slot) {
		return
	}
	span := r.jitterSpan(slot)
	r.due = slot.Add(r.offset(span))
	if r.catchUp || now.After(slot.Add(span)) {
		r.due = now.Add(r.offset(min(catchUpJitterMax, span)))
	}
	r.drawJitter()
	r.pendingPages, r.results = allPages(r.definition), make([]source.Result, len(r.definition.Pages))
	r.updateHealth(func(h *Health) { h.Counts = Counts{} })
}

// jitterSpan returns the jitter of a slot. It is limited, because the slots of a demo may be seconds apart.
func (r *runner) jitterSpan(slot time.Time) time.Duration {
	return min(r.collector.config.Jitter, r.collector.config.Schedule.Next(slot).Sub(slot)/2)
}

// nextRun returns the time of the first try of the next slot that the circuit breaker allows.
func (r *runner) nextRun(now time.Time) time.Time {
	schedule := r.collector.config.Schedule
	after := now
	if r.slot.After(now) { // the clock was set back
		after = r.slot
	}
	slot := schedule.Next(after)
	if !r.breaker.allows(slot) {
		slot = schedule.Next(r.breaker.nextProbe().Start().Add(-time.Nanosecond))
	}
	return slot.Add(r.offset(r.jitterSpan(slot)))
}

// try reads the pending pages, publishes the results, and schedules another try or ends the slot.
func (r *runner) try(ctx context.Context) {
	c := r.collector
	var outcome pageResults
	var startedAt time.Time
	started := c.runLimited(ctx, func(ctx context.Context) {
		if !c.config.Schedule.Last(c.now()).Equal(r.slot) {
			return // a newer slot began while this source waited for the semaphore
		}
		startedAt = c.now()
		r.updateHealth(func(h *Health) { h.Running, h.LastTry = startedAt, startedAt })
		outcome = c.read(ctx, r.definition, r.pendingPages)
	})
	if !started || startedAt.IsZero() || ctx.Err() != nil {
		r.updateHealth(func(h *Health) { h.Running = time.Time{} })
		return
	}
	published, failure := r.publish(outcome)
	if ctx.Err() != nil && failure != nil { // the node is stopping, so the failure is not that of the source
		r.updateHealth(func(h *Health) { h.Running = time.Time{} })
		return
	}
	r.tries++
	r.finishTry(attempt{startedAt: startedAt, endedAt: c.now(), pages: outcome, published: published, publishFailure: failure})
}

// publishOutcome is the result of publishing the pages of a try.
type publishOutcome struct {
	refreshes    []engine.Refresh
	historyCount int // the first historyCount refreshes are history
	receipt      engine.Receipt
}

// publish publishes the pages that were read. An error or panic of the sink is a failure, after which the pages are
// tried again. If the rules accept no observation, that is a failure too, but the pages are not tried again.
func (r *runner) publish(outcome pageResults) (published publishOutcome, failure *source.Failure) {
	pages := outcome.succeeded()
	if len(pages) == 0 {
		return publishOutcome{}, nil
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			published, failure = publishOutcome{}, r.collector.panicFailure(r.definition, panicked)
		}
	}()
	published.refreshes, published.historyCount = r.unpublished(outcome)
	if len(published.refreshes) > 0 {
		if published.receipt, failure = r.observe(published.refreshes); failure != nil {
			return publishOutcome{}, failure
		}
	}
	for _, page := range pages {
		r.results[page] = outcome.results[page]
	}
	for i := range published.refreshes {
		if refresh := &published.refreshes[i]; !refresh.Slot.IsZero() {
			for j := range refresh.Observations {
				r.publishedCurrencies[refresh.Observations[j].Currency] = true
			}
		}
	}
	r.pendingPages = slices.DeleteFunc(r.pendingPages, func(page int) bool { return slices.Contains(pages, page) })
	return published, published.failure()
}

// unpublished returns the refreshes to publish after a try. The first historyCount of them are history.
func (r *runner) unpublished(outcome pageResults) (refreshes []engine.Refresh, historyCount int) {
	observedAt := r.collector.now().Truncate(time.Second) // instants are published in seconds
	newResults := trimHistory(outcome.results, r.collector.config.HistoryDays, observedAt)
	results := slices.Clone(r.results)
	for _, page := range outcome.succeeded() {
		results[page] = newResults[page]
	}
	all := BuildRefreshes(r.definition, withHistory(results, newResults), observedAt, r.slot)
	for historyCount < len(all) && all[historyCount].Slot.IsZero() {
		historyCount++
	}
	return selectUnpublished(all, r.publishedCurrencies, newResults), historyCount
}

// observe calls the sink. An error of the sink is a failure of kind Internal.
func (r *runner) observe(refreshes []engine.Refresh) (engine.Receipt, *source.Failure) {
	receipt, err := r.collector.config.Sink.Observe(refreshes)
	if err != nil {
		failure := source.Failf(source.Internal, "publish %d refreshes: %v", len(refreshes), err)
		failure.Cause = err
		return engine.Receipt{}, failure
	}
	return receipt, nil
}

// finishTry records a try and schedules the next one, or ends the slot.
func (r *runner) finishTry(a attempt) {
	r.anyRead = r.anyRead || len(a.pages.succeeded()) > 0
	r.record(a)
	if due, again := r.nextRetry(a.pages); again {
		r.due = due
	} else {
		r.finishSlot()
	}
}

// finishSlot ends the slot. Pages that are still pending are given up.
func (r *runner) finishSlot() {
	r.pendingPages, r.results = nil, nil
	wasOpen := r.breaker.open()
	r.breaker.record(r.slot, r.anyRead)
	if r.breaker.open() {
		r.openCircuit(!wasOpen)
	}
}

// nextRetry returns when the pending pages are tried again in this slot, or false if they are not. After a Blocked
// failure they are not.
func (r *runner) nextRetry(outcome pageResults) (time.Time, bool) {
	config := &r.collector.config
	if len(r.pendingPages) == 0 || r.tries > len(config.RetryAfter) || r.breaker.open() {
		return time.Time{}, false
	}
	blocked := func(p PageReport) bool { return p.Failure != nil && p.Failure.Kind == source.Blocked }
	if slices.ContainsFunc(outcome.pages, blocked) {
		return time.Time{}, false
	}
	due := r.collector.now().Add(config.RetryAfter[r.tries-1])
	return due, due.Add(sourceTimeout).Before(config.Schedule.Next(r.slot))
}
