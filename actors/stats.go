package actors

import (
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

// Stats are counts of a System since Open.
type Stats struct {
	// Serving is false during the replay and after Close. While it is false, only Log is set, and nothing while
	// the node joins a cluster.
	Serving    bool
	Mailboxes  []MailboxStats  // one for each kind of actor, in a fixed order
	Accounts   int64           // number of accounts
	Leases     uint64          // quota leases (reserved parts of quotas) written, including returned leases
	Currencies []CurrencyStats // configured currencies and others with rates, by code
	Sequence   uint64          // number of the newest durable record; see System.Sequence
	Log        wal.Stats
	HasLog     bool // Log is set: the records are in a directory of this node (wal.Log), not only in memory
}

// MailboxStats counts the messages that wait for the actors of one kind.
type MailboxStats = mailbox.Stats

// CurrencyStats tells how old the rates of a currency are. The times are zero if the currency never had rates.
type CurrencyStats struct {
	Currency   string
	CheckedAt  time.Time // when a source was last checked
	FreshUntil time.Time // when all rates of the currency will have expired
}

// statistical is implemented by a journal that is a log in a directory (wal.Log).
type statistical interface{ Stats() wal.Stats }

// Stats returns the counts. It sends no message to an actor and does not wait for the disk.
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

// Sequence returns the number of the newest durable record in the journal. It returns 0 if there is no record, and
// during the replay. All nodes of a cluster count the same records. A change can be read after its record is
// durable and before its caller gets the answer.
func (s *System) Sequence() uint64 { return s.log.Health.Sequence.Load() }
