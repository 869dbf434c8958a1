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

// clockCheckMax is how long a source sleeps at most before it looks at the clock again: a laptop that wakes up, or a clock
// that was set, must not let it sleep through a slot.
const clockCheckMax = time.Minute

// clockErrorMin is how far in the future a slot must lie that is said to be done, until it is taken for the work of a clock
// that was wrong. Believing it would keep the source silent until then.
const clockErrorMin = 24 * time.Hour

// jitterSteps is the whole of a spread.
const jitterSteps = 1 << 16

// runner collects one source, in a goroutine of its own. What is below definition belongs to that goroutine, except health.
type runner struct {
	collector  *Collector
	definition *source.Definition
	random     *rand.Rand

	slot                time.Time       // newest that was begun, skipped or done: never begun again
	catchUp             bool            // a slot that is due now is made up for
	pendingPages        []int           // pages of the slot that have not been handed over; none = the slot is over
	results             []source.Result // by page: what the slot has brought so far
	publishedCurrencies map[string]bool // currencies that the slot was handed over for
	tries               int             // in the slot
	due                 time.Time       // of the next try at the open pages
	readAny             bool            // something could be read in the slot
	jitterShare         time.Duration   // of the spread, in 1/shareMax, that is the offset of the slot which begins next
	breaker             circuitBreaker
	changes             changeDetector
	loggedNotes         map[string]bool // notes that stand in the log

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

// drawJitter draws the offset of the next slot, which NextRun can so foretell.
func (r *runner) drawJitter() { r.jitterShare = time.Duration(r.random.IntN(jitterSteps + 1)) }

// offset is the offset in a spread.
func (r *runner) offset(spread time.Duration) time.Duration {
	return spread * r.jitterShare / jitterSteps
}

// resume takes over from the process before what is done already.
func (r *runner) resume(done time.Time) {
	r.slot = done
	r.updateHealth(func(h *Health) { h.LastSlot = done })
}

// run collects until ctx ends.
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

// pause waits by the monotonic clock.
func pause(ctx context.Context, span time.Duration) {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// plan says when to try next, and begins a slot when a new one has come. Of several that have come only the newest counts.
func (r *runner) plan(now time.Time) time.Time {
	if r.slot.After(now.Add(clockErrorMin)) {
		r.collector.config.Logger.Warn("a slot in the future is said to be done; the clock was wrong, then or now",
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

// header turns to a new slot, if the breaker lets; what the one before still lacked is given up.
func (r *runner) beginSlot(slot, now time.Time) {
	if len(r.pendingPages) > 0 && r.tries > 0 {
		r.finishSlot()
	}
	r.slot, r.pendingPages, r.tries, r.readAny, r.publishedCurrencies = slot, nil, 0, false, map[string]bool{}
	if !r.breaker.allows(slot) {
		return
	}
	spread := r.jitterSpan(slot)
	r.due = slot.Add(r.offset(spread))
	if r.catchUp || now.After(slot.Add(spread)) {
		r.due = now.Add(r.offset(min(catchUpJitterMax, spread)))
	}
	r.drawJitter()
	r.pendingPages, r.results = allPages(r.definition), make([]source.Result, len(r.definition.Pages))
	r.updateHealth(func(h *Health) { h.Counts = Counts{} })
}

// jitterSpan is how long after a slot the last source is asked: the slots of a demo may be seconds apart.
func (r *runner) jitterSpan(slot time.Time) time.Duration {
	return min(r.collector.config.Jitter, r.collector.config.Schedule.Next(slot).Sub(slot)/2)
}

// nextRun is when the next slot is tried that the breaker lets, and which has not been done.
func (r *runner) nextRun(now time.Time) time.Time {
	schedule := r.collector.config.Schedule
	after := now
	if r.slot.After(now) { // the clock went back
		after = r.slot
	}
	slot := schedule.Next(after)
	if !r.breaker.allows(slot) {
		slot = schedule.Next(r.breaker.nextProbe().Start().Add(-time.Nanosecond))
	}
	return slot.Add(r.offset(r.jitterSpan(slot)))
}

// try asks for the open pages of the slot, hands over what they say, and decides how the slot goes on.
func (r *runner) try(ctx context.Context) {
	c := r.collector
	var read pageResults
	var began time.Time
	asked := c.runLimited(ctx, func(budget context.Context) {
		if !c.config.Schedule.Last(c.now()).Equal(r.slot) {
			return // a newer slot came while this source waited for its place
		}
		began = c.now()
		r.updateHealth(func(h *Health) { h.Running, h.LastTry = began, began })
		read = c.read(budget, r.definition, r.pendingPages)
	})
	if !asked || began.IsZero() || ctx.Err() != nil {
		r.updateHealth(func(h *Health) { h.Running = time.Time{} })
		return
	}
	handed, refused := r.publish(read)
	if ctx.Err() != nil && refused != nil { // the node is going down: that says nothing about the source
		r.updateHealth(func(h *Health) { h.Running = time.Time{} })
		return
	}
	r.tries++
	r.finishTry(attempt{began: began, ended: c.now(), pages: read, published: handed, publishFailure: refused})
}

// publishOutcome is what the engine made of a try.
type publishOutcome struct {
	refreshes    []engine.Refresh
	historyCount int // how many of the first refreshes are history
	receipt      engine.Receipt
}

// publish hands over what was read. A panic on the way, be it of the sink, is a failure like any other; so is an answer of which
// the rules believe nothing, but that is the engine's last word for this slot.
func (r *runner) publish(read pageResults) (handed publishOutcome, failure *source.Failure) {
	pages := read.succeeded()
	if len(pages) == 0 {
		return publishOutcome{}, nil
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			handed, failure = publishOutcome{}, r.collector.panicFailure(r.definition, thrown)
		}
	}()
	handed.refreshes, handed.historyCount = r.unpublished(read)
	if len(handed.refreshes) > 0 {
		if handed.receipt, failure = r.observe(handed.refreshes); failure != nil {
			return publishOutcome{}, failure
		}
	}
	for _, page := range pages {
		r.results[page] = read.results[page]
	}
	for i := range handed.refreshes {
		if refresh := &handed.refreshes[i]; !refresh.Slot.IsZero() {
			for j := range refresh.Observations {
				r.publishedCurrencies[refresh.Observations[j].Currency] = true
			}
		}
	}
	r.pendingPages = slices.DeleteFunc(r.pendingPages, func(page int) bool { return slices.Contains(pages, page) })
	return handed, handed.failure()
}

// unpublished is what to hand over, and how much of it is history, which comes first.
func (r *runner) unpublished(read pageResults) (handed []engine.Refresh, past int) {
	at := r.collector.now().Truncate(time.Second) // as they are published
	late := trimHistory(read.results, r.collector.config.HistoryDays, at)
	answers := slices.Clone(r.results)
	for _, page := range read.succeeded() {
		answers[page] = late[page]
	}
	all := BuildRefreshes(r.definition, withHistory(answers, late), at, r.slot)
	for past < len(all) && all[past].Slot.IsZero() {
		past++
	}
	return selectUnpublished(all, r.publishedCurrencies, late), past
}

// observe hands over to the sink, whose errors are our own fault.
func (r *runner) observe(refreshes []engine.Refresh) (engine.Receipt, *source.Failure) {
	receipt, err := r.collector.config.Sink.Observe(refreshes)
	if err != nil {
		failure := source.Failf(source.Internal, "hand over %d refreshes: %v", len(refreshes), err)
		failure.Cause = err
		return engine.Receipt{}, failure
	}
	return receipt, nil
}

// record writes down how the try went, and decides whether there is another one in the slot.
func (r *runner) finishTry(a attempt) {
	r.readAny = r.readAny || len(a.pages.succeeded()) > 0
	r.record(a)
	if due, heals := r.nextRetry(a.pages); heals {
		r.due = due
	} else {
		r.finishSlot()
	}
}

// finishSlot ends the slot, whatever is still open.
func (r *runner) finishSlot() {
	r.pendingPages, r.results = nil, nil
	rested := r.breaker.open()
	r.breaker.record(r.slot, r.readAny)
	if r.breaker.open() {
		r.openCircuit(!rested)
	}
}

// nextRetry is when the open pages are tried again. A site that does not want us is not asked again before the next slot.
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
