package commitlog

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// StateSnapshot is the consistent state of all owners after one record of the journal. Each currency, each account,
// each shard and the registrar contributes one part.
type StateSnapshot struct {
	Sequence   uint64
	Currencies []*engine.CurrencySnapshot
	Accounts   [][][]byte           // by shard; each an encoded account.State
	Grants     []account.DayGrants  // by shard
	Registry   record.Snapshot      // only the fields of the registrar
	Done       func(*StateSnapshot) // called once, after PartDone for all parts

	Pending atomic.Int64                 // number of parts without PartDone
	Err     atomic.Pointer[engine.Error] // not nil: an owner has stopped, and the snapshot is incomplete
}

// SnapshotRequest asks an owner for its part of a snapshot. The part must be immutable.
type SnapshotRequest struct {
	mailbox.OneWay
	Snapshot *StateSnapshot
	Index    int // index of the currency or of the shard of accounts
	Position int // position of the account in its shard
}

// SetCurrency adds the state of a currency to the snapshot.
func (s *SnapshotRequest) SetCurrency(state *engine.CurrencySnapshot) {
	s.Snapshot.Currencies[s.Index] = state
	s.Snapshot.PartDone()
}

// SetAccount adds the state of an account, an encoded account.State, to the snapshot.
func (s *SnapshotRequest) SetAccount(state []byte) {
	s.Snapshot.Accounts[s.Index][s.Position] = state
	s.Snapshot.PartDone()
}

// SetRegistry adds the state of the registrar to the snapshot.
func (s *SnapshotRequest) SetRegistry(registry record.Snapshot) {
	s.Snapshot.Registry = registry
	s.Snapshot.PartDone()
}

// Reject implements mailbox.Message. It makes the snapshot fail.
func (s *SnapshotRequest) Reject(cause *engine.Error) {
	s.Snapshot.Err.Store(cause)
	s.Snapshot.PartDone()
}

// PartDone must be called once for each part, after it is set or has failed. The last call runs Done.
func (s *StateSnapshot) PartDone() {
	if s.Pending.Add(-1) == 0 {
		s.Done(s)
	}
}

// Write writes the encoded snapshot.
func (s *StateSnapshot) Write(dst io.Writer) error {
	w := record.NewSnapshotWriter(dst)
	for _, currency := range s.Currencies {
		w.Currency(currency.Saved())
	}
	for _, accounts := range s.Accounts {
		w.Accounts(accounts)
	}
	for _, grants := range s.Grants {
		w.Grants(grants.Grants, grants.ClosedUntil)
	}
	w.Registry(s.Registry)
	return w.End()
}

// accountBytes returns the encoded size of all accounts.
func (s *StateSnapshot) accountBytes() int64 {
	total := int64(0)
	for _, accounts := range s.Accounts {
		for _, account := range accounts {
			total += int64(len(account))
		}
	}
	return total
}

// StateRequest asks the Actor for a StateSnapshot after the newest record.
type StateRequest = mailbox.Request[struct{}, *StateSnapshot]

func (a *Actor) answerState(q *StateRequest) {
	if a.stopCause != nil {
		q.Reject(a.stopCause)
		return
	}
	a.takeSnapshot(func(s *StateSnapshot) {
		if err := s.Err.Load(); err != nil {
			q.Reject(err)
			return
		}
		q.Reply(s, nil)
	})
}

// takeSnapshot asks the owners for their parts of a snapshot after the newest record. Owners change their states only
// after WriteResult or RemoteEvents, so a batch that is being written does not matter.
func (a *Actor) takeSnapshot(done func(*StateSnapshot)) {
	s := &StateSnapshot{
		Sequence: a.last, Currencies: make([]*engine.CurrencySnapshot, len(a.currencies)),
		Accounts: make([][][]byte, len(a.shards)), Grants: make([]account.DayGrants, len(a.shards)), Done: done,
	}
	s.Pending.Store(int64(len(a.currencies) + len(a.shards) + 1))
	for i, owner := range a.currencies {
		owner.Send(&SnapshotRequest{Snapshot: s, Index: i})
	}
	for i, shard := range a.shards {
		shard.Send(&SnapshotRequest{Snapshot: s, Index: i})
	}
	a.registry.Send(&SnapshotRequest{Snapshot: s})
}

