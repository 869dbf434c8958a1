package actors

import (
	"slices"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

// Stats is what a system holds and has done, for whoever watches it. Counts begin at the start of the process.
type Stats struct {
	// Serving is false while the log is replayed and while the system stops: then only Log is filled in.
	Serving    bool
	Mailboxes  []MailboxStats  // by kind of actor, in a fixed order
	Accounts   int64           // that there are
	Living     int64           // of them, those with an actor
	Leases     uint64          // of a day's quota that were made durable; what accounts give back is not subtracted
	Currencies []CurrencyStats // of the catalogue, or with rates, by code
	// Sequence is that of the newest record that counts. In a cluster it is the same record on every node.
	Sequence uint64
	Log      wal.Stats
	Logged   bool // Log is of a local log; another journal tells nothing
}

// MailboxStats is what waits for the actors of one kind.
type MailboxStats struct {
	Kind    string
	Waiting int64 // messages that wait, for all actors of the kind
	// Most is how many of them wait for one actor. -1 for accounts: there are too many to look at each.
	Most    int64
	Refused uint64 // questions that were answered overloaded because a mailbox was full
}

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
	if journal, tells := s.journal.(statistical); tells {
		stats.Log, stats.Logged = journal.Stats(), true
	}
	if s.phase.Load() != serving {
		return stats
	}
	stats.Serving, stats.Sequence = true, s.Sequence()
	stats.Mailboxes = s.mailboxes()
	stats.Accounts, stats.Living, stats.Leases = s.tenants.population.Load(), s.tenants.living.Load(), s.tenants.leases.Load()
	for _, f := range s.fresh {
		stats.Currencies = append(stats.Currencies, CurrencyStats{f.currency, instantOf(f.checked.Load()), instantOf(f.until.Load())})
	}
	return stats
}

// Sequence is that of the newest record that counts: of the log of all nodes, where there are several. What it changes is served soon
// afterwards, and was served before to whoever asked for it. 0 until the log is replayed, and when it is empty.
func (s *System) Sequence() uint64 { return s.vitals.sequence.Load() }

// mailboxes are the figures of each kind.
func (s *System) mailboxes() []MailboxStats {
	all := make([]MailboxStats, 0, kinds)
	for k, name := range kindNames() {
		counts := &s.actors.kinds[k]
		all = append(all, MailboxStats{Kind: name, Waiting: counts.Waiting(), Refused: counts.Refused()})
	}
	all[kindAccount].Most = -1
	for k, refs := range s.longLived() {
		for _, r := range refs {
			all[k].Most = max(all[k].Most, int64(r.Waiting()))
		}
	}
	return all
}

// longLived are the actors that end with the system.
func (s *System) longLived() [kinds][]*mailbox.Ref {
	var refs [kinds][]*mailbox.Ref
	for _, code := range s.codes {
		refs[kindCurrency] = append(refs[kindCurrency], s.currencies[code])
	}
	refs[kindDirectory] = []*mailbox.Ref{s.directory}
	refs[kindJournal] = []*mailbox.Ref{s.clerk}
	refs[kindShard] = slices.Clone(s.tenants.shards.refs)
	refs[kindRegistrar] = []*mailbox.Ref{s.tenants.registrar}
	if s.tenants.strangers != nil {
		refs[kindStrangers] = slices.Clone(s.tenants.strangers.refs)
	}
	return refs
}

// instantOf is an instant that an atomic keeps in ns since 1970, 0 for none.
func instantOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
