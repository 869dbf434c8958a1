package actors

import (
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

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

// statistical is implemented by a wal.Log.
type statistical interface{ Stats() wal.Stats }

// Stats returns the counters. It asks no actor and does not wait for the disk.
func (s *System) Stats() Stats {
	var stats Stats
	if journal, ok := s.log.Journal.(statistical); ok && s.joined.Load() {
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
		checkedAt, freshUntil := snapshot.Freshness()
		stats.Currencies = append(stats.Currencies, CurrencyStats{snapshot.Currency(), checkedAt, freshUntil})
	}
	return stats
}

// Sequence returns the number of the newest durable record in the journal, or 0 if there is none and during the replay.
// It is the same on all nodes of a cluster. A change can be read after its record is durable, even before its caller
// gets the answer.
func (s *System) Sequence() uint64 { return s.log.Health.Sequence.Load() }
