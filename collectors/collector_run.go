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

// clockCheckMax is how long a source sleeps before it reads the clock again, so that a suspended machine or a clock
// that was set does not make it miss a slot.
const clockCheckMax = time.Minute

// clockErrorMin is how far a last slot must be in the future to be ignored as the result of a wrong clock. Otherwise
// the source would be silent until then.
const clockErrorMin = 24 * time.Hour

// jitterSteps is the resolution of jitterShare.
const jitterSteps = 1 << 16

// runner collects one source in a goroutine of its own. The fields between definition and mu belong to that
// goroutine.
type runner struct {
	collector  *Collector
	definition *source.Definition
	random     *rand.Rand

	slot                time.Time       // the newest slot that was begun, skipped or done: it is never begun again
	catchUp             bool            // a slot that is due now is made up for
	pendingPages        []int           // pages of the slot that have not been published; none = the slot is over
	results             []source.Result // by page: what was read in the slot
	publishedCurrencies map[string]bool // currencies that were published for the slot
	tries               int             // in the slot
	due                 time.Time       // of the next try at the pending pages
	readAny             bool            // a page of the slot could be read
	jitterShare         time.Duration   // the offset of the next slot, in 1/jitterSteps of the jitter
	breaker             circuitBreaker
	changes             changeDetector
	loggedNotes         map[string]bool // notes that are in the log

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

// drawJitter draws the offset of the next slot in advance, so that NextRun is known.
func (r *runner) drawJitter() { r.jitterShare = time.Duration(r.random.IntN(jitterSteps + 1)) }

func (r *runner) offset(span time.Duration) time.Duration {
	return span * r.jitterShare / jitterSteps
}

// resume sets the newest slot that is done, by an earlier process.
func (r *runner) resume(done time.Time) {
	r.slot = done
	r.updateHealth(func(h *Health) { h.LastSlot = done })
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

// plan returns the time of the next try. It begins a slot if a new one has come, only the newest of several.
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

// beginSlot begins a new slot, unless the circuit breaker skips it. Pages that are still pending are given up.
func (r *runner) beginSlot(slot, now time.Time) {
	if len(r.pendingPages) > 0 && r.tries > 0 {
		r.finishSlot()
	}
	r.slot, r.pendingPages, r.tries, r.readAny, r.publishedCurrencies = slot, nil, 0, false, map[string]bool{}
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

// jitterSpan limits the jitter of a slot: the slots of a demo may be seconds apart.
func (r *runner) jitterSpan(slot time.Time) time.Duration {
	return min(r.collector.config.Jitter, r.collector.config.Schedule.Next(slot).Sub(slot)/2)
}

// nextRun returns the time of the next slot that is not done and that the circuit breaker allows.
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

// try reads the pending pages, publishes the result, and decides how the slot continues.
func (r *runner) try(ctx context.Context) {
	c := r.collector
	var read pageResults
	var began time.Time
	ran := c.runLimited(ctx, func(ctx context.Context) {
		if !c.config.Schedule.Last(c.now()).Equal(r.slot) {
			return // a newer slot came while this source waited
		}
		began = c.now()
		r.updateHealth(func(h *Health) { h.Running, h.LastTry = began, began })
		read = c.read(ctx, r.definition, r.pendingPages)
	})
	if !ran || began.IsZero() || ctx.Err() != nil {
		r.updateHealth(func(h *Health) { h.Running = time.Time{} })
		return
	}
	published, failure := r.publish(read)
	if ctx.Err() != nil && failure != nil { // the node is stopping: that says nothing about the source
		r.updateHealth(func(h *Health) { h.Running = time.Time{} })
		return
	}
	r.tries++
	r.finishTry(attempt{began: began, ended: c.now(), pages: read, published: published, publishFailure: failure})
}

// publishOutcome is what the engine made of a try.
type publishOutcome struct {
	refreshes    []engine.Refresh
	historyCount int // how many of the first refreshes are history
	receipt      engine.Receipt
}

// publish publishes what was read. A panic of the sink is a failure of the try. If the rules accept no observation
// that is a failure too, but it is final for the slot.
func (r *runner) publish(read pageResults) (published publishOutcome, failure *source.Failure) {
	pages := read.succeeded()
	if len(pages) == 0 {
		return publishOutcome{}, nil
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			published, failure = publishOutcome{}, r.collector.panicFailure(r.definition, panicked)
		}
	}()
	published.refreshes, published.historyCount = r.unpublished(read)
	if len(published.refreshes) > 0 {
		if published.receipt, failure = r.observe(published.refreshes); failure != nil {
			return publishOutcome{}, failure
		}
	}
	for _, page := range pages {
		r.results[page] = read.results[page]
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

// unpublished returns the refreshes to publish, of which the first historyCount are history.
func (r *runner) unpublished(read pageResults) (refreshes []engine.Refresh, historyCount int) {
	at := r.collector.now().Truncate(time.Second) // the resolution in which instants are published
	late := trimHistory(read.results, r.collector.config.HistoryDays, at)
	results := slices.Clone(r.results)
	for _, page := range read.succeeded() {
		results[page] = late[page]
	}
	all := BuildRefreshes(r.definition, withHistory(results, late), at, r.slot)
	for historyCount < len(all) && all[historyCount].Slot.IsZero() {
		historyCount++
	}
	return selectUnpublished(all, r.publishedCurrencies, late), historyCount
}

// observe calls the sink, whose errors are internal failures.
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
	r.readAny = r.readAny || len(a.pages.succeeded()) > 0
	r.record(a)
	if due, again := r.nextRetry(a.pages); again {
		r.due = due
	} else {
		r.finishSlot()
	}
}

// finishSlot ends the slot, with whatever pages are pending.
func (r *runner) finishSlot() {
	r.pendingPages, r.results = nil, nil
	wasOpen := r.breaker.open()
	r.breaker.record(r.slot, r.readAny)
	if r.breaker.open() {
		r.openCircuit(!wasOpen)
	}
}

// nextRetry returns when the pending pages are tried again in this slot, false = not at all. A site that blocks us is
// not asked again.
func (r *runner) nextRetry(read pageResults) (time.Time, bool) {
	config := &r.collector.config
	if len(r.pendingPages) == 0 || r.tries > len(config.RetryAfter) || r.breaker.open() {
		return time.Time{}, false
	}
	blocked := func(p PageReport) bool { return p.Failure != nil && p.Failure.Kind == source.Blocked }
	if slices.ContainsFunc(read.pages, blocked) {
		return time.Time{}, false
	}
	due := r.collector.now().Add(config.RetryAfter[r.tries-1])
	return due, due.Add(sourceTimeout).Before(config.Schedule.Next(r.slot))
}
