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

// shareMax is the whole of a spread.
const shareMax = 1 << 16

// runner collects one source, in a goroutine of its own. What is below definition belongs to that goroutine, except health.
type runner struct {
	collector  *Collector
	definition *source.Definition
	random     *rand.Rand

	slot     time.Time       // newest that was begun, skipped or done: never begun again
	starting bool            // a slot that is due now is made up for
	open     []int           // pages of the slot that have not been handed over; none = the slot is over
	answers  []source.Answer // by page: what the slot has brought so far
	heard    map[string]bool // currencies that the slot was handed over for
	tries    int             // in the slot
	due      time.Time       // of the next try at the open pages
	readAny  bool            // something could be read in the slot
	share    time.Duration   // of the spread, in 1/shareMax, that is the offset of the slot which begins next
	breaker  breaker
	watch    watch
	told     map[string]bool // notes that stand in the log

	mu     sync.Mutex
	health Health
}

func newRunner(c *Collector, d *source.Definition, random *rand.Rand) *runner {
	r := &runner{
		collector: c, definition: d, random: random, starting: true,
		breaker: breaker{after: c.config.RestAfter, days: c.config.RestDays}, watch: newWatch(), told: map[string]bool{},
		health: newHealth(d),
	}
	r.draw()
	return r
}

// draw draws the offset of the next slot, which NextRun can so foretell.
func (r *runner) draw() { r.share = time.Duration(r.random.IntN(shareMax + 1)) }

// offset is the offset in a spread.
func (r *runner) offset(spread time.Duration) time.Duration { return spread * r.share / shareMax }

// resume takes over from the process before what is done already.
func (r *runner) resume(done time.Time) {
	r.slot = done
	r.note(func(h *Health) { h.LastSlot = done })
}

// run collects until ctx ends.
func (r *runner) run(ctx context.Context) {
	for ctx.Err() == nil {
		now := r.collector.now()
		due := r.plan(now)
		r.note(func(h *Health) { h.NextRun = due })
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
		r.begin(newest, now)
	}
	r.starting = false
	if len(r.open) > 0 {
		return r.due
	}
	return r.nextRun(now)
}

// begin turns to a new slot, if the breaker lets; what the one before still lacked is given up.
func (r *runner) begin(slot, now time.Time) {
	if len(r.open) > 0 && r.tries > 0 {
		r.finish()
	}
	r.slot, r.open, r.tries, r.readAny, r.heard = slot, nil, 0, false, map[string]bool{}
	if !r.breaker.lets(slot) {
		return
	}
	spread := r.spread(slot)
	r.due = slot.Add(r.offset(spread))
	if r.starting || now.After(slot.Add(spread)) {
		r.due = now.Add(r.offset(min(r.collector.config.CatchUpSpread, spread)))
	}
	r.draw()
	r.open, r.answers = everyPage(r.definition), make([]source.Answer, len(r.definition.Pages))
	r.note(func(h *Health) { h.Tally = Tally{} })
}

// spread is how long after a slot the last source is asked: the slots of a demo may be seconds apart.
func (r *runner) spread(slot time.Time) time.Duration {
	return min(r.collector.config.Spread, r.collector.config.Schedule.Next(slot).Sub(slot)/2)
}

// nextRun is when the next slot is tried that the breaker lets, and which has not been done.
func (r *runner) nextRun(now time.Time) time.Time {
	schedule := r.collector.config.Schedule
	after := now
	if r.slot.After(now) { // the clock went back
		after = r.slot
	}
	slot := schedule.Next(after)
	if !r.breaker.lets(slot) {
		slot = schedule.Next(r.breaker.wakes().Start().Add(-time.Nanosecond))
	}
	return slot.Add(r.offset(r.spread(slot)))
}

