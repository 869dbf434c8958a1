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

// clockCheckMax is the longest wait of a runner before it reads the clock again. Otherwise it would not notice that the
// clock was set, or that the machine was suspended.
const clockCheckMax = time.Minute

// clockErrorMin is how far runner.slot, the newest scheduled time, may be in the future. A later slot comes from a
// wrong clock and is ignored. Otherwise the source would not be collected until the clock reaches that slot.
const clockErrorMin = 24 * time.Hour

// jitterSteps is the denominator of a random share of the jitter. runner.jitterShare, from 0 to jitterSteps, is the
// numerator.
const jitterSteps = 1 << 16

// runner fetches one source at each scheduled time (slot) and publishes its rates. Only its goroutine (run) uses the
// fields from random to loggedNotes.
type runner struct {
	collector  *Collector
	definition *source.Definition
	random     *rand.Rand

	slot                time.Time         // the current slot: the newest that was begun or skipped
	catchUp             bool              // plan was not called yet; its first call may begin a slot that was missed
	pendingPages        []int             // pages still to be published for the slot; empty = the slot is done
	results             []source.Result   // results of the slot so far, by index in Definition.Pages
	publishedCurrencies map[string]bool   // currencies that were published for the slot
	tries               int               // number of tries in the slot
	nextTry             time.Time         // when pendingPages are tried next
	anyRead             bool              // a page was read in the slot
	again               bool              // the slot is over, and its pages are read again for RunNow, without a slot
	jitterShare         time.Duration     // the next slot has the jitter jitterSpan*jitterShare/jitterSteps
	breaker             circuitBreaker    // skips slots of a source that keeps failing
	before, learnt      Baseline // what was known of the source before the slot, and what is known now
	loggedNotes         map[string]bool   // notes that have been logged

	requests chan chan<- attempt // of RunNow; each gets at most one attempt, and is closed

	mu     sync.Mutex
	health Health // guarded by mu
}

func newRunner(c *Collector, d *source.Definition, random *rand.Rand) *runner {
	r := &runner{
		collector: c, definition: d, random: random, catchUp: true,
		breaker: circuitBreaker{failuresToOpen: c.config.BreakerFailures}, loggedNotes: map[string]bool{},
		requests: make(chan chan<- attempt), health: newHealth(d),
	}
	r.drawJitter()
	return r
}

// drawJitter sets the random jitter of the next slot. The jitter is needed in advance, because Health.NextRun includes
// it.
func (r *runner) drawJitter() { r.jitterShare = time.Duration(r.random.IntN(jitterSteps + 1)) }

func (r *runner) offset(span time.Duration) time.Duration {
	return span * r.jitterShare / jitterSteps
}

// resume sets the current slot to the newest slot for which an earlier process has published the rates of the source,
// and restores what that process has learnt about the source.
func (r *runner) resume(slot time.Time, learnt string) {
	r.slot = slot
	var err error
	if r.learnt, err = DecodeBaseline(learnt); err != nil {
		r.collector.config.Logger.Warn("what the source usually gives is forgotten and learnt again", "source", r.definition.ID, "cause", err.Error())
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

// pause waits until the span has passed, ctx ends, or RunNow asks for a try, which it makes.
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

// plan returns the time of the next try. If the time of a newer slot has come, it first makes that slot the current
// one.
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
		return r.nextTry
	}
	return r.nextRun(now)
}

// beginSlot makes slot the current one, and all pages become pending. Pages of the previous slot are not tried any
// more. If the circuit breaker, which skips slots of a source that keeps failing, does not allow the slot, no page
// becomes pending.
func (r *runner) beginSlot(slot, now time.Time) {
	if len(r.pendingPages) > 0 && r.tries > 0 {
		r.finishSlot()
	}
	r.slot, r.pendingPages, r.tries, r.anyRead, r.publishedCurrencies = slot, nil, 0, false, map[string]bool{}
	r.again, r.before = false, r.learnt
	if !r.breaker.allows(slot) {
		return
	}
	span := r.jitterSpan(slot)
	r.nextTry = slot.Add(r.offset(span))
	if r.catchUp || now.After(slot.Add(span)) {
		r.nextTry = now.Add(r.offset(min(catchUpJitterMax, span)))
	}
	r.drawJitter()
	r.pendingPages, r.results = allPages(r.definition), make([]source.Result, len(r.definition.Pages))
	r.updateHealth(func(h *Health) { h.Counts = Counts{} })
}

// jitterSpan returns the maximum jitter of a slot: Config.Jitter, but at most half the time to the next slot, because
// in a demo slots may be seconds apart.
func (r *runner) jitterSpan(slot time.Time) time.Duration {
	return min(r.collector.config.Jitter, r.collector.config.Schedule.Next(slot).Sub(slot)/2)
}

// nextRun returns the time of the first try in the next slot that the circuit breaker allows.
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

