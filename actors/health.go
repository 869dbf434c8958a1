package actors

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	// slowMin is how old the oldest change that is not on disk may be until the disk is called slow.
	slowMin = time.Second
	// lateSnapshots is for how many snapshots records may have come since the last one until that is called late.
	lateSnapshots = 4
)

// vitals is what is known of the journal and its disk without asking anybody. The journal actor, the writer and the keeper note, and
// everybody may look.
type vitals struct {
	clock  func() time.Time
	origin time.Time

	full     engine.Trouble // writes are refused for want of space
	slow     engine.Trouble
	failing  engine.Trouble // the last snapshot came to nothing
	late     engine.Trouble
	waiting  atomic.Int64  // when the oldest write came that waits for the writer, by age; 0 = none
	underway atomic.Int64  // the same of the batch that the writer has
	refused  atomic.Int64  // bytes of the newest batch that found no space
	sequence atomic.Uint64 // of the newest durable record
	wanted   atomic.Int64  // bytes for which there must be space before a snapshot that failed is tried again
}

// newVitals measures by the steady clock where there is one.
func newVitals(c *Config) *vitals {
	v := &vitals{clock: c.Clock, origin: c.Clock()}
	if c.Steady != nil {
		first := c.Steady()
		v.clock = func() time.Time { return v.origin.Add(c.Steady() - first) }
	}
	return v
}

// age is an instant as the atomics keep it, never zero.
func (v *vitals) age(now time.Time) int64 { return max(1, int64(now.Sub(v.origin))) }

// comes notes a write; only the oldest that waits counts.
func (v *vitals) comes() {
	if v.waiting.Load() == 0 {
		v.waiting.Store(v.age(v.clock()))
	}
}

// takes notes that the writer has what waited, or the oldest of it.
func (v *vitals) takes(all bool) {
	v.underway.Store(v.waiting.Load())
	if all {
		v.waiting.Store(0)
	}
}

// ends notes that the writer has come back.
func (v *vitals) ends() {
	v.noteSlow(v.clock())
	v.underway.Store(0)
}

// lacks notes that no change can become durable for want of a majority: no disk is slow because of that.
func (v *vitals) lacks() {
	v.waiting.Store(0)
	v.underway.Store(0)
}

// noteSlow looks at the oldest change that is not on disk.
func (v *vitals) noteSlow(now time.Time) {
	oldest := v.underway.Load()
	if oldest == 0 {
		oldest = v.waiting.Load()
	}
	if oldest == 0 {
		return
	}
	if began := v.origin.Add(time.Duration(oldest)); now.Sub(began) > slowMin {
		v.slow.SeenSince(began.Add(slowMin), now)
	}
}

// Conditions is engine.Health. It asks no actor and touches no disk.
func (s *System) Conditions() []engine.Condition {
	now := s.vitals.clock()
	all := []engine.Condition{
		s.logCondition(), s.dataCondition(), s.vitals.disk(now), s.vitals.snapshot(now), s.tenants.clock.condition(),
		s.ratesCondition(s.config.Clock()),
	}
	if s.shared != nil {
		all = append(all, clusterCondition(s.shared.Standing()))
	}
	return all
}

// clusterCondition is no_majority while too few nodes reach each other. Only a node that has others tells it.
func clusterCondition(standing Standing) engine.Condition {
	if standing.Majority {
		return engine.Well("cluster")
	}
	return engine.Condition{
		Name: "cluster", State: "no_majority", Since: standing.Since.Round(0).UTC(),
		Detail: "Too few nodes reach each other: nothing is changed here, keyed requests are refused once their lease is used up, reads go on and " +
			"may be old. Look at the other nodes and at the network between them.",
	}
}