// try asks for the open pages of the slot, hands over what they say, and decides how the slot goes on.
func (r *runner) try(ctx context.Context) {
	c := r.collector
	var read reading
	var began time.Time
	asked := c.within(ctx, func(budget context.Context) {
		if !c.config.Schedule.Last(c.now()).Equal(r.slot) {
			return // a newer slot came while this source waited for its place
		}
		began = c.now()
		r.note(func(h *Health) { h.Running, h.LastTry = began, began })
		read = c.read(budget, r.definition, r.open)
	})
	if !asked || began.IsZero() || ctx.Err() != nil {
		r.note(func(h *Health) { h.Running = time.Time{} })
		return
	}
	handed, refused := r.publish(read)
	if ctx.Err() != nil && refused != nil { // the node is going down: that says nothing about the source
		r.note(func(h *Health) { h.Running = time.Time{} })
		return
	}
	r.tries++
	r.settle(attempt{began: began, ended: c.now(), read: read, handed: handed, refused: refused})
}

// handover is what the engine made of a try.
type handover struct {
	refreshes []engine.Refresh
	past      int // how many of the first refreshes are history
	receipt   engine.Receipt
}

// publish hands over what was read. A panic on the way, be it of the sink, is a failure like any other; so is an answer of which
// the rules believe nothing, but that is the engine's last word for this slot.
func (r *runner) publish(read reading) (handed handover, failure *source.Failure) {
	pages := read.answered()
	if len(pages) == 0 {
		return handover{}, nil
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			handed, failure = handover{}, r.collector.panicked(r.definition, thrown)
		}
	}()
	handed.refreshes, handed.past = r.refreshes(read)
	if len(handed.refreshes) > 0 {
		if handed.receipt, failure = r.hand(handed.refreshes); failure != nil {
			return handover{}, failure
		}
	}
	for _, page := range pages {
		r.answers[page] = read.answers[page]
	}
	for i := range handed.refreshes {
		if refresh := &handed.refreshes[i]; !refresh.Slot.IsZero() {
			for j := range refresh.Observations {
				r.heard[refresh.Observations[j].Currency] = true
			}
		}
	}
	r.open = slices.DeleteFunc(r.open, func(page int) bool { return slices.Contains(pages, page) })
	return handed, handed.implausible()
}

// refreshes is what to hand over, and how much of it is history, which comes first.
func (r *runner) refreshes(read reading) (handed []engine.Refresh, past int) {
	at := r.collector.now().Truncate(time.Second) // as they are published
	late := recent(read.answers, r.collector.config.HistoryDays, at)
	answers := slices.Clone(r.answers)
	for _, page := range read.answered() {
		answers[page] = late[page]
	}
	all := Refreshes(r.definition, withHistory(answers, late), at, r.slot)
	for past < len(all) && all[past].Slot.IsZero() {
		past++
	}
	return handing(all, r.heard, late), past
}

// hand hands over to the sink, whose errors are our own fault.
func (r *runner) hand(refreshes []engine.Refresh) (engine.Receipt, *source.Failure) {
	receipt, err := r.collector.config.Sink.Observe(refreshes)
	if err != nil {
		failure := source.Fail(source.Internal, "hand over %d refreshes: %v", len(refreshes), err)
		failure.Cause = err
		return engine.Receipt{}, failure
	}
	return receipt, nil
}

// settle writes down how the try went, and decides whether there is another one in the slot.
func (r *runner) settle(a attempt) {
	r.readAny = r.readAny || len(a.read.answered()) > 0
	r.write(a)
	if due, heals := r.retry(a.read); heals {
		r.due = due
	} else {
		r.finish()
	}
}

// finish ends the slot, whatever is still open.
func (r *runner) finish() {
	r.open, r.answers = nil, nil
	rested := r.breaker.resting()
	r.breaker.settle(r.slot, r.readAny)
	if r.breaker.resting() {
		r.rest(!rested)
	}
}

// retry is when the open pages are tried again. A site that does not want us is not asked again before the next slot.
func (r *runner) retry(read reading) (time.Time, bool) {
	config := &r.collector.config
	if len(r.open) == 0 || r.tries > len(config.RetryAfter) || r.breaker.resting() {
		return time.Time{}, false
	}
	blocked := func(p PageReport) bool { return p.Failure != nil && p.Failure.Kind == source.Blocked }
	if slices.ContainsFunc(read.pages, blocked) {
		return time.Time{}, false
	}
	due := r.collector.now().Add(config.RetryAfter[r.tries-1])
	return due, due.Add(config.Budget).Before(config.Schedule.Next(r.slot))
}
