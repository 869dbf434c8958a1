package actors

import (
	"fmt"
	"strings"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Conditions implements engine.Health. It asks no actor and does not read the disk.
func (s *System) Conditions() []engine.Condition {
	// Health.Clock follows Config.Monotonic if that is set. Rates expire by the wall clock, Config.Clock.
	now := s.log.Health.Clock()
	conditions := []engine.Condition{
		s.logCondition(), s.dataCondition(), s.log.Health.Disk(now), s.log.Health.Snapshot(now),
		s.accounts.LoginsCondition(s.config.Clock()), s.ratesCondition(s.config.Clock()),
	}
	if s.log.Shared != nil { // the node is in a cluster
		conditions = append(conditions, clusterCondition(s.log.Shared.ClusterHealth()))
	}
	return conditions
}

func clusterCondition(health commitlog.ClusterHealth) engine.Condition {
	if health.Majority {
		return engine.HealthyCondition("cluster")
	}
	return engine.Condition{
		Name: "cluster", State: "no_majority", Since: health.Since.Round(0).UTC(),
		Detail: "No majority of the cluster's members is reachable: changes are rejected, and requests with a key once its quota lease is used up. " +
			"Reads go on, but may be outdated. Look at the other nodes and at the network between them.",
	}
}

// logCondition reports a node that is starting, has failed or is stopping.
func (s *System) logCondition() engine.Condition {
	s.mu.Lock()
	failed, since := s.cause != nil, s.failed
	s.mu.Unlock()
	c := engine.Condition{Name: "log", Down: true, Since: since.Round(0).UTC()}
	switch phase := s.phase.Load(); {
	case failed:
		c.State, c.Detail = "failed", "A change could not be kept or applied, so nothing is changed any more and the process ends; "+
			"look at its log, and start it again."
	case phase == replaying && !s.joined.Load():
		c.State, c.Since = "joining", s.progress.began.Round(0).UTC()
		c.Detail = "The node waits for the other nodes of its cluster: with records of its own for a few seconds, without any until they answer."
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

// dataCondition reports that no rate has been published yet.
func (s *System) dataCondition() engine.Condition {
	if s.phase.Load() != serving || s.board.hasRates.Load() {
		return engine.HealthyCondition("data")
	}
	return engine.Condition{
		Name: "data", State: "empty", Down: true, Detail: "No rate was ever published; let the node collect, or import observations.",
	}
}

// ratesCondition reports currencies with only expired rates.
func (s *System) ratesCondition(now time.Time) engine.Condition {
	if s.phase.Load() != serving {
		return engine.HealthyCondition("rates")
	}
	var stale []string
	var since time.Time
	for _, snapshot := range *s.board.snapshots.Load() {
		until := snapshot.FreshUntil
		if until.IsZero() || now.Before(until) {
			continue
		}
		stale = append(stale, snapshot.Currency)
		if since.IsZero() || until.Before(since) {
			since = until
		}
	}
	if len(stale) == 0 {
		return engine.HealthyCondition("rates")
	}
	return engine.Condition{
		Name: "rates", State: "stale", Since: since,
		Detail: "All rates have expired of " + strings.Join(stale, ", ") + "; they are still served, marked as stale. Look at the sources, or type rates in.",
	}
}

// Stats are counters of a System since Open.
type Stats struct {
	// Serving is false during the replay and after Close. Then only Log is set. While the node joins a cluster, no
	// field is set.
	Serving    bool
	Mailboxes  []MailboxStats  // one for each kind of actor, in a fixed order
	Accounts   int64           // number of accounts
	Leases     uint64          // quota leases written, including returned ones
	Currencies []CurrencyStats // configured currencies and others with rates, by code
	Sequence   uint64          // number of the newest durable record; see System.Sequence
	Log        wal.Stats
	HasLog     bool // Log is set: the journal is a log in a directory (wal.Log)
}

// MailboxStats counts the waiting messages of one kind of actor.
type MailboxStats = mailbox.Stats

// CurrencyStats tells the age of a currency's rates. The times are zero if the currency never had rates.
type CurrencyStats struct {
	Currency   string
	CheckedAt  time.Time // newest check of a source
	FreshUntil time.Time // when the last rate of the currency expires
}

// Stats returns the counters. It asks no actor and does not wait for the disk.
func (s *System) Stats() Stats {
	var stats Stats
	if journal, ok := s.log.Journal.(interface{ Stats() wal.Stats }); ok && s.joined.Load() {
		stats.Log, stats.HasLog = journal.Stats(), true
	}
	if s.phase.Load() != serving {
		return stats
	}
	stats.Serving, stats.Sequence = true, s.Sequence()
	k, t := &s.kinds, &s.accounts.Kinds
	for _, kind := range []*mailbox.Kind{&k.reader, &k.currency, &k.journal, &t.Shard, &t.Account, &t.Registrar, &t.Anonymous} {
		stats.Mailboxes = append(stats.Mailboxes, kind.Stats())
	}
	stats.Accounts, stats.Leases = s.accounts.Count.Load(), s.accounts.Leases.Load()
	for _, snapshot := range *s.board.snapshots.Load() {
		stats.Currencies = append(stats.Currencies, CurrencyStats{snapshot.Currency, snapshot.CheckedAt, snapshot.FreshUntil})
	}
	return stats
}

// Sequence returns the number of the newest durable record in the journal, or 0 if there is none and during the replay.
// It is the same on all nodes of a cluster. A change can be read after its record is durable, even before its caller
// gets the answer.
func (s *System) Sequence() uint64 { return s.log.Health.Sequence.Load() }
