package actors

import (
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

// Stats is what a system holds and has done, for whoever watches it. Counts begin at the start of the process.
type Stats struct {
	// Serving is false while the log is replayed and while the system stops: then only Log is filled in.
	Serving        bool
	Mailboxes      []MailboxStats  // by kind of actor, in a fixed order
	Accounts       int64           // that there are
	AccountsLoaded int64           // of them, those with an actor
	Leases         uint64          // of a day's quota that were made durable; what accounts give back is not subtracted
	Currencies     []CurrencyStats // of the catalogue, or with rates, by code
	// Sequence is that of the newest record that counts. In a cluster it is the same record on every node.
	Sequence uint64
	Log      wal.Stats
	HasLog   bool // Log is of a local log; another journal tells nothing
}

// MailboxStats is what waits for the actors of one kind.
type MailboxStats = mailbox.Stats

// CurrencyStats is how fresh a currency is.
type CurrencyStats struct {
	Currency string
	// CheckedAt is when a source of it was heard last, FreshUntil when its last rate expires; zero without rates.
	CheckedAt, FreshUntil time.Time
}

// statistical is a journal that can tell how large it is.
type statistical interface{ Stats() wal.Stats }

// Stats asks no actor and waits for no disk: it looks at counters, and briefly into the mailboxes of the actors that live as long as the
// system.
func (s *System) Stats() Stats {
	var stats Stats
	if journal, tells := s.log.Journal.(statistical); tells {
		stats.Log, stats.HasLog = journal.Stats(), true
	}
	if s.phase.Load() != serving {
		return stats
	}
	stats.Serving, stats.Sequence = true, s.Sequence()
	k, t := &s.kinds, &s.accounts.Kinds
	for _, kind := range []*mailbox.Kind{&k.reader, &k.currency, &k.directory, &k.journal, &t.Shard, &t.Account, &t.Registrar, &t.Strangers} {
		stats.Mailboxes = append(stats.Mailboxes, kind.Stats())
	}
	stats.Accounts, stats.AccountsLoaded, stats.Leases = s.accounts.Count.Load(), s.accounts.Loaded.Load(), s.accounts.Leases.Load()
	for _, f := range s.freshness {
		stats.Currencies = append(stats.Currencies, CurrencyStats{f.currency, instantOf(f.checkedAt.Load()), instantOf(f.freshUntil.Load())})
	}
	return stats
}

// Sequence is that of the newest record that counts: of the log of all nodes, where there are several. What it changes is served soon
// afterwards, and was served before to whoever asked for it. 0 until the log is replayed, and when it is empty.
func (s *System) Sequence() uint64 { return s.log.Health.Sequence.Load() }

// instantOf is an instant that an atomic keeps in ns since 1970, 0 for none.
func instantOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
