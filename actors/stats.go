package actors

import (
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

// Stats are counts of a system. They begin at the start of the process.
type Stats struct {
	// Serving is false during the replay and the stop: then only Log is set.
	Serving        bool
	Mailboxes      []MailboxStats  // one for each kind of actor, in a fixed order
	Accounts       int64           // in all
	AccountsLoaded int64           // accounts that have an actor
	Leases         uint64          // leases written; returned ones are not subtracted
	Currencies     []CurrencyStats // of the catalogue and those with rates, by code
	// Sequence is the sequence of the newest durable record. In a cluster it is the same on every node.
	Sequence uint64
	Log      wal.Stats
	HasLog   bool // false for a journal other than a local log
}

// MailboxStats counts the messages that wait for the actors of one kind.
type MailboxStats = mailbox.Stats

// CurrencyStats is the freshness of a currency.
type CurrencyStats struct {
	Currency string
	// CheckedAt is when a source of it was last checked, FreshUntil when its last rate expires; zero without rates.
	CheckedAt, FreshUntil time.Time
}

// statistical is a journal that reports its size.
type statistical interface{ Stats() wal.Stats }

// Stats asks no actor and does not wait for the disk: it reads counters, and briefly locks the mailboxes of long-lived
// actors.
func (s *System) Stats() Stats {
	var stats Stats
	if journal, ok := s.log.Journal.(statistical); ok {
		stats.Log, stats.HasLog = journal.Stats(), true
	}
	if s.phase.Load() != serving {
		return stats
	}
	stats.Serving, stats.Sequence = true, s.Sequence()
	k, t := &s.kinds, &s.accounts.Kinds
	for _, kind := range []*mailbox.Kind{&k.reader, &k.currency, &k.directory, &k.journal, &t.Shard, &t.Account, &t.Registrar, &t.Anonymous} {
		stats.Mailboxes = append(stats.Mailboxes, kind.Stats())
	}
	stats.Accounts, stats.AccountsLoaded, stats.Leases = s.accounts.Count.Load(), s.accounts.Loaded.Load(), s.accounts.Leases.Load()
	for _, f := range s.freshness {
		stats.Currencies = append(stats.Currencies, CurrencyStats{f.currency, instantOf(f.checkedAt.Load()), instantOf(f.freshUntil.Load())})
	}
	return stats
}

// Sequence returns the sequence of the newest durable record, in a cluster of the shared log. Its change is served soon
// afterwards, and to its own caller before it is acknowledged. 0 until the log is replayed, and when it is empty.
func (s *System) Sequence() uint64 { return s.log.Health.Sequence.Load() }

// instantOf returns the instant of ns since 1970, the zero instant for 0.
func instantOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
