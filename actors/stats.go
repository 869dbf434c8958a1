package actors

import (
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

// Stats are counts of a System since the start of the process.
type Stats struct {
	// Serving is false during the replay and after Close. Then only Log is set.
	Serving        bool
	Mailboxes      []MailboxStats  // one for each kind of actor, in a fixed order
	Accounts       int64           // number of accounts
	AccountsLoaded int64           // accounts that have an actor
	Leases         uint64          // leases written; returned ones are not subtracted
	Currencies     []CurrencyStats // of the catalogue and those with rates, by code
	// Sequence is the sequence of the newest durable record. In a cluster it is the same on every node.
	Sequence uint64
	Log      wal.Stats
	HasLog   bool // false if the journal is not a local log
}

// MailboxStats counts the messages that wait for the actors of one kind.
type MailboxStats = mailbox.Stats

// CurrencyStats is the freshness of a currency.
type CurrencyStats struct {
	Currency string
	// CheckedAt is the time of the last check of a source. FreshUntil is when the last rate expires. Zero without
	// rates.
	CheckedAt, FreshUntil time.Time
}

// statistical is a journal that reports its size.
type statistical interface{ Stats() wal.Stats }

// Stats sends no request to an actor and does not wait for the disk. It reads counters, and briefly locks the mailboxes
// of long-lived actors.
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

// Sequence returns the sequence of the newest durable record. In a cluster it is the sequence in the shared log. Reads
// see the change of the record soon afterwards, and always after its acknowledgement. Sequence is 0 during the replay,
// and if the log is empty.
func (s *System) Sequence() uint64 { return s.log.Health.Sequence.Load() }

// instantOf converts nanoseconds since 1970 to a time. 0 is the zero time.
func instantOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