const (
	// accountsFraction makes snapshots rarer if the accounts are large: the records since the previous snapshot must be
	// at least 1/accountsFraction as large as all accounts.
	accountsFraction = 4
	// overdueSnapshots is the number of overdue snapshots at which Health reports a late snapshot.
	overdueSnapshots = 4
	// snapshotSpaceMin is the minimum free space for another attempt after a failed snapshot.
	snapshotSpaceMin = 1 << 20
)

// snapshotPlan decides when the next snapshot is due.
type snapshotPlan struct {
	recordsMax int   // Config.SnapshotRecords
	bytesMax   int64 // Config.SnapshotBytes

	last             uint64 // sequence of the newest snapshot
	records          int    // number of records since the newest attempt
	bytes            int64  // size of these records
	uncoveredRecords int    // number of records since the newest snapshot
	uncoveredBytes   int64  // size of these records
	accountBytes     int64  // size of all accounts in the newest snapshot
	running          bool   // a snapshot is being taken
	finalTried       bool   // the snapshot for Finish was begun
	retry            bool   // try a failed snapshot again
	dropBefore       uint64 // records before this sequence may be deleted; 0 = none
}

func (p *snapshotPlan) count(records, bytes int) {
	p.records += records
	p.bytes += int64(bytes)
	p.uncoveredRecords += records
	p.uncoveredBytes += int64(bytes)
}

// late reports whether overdueSnapshots snapshots were due since the newest one.
func (p *snapshotPlan) late() bool {
	manyRecords := p.uncoveredRecords >= overdueSnapshots*p.recordsMax && p.uncoveredBytes >= p.accountBytes
	return manyRecords || p.uncoveredBytes >= overdueSnapshots*p.bytesMax
}

func (p *snapshotPlan) due() bool {
	manyRecords := p.records >= p.recordsMax && p.bytes >= p.accountBytes/accountsFraction
	return !p.running && p.dropBefore == 0 && (manyRecords || p.bytes >= p.bytesMax || p.retry)
}

// begin resets the counts for due. It returns false if the newest snapshot covers all records up to last.
func (p *snapshotPlan) begin(last uint64) bool {
	p.records, p.bytes, p.retry = 0, 0, false
	p.running = last > p.last
	return p.running
}

// snapshotResult is the result of Log.WriteSnapshot.
type snapshotResult struct {
	mailbox.OneWay
	sequence     uint64
	accountBytes int64
	writtenBytes int64 // also set if the snapshot failed
	err          error
}

// retrySnapshot tells the Actor that the disk has space for another attempt.
type retrySnapshot struct{ mailbox.OneWay }

// snapshotWritten handles the result of a snapshot. After a failure the node continues, because the journal still has
// all records.
func (a *Actor) snapshotWritten(m *snapshotResult) {
	p, health := &a.snapshot, a.log.Health
	p.running = false
	switch {
	case m.err == nil:
		p.uncoveredRecords, p.uncoveredBytes = p.records, p.bytes
		p.last, p.dropBefore, p.accountBytes = m.sequence, m.sequence+1, m.accountBytes
		health.snapshotFailing.Clear()
		health.snapshotLate.Clear()
	case errors.Is(m.err, wal.ErrPoisoned):
		a.failStop(m.err)
	default:
		health.snapshotFailing.Begin(health.Clock())
		health.retryBytes.Store(max(snapshotSpaceMin, 2*m.writtenBytes))
		a.log.Logger.Error("snapshot failed, the log continues without it", "sequence", m.sequence, "cause", m.err.Error())
	}
}

// writeSnapshot writes a snapshot and returns the result. If Err is set, it does not read the parts, because owners may
// still be setting them.
func (l *Log) writeSnapshot(s *StateSnapshot) *snapshotResult {
	if err := s.Err.Load(); err != nil {
		return &snapshotResult{sequence: s.Sequence, err: err}
	}
	counter := countingWriter{}
	err := l.Journal.WriteSnapshot(s.Sequence, func(w io.Writer) error {
		counter = countingWriter{w: w}
		return s.Write(&counter)
	})
	return &snapshotResult{sequence: s.Sequence, accountBytes: s.accountBytes(), writtenBytes: counter.written, err: err}
}

type countingWriter struct {
	w       io.Writer
	written int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.written += int64(n)
	return n, err
}