// try reads the pending pages and publishes the results. Then it schedules another try, or ends the slot. It returns
// false if it has read nothing, because ctx ended or a newer slot began.
func (r *runner) try(ctx context.Context) (attempt, bool) {
	c := r.collector
	var outcome pageResults
	var startedAt time.Time
	started := c.runLimited(ctx, func(ctx context.Context) {
		if !c.config.Schedule.Last(c.now()).Equal(r.slot) {
			return // a newer slot began during the wait for the semaphore
		}
		startedAt = c.now()
		r.updateHealth(func(h *Health) { h.Running, h.LastTry = startedAt, startedAt })
		outcome = c.read(ctx, r.definition, r.pendingPages)
	})
	if !started || startedAt.IsZero() || ctx.Err() != nil {
		r.updateHealth(func(h *Health) { h.Running = time.Time{} })
		return attempt{}, false
	}
	published, failure := r.publish(outcome)
	if ctx.Err() != nil && failure != nil { // the node is stopping; the source is not to blame
		r.updateHealth(func(h *Health) { h.Running = time.Time{} })
		return attempt{}, false
	}
	r.tries++
	a := attempt{startedAt: startedAt, endedAt: c.now(), pages: outcome, published: published, publishFailure: failure}
	r.finishTry(a)
	return a, true
}

// publishOutcome is the result of publishing the rates of a try. A refresh has rates of the source at one time
// (observations); the receipt says which of them the engine accepted.
type publishOutcome struct {
	refreshes    []engine.Refresh
	historyCount int // refreshes[:historyCount] have past days, the others current quotes
	receipt      engine.Receipt
	learnt       Baseline // what is known of the source after the try
}

// publish publishes the rates of the pages that were read. After an error or panic of Config.Sink it returns a failure,
// and the pages stay pending. If the engine rejects all rates, publish returns a failure too, but the pages are not
// tried again: they would give the same rates.
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
	published.refreshes, published.historyCount, published.learnt = r.unpublished(outcome)
	if len(published.refreshes) > 0 {
		if published.receipt, failure = r.observe(published.refreshes); failure != nil {
			return publishOutcome{}, failure
		}
	}
	r.learnt = published.learnt
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

// unpublished returns the refreshes that must be published after a try, and what is learnt from the slot so far. The
// first historyCount refreshes have past days. The last one carries what is learnt, so that both become durable
// together; if no refresh has a slot, the next slot does.
func (r *runner) unpublished(outcome pageResults) (refreshes []engine.Refresh, historyCount int, learnt Baseline) {
	observedAt := r.collector.now().Truncate(time.Second) // the API publishes times in whole seconds
	newResults := trimHistory(outcome.results, r.collector.config.HistoryDays, observedAt)
	results := slices.Clone(r.results)
	for _, page := range outcome.succeeded() {
		results[page] = newResults[page]
	}
	all := BuildRefreshes(r.definition, withHistory(results, newResults), observedAt, r.slot)
	for historyCount < len(all) && all[historyCount].Slot.IsZero() {
		historyCount++
	}
	refreshes = selectUnpublished(all, r.published(all), newResults)
	learnt = r.before.after(r.runOf(results, observedAt))
	for i := len(refreshes) - 1; i >= historyCount; i-- {
		if !refreshes[i].Slot.IsZero() {
			refreshes[i].Baseline = learnt.Encode()
			break
		}
	}
	return refreshes, historyCount, learnt
}

// runOf returns what all tries of the slot have read, for learning.
func (r *runner) runOf(results []source.Result, at time.Time) baselineRun {
	run := baselineRun{slot: r.slot, at: at, complete: func(currency string) bool {
		return isCurrencyComplete(r.definition, results, currency)
	}}
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

// finishTry updates the health of the source after a try. It schedules the next try, or ends the slot.
func (r *runner) finishTry(a attempt) {
	r.anyRead = r.anyRead || len(a.pages.succeeded()) > 0
	r.record(a)
	if next, again := r.nextRetry(a.pages); again {
		r.nextTry = next
	} else {
		r.finishSlot()
	}
}

// finishSlot ends the slot. Pages that are still pending are not tried again.
func (r *runner) finishSlot() {
	wasOpen := r.breaker.open()
	if r.anyRead || !r.again { // only a slot counts as a failure
		r.breaker.record(r.slot, r.anyRead)
	}
	r.pendingPages, r.results, r.again = nil, nil, false
	if r.breaker.open() {
		r.openCircuit(!wasOpen)
	}
}

// nextRetry returns when the pending pages are tried again. It returns false if they are not tried again in this slot,
// for example because the site has blocked us.
func (r *runner) nextRetry(outcome pageResults) (time.Time, bool) {
	config := &r.collector.config
	if len(r.pendingPages) == 0 || r.tries > len(config.RetryAfter) || r.breaker.open() {
		return time.Time{}, false
	}
	blocked := func(p PageReport) bool { return p.Failure != nil && p.Failure.Kind == source.Blocked }
	if slices.ContainsFunc(outcome.pages, blocked) {
		return time.Time{}, false
	}
	next := r.collector.now().Add(config.RetryAfter[r.tries-1])
	return next, next.Add(sourceTimeout).Before(config.Schedule.Next(r.slot))
}