// logCondition is that of the node as its log sees it.
func (s *System) logCondition() engine.Condition {
	s.mu.Lock()
	failed, since := s.cause != nil, s.failed
	s.mu.Unlock()
	c := engine.Condition{Name: "log", Down: true, Since: since.Round(0).UTC()}
	switch phase := s.phase.Load(); {
	case failed:
		c.State, c.Detail = "failed", "A change could not be kept or applied, so nothing is changed any more and the process ends; "+
			"look at its log, and start it again."
	case phase == replaying:
		c.State, c.Since = "recovering", s.progress.began.Round(0).UTC()
		c.Detail = fmt.Sprintf("The log is being read: %d of %d records since the last snapshot. Wait.", s.progress.done.Load(), s.progress.total.Load())
	case phase == stopping:
		c.State, c.Since, c.Detail = "stopping", time.Time{}, "The node stops; nothing is lost."
	default:
		return engine.Well("log")
	}
	return c
}

// dataCondition is empty while nothing was ever published.
func (s *System) dataCondition() engine.Condition {
	if s.phase.Load() != serving || s.loaded.Load() {
		return engine.Well("data")
	}
	return engine.Condition{
		Name: "data", State: "empty", Down: true, Detail: "No rate was ever published; let the node collect, or import observations.",
	}
}

// disk is read_only before it is slow.
func (v *vitals) disk(now time.Time) engine.Condition {
	if since, on := v.full.Since(now); on {
		return engine.Condition{
			Name: "disk", State: "read_only", Since: since,
			Detail: "The disk is nearly full: nothing is changed, keyed requests are refused once their lease is used up, reads go on. Free some space.",
		}
	}
	v.noteSlow(now)
	if since, on := v.slow.Since(now); on {
		return engine.Condition{
			Name: "disk", State: "slow", Since: since,
			Detail: "Changes wait for the disk longer than a second, reads go on. Look for what else writes to it, and at its health.",
		}
	}
	return engine.Well("disk")
}

func (v *vitals) snapshot(now time.Time) engine.Condition {
	if since, on := v.failing.Since(now); on {
		return engine.Condition{
			Name: "snapshot", State: "failing", Since: since,
			Detail: "The last snapshot could not be written; nothing is lost, but the log grows. Free some space; the log of the process has the cause.",
		}
	}
	if since, on := v.late.Since(now); on {
		return engine.Condition{
			Name: "snapshot", State: "late", Since: since,
			Detail: "Records have come for several snapshots since the last one; nothing is lost, but a start takes longer. Look at the disk.",
		}
	}
	return engine.Well("snapshot")
}

// condition is clock_suspect while a step of the wall clock is not believed.
func (c *steadyClock) condition() engine.Condition {
	c.look()
	d := c.suspicion()
	if !d.on {
		return engine.Well("clock")
	}
	detail := fmt.Sprintf("The wall clock stepped by %s; days of quotas wait a minute for it to go back. Look at the synchronisation of time.",
		d.step.Round(time.Second))
	if d.behind {
		detail = fmt.Sprintf("The wall clock is %s behind what the log has seen. Look at the synchronisation of time.", -d.step.Round(time.Second))
	}
	return engine.Condition{Name: "clock", State: "clock_suspect", Since: d.since.Round(0).UTC(), Detail: detail}
}

// freshness is until when a currency has a rate that has not expired, and when a source of it was heard last, in ns since 1970; 0 = it
// never had one.
type freshness struct {
	currency string
	until    atomic.Int64
	checked  atomic.Int64
}

// set takes over what a new board says.
func (f *freshness) set(until, checked time.Time) {
	if f != nil {
		f.until.Store(nanos(until))
		f.checked.Store(nanos(checked))
	}
}

// nanos is an instant as atomics keep it, 0 for none.
func nanos(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixNano()
}

// ratesCondition is stale while all rates of some currency have expired.
func (s *System) ratesCondition(now time.Time) engine.Condition {
	if s.phase.Load() != serving {
		return engine.Well("rates")
	}
	var stale []string
	var since time.Time
	for _, f := range s.fresh {
		until := f.until.Load()
		if until == 0 || now.UnixNano() < until {
			continue
		}
		stale = append(stale, f.currency)
		if at := time.Unix(0, until).UTC(); since.IsZero() || at.Before(since) {
			since = at
		}
	}
	if len(stale) == 0 {
		return engine.Well("rates")
	}
	return engine.Condition{
		Name: "rates", State: "stale", Since: since,
		Detail: "All rates have expired of " + strings.Join(stale, ", ") + "; they are served and marked. Look at the sources, or type rates in.",
	}
}
