package actors

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/engine"
)

// Conditions implements engine.Health. It asks no actor and does not touch the disk.
func (s *System) Conditions() []engine.Condition {
	now := s.log.Health.Clock()
	conditions := []engine.Condition{
		s.logCondition(), s.dataCondition(), s.log.Health.Disk(now), s.log.Health.Snapshot(now), s.accounts.Clock.Condition(),
		s.ratesCondition(s.config.Clock()),
	}
	if s.log.Shared != nil {
		conditions = append(conditions, clusterCondition(s.log.Shared.ClusterHealth()))
	}
	return conditions
}

// clusterCondition is no_majority while too few nodes reach each other.
func clusterCondition(health commitlog.ClusterHealth) engine.Condition {
	if health.Majority {
		return engine.HealthyCondition("cluster")
	}
	return engine.Condition{
		Name: "cluster", State: "no_majority", Since: health.Since.Round(0).UTC(),
		Detail: "Too few nodes reach each other: nothing is changed here, keyed requests are refused once their lease is used up, reads go on and " +
			"may be old. Look at the other nodes and at the network between them.",
	}
}

// logCondition describes the start, the failure or the stop of the node.
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
		return engine.HealthyCondition("log")
	}
	return c
}

// dataCondition is empty until a rate is published.
func (s *System) dataCondition() engine.Condition {
	if s.phase.Load() != serving || s.hasRates.Load() {
		return engine.HealthyCondition("data")
	}
	return engine.Condition{
		Name: "data", State: "empty", Down: true, Detail: "No rate was ever published; let the node collect, or import observations.",
	}
}

// freshness holds until when a currency has an unexpired rate, and when a source of it was last checked, in ns since
// 1970; 0 if it never had one.
type freshness struct {
	currency   string
	freshUntil atomic.Int64
	checkedAt  atomic.Int64
}

// set stores the values of a new snapshot.
func (f *freshness) set(until, checked time.Time) {
	if f != nil {
		f.freshUntil.Store(nanos(until))
		f.checkedAt.Store(nanos(checked))
	}
}

// nanos returns an instant in ns since 1970, 0 for the zero instant.
func nanos(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixNano()
}

// ratesCondition is stale while all rates of some currency have expired.
func (s *System) ratesCondition(now time.Time) engine.Condition {
	if s.phase.Load() != serving {
		return engine.HealthyCondition("rates")
	}
	var stale []string
	var since time.Time
	for _, f := range s.freshness {
		until := f.freshUntil.Load()
		if until == 0 || now.UnixNano() < until {
			continue
		}
		stale = append(stale, f.currency)
		if at := time.Unix(0, until).UTC(); since.IsZero() || at.Before(since) {
			since = at
		}
	}
	if len(stale) == 0 {
		return engine.HealthyCondition("rates")
	}
	return engine.Condition{
		Name: "rates", State: "stale", Since: since,
		Detail: "All rates have expired of " + strings.Join(stale, ", ") + "; they are served and marked. Look at the sources, or type rates in.",
	}
}
