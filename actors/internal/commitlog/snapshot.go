package commitlog

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// StateSnapshot is the consistent state of all owners after one record of the journal.
type StateSnapshot struct {
	Sequence   uint64
	Currencies []*engine.CurrencySnapshot
	Full       bool       // includes accounts and registry
	Accounts   [][][]byte // by shard; each account in the format of record.SplitAccount
	Registry   RegistrySnapshot
	Done       func(*StateSnapshot) // called once, when all parts are set or failed

	Pending atomic.Int64 // number of parts not set yet
	Err     atomic.Pointer[engine.Error]
}

// RegistrySnapshot is the registrar's part of a StateSnapshot.
type RegistrySnapshot struct {
	Registry  account.RegistrySnapshot
	KeyPolicy account.KeyPolicy
	Steady    time.Duration // no event of the snapshot has a later steady time
}

// SnapshotRequest asks an owner for its part of a snapshot. The part is immutable, so the owner can continue at once.
type SnapshotRequest struct {
	mailbox.OneWay
	Snapshot        *StateSnapshot
	Index, Position int // of the owner; of the account in its shard
}

// SetCurrency sets the part of a currency.
func (s *SnapshotRequest) SetCurrency(state *engine.CurrencySnapshot) {
	s.Snapshot.Currencies[s.Index] = state
	s.Snapshot.PartDone()
}

// SetAccount sets the part of an account, in the format of record.SplitAccount.
func (s *SnapshotRequest) SetAccount(state []byte) {
	s.Snapshot.Accounts[s.Index][s.Position] = state
	s.Snapshot.PartDone()
}

// SetRegistry sets the part of the registrar.
func (s *SnapshotRequest) SetRegistry(registry RegistrySnapshot) {
	s.Snapshot.Registry = registry
	s.Snapshot.PartDone()
}

// Reject makes the snapshot fail because an owner has stopped.
func (s *SnapshotRequest) Reject(cause *engine.Error) {
	s.Snapshot.Err.Store(cause)
	s.Snapshot.PartDone()
}

// PartDone notes that a part is set or failed. After the last part it calls Done.
func (s *StateSnapshot) PartDone() {
	if s.Pending.Add(-1) == 0 {
		s.Done(s)
	}
}

// Write encodes a full snapshot.
func (s *StateSnapshot) Write(dst io.Writer) error {
	w := record.NewSnapshotWriter(dst)
	for _, currency := range s.Currencies {
		w.Currency(currency.Saved())
	}
	for _, accounts := range s.Accounts {
		w.Accounts(func(yield func([]byte) bool) {
			for _, account := range accounts {
				if state, _ := record.SplitAccount(account); !yield(state) {
					return
				}
			}
		})
	}
	if s.Full {
		w.Registry(&s.Registry.Registry, s.Registry.KeyPolicy, s.Registry.Steady)
	}
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

// stateRequest asks for a StateSnapshot at the current end of the journal, without accounts.
type stateRequest = mailbox.Request[struct{}, *StateSnapshot]

// requestParts asks all owners for their parts.
func (a *Actor) requestParts(s *StateSnapshot) {
	s.Currencies = make([]*engine.CurrencySnapshot, len(a.currencies))
	s.Pending.Store(int64(len(a.currencies)) + 1)
	for i, owner := range a.currencies {
		owner.Send(&SnapshotRequest{Snapshot: s, Index: i})
	}
	if s.Full {
		s.Accounts = make([][][]byte, len(a.shards))
		s.Pending.Add(int64(len(a.shards)) + 1)
		for i, shard := range a.shards {
			shard.Send(&SnapshotRequest{Snapshot: s, Index: i})
		}
		a.registry.Send(&SnapshotRequest{Snapshot: s})
	}
	s.PartDone()
}

// answerStateRequests answers all waiting requests with the same snapshot.
func (a *Actor) answerStateRequests() {
	requests := a.stateRequests
	a.stateRequests = nil
	a.requestParts(&StateSnapshot{Sequence: a.last, Done: func(s *StateSnapshot) {
		for _, q := range requests {
			if err := s.Err.Load(); err != nil {
				q.Reject(err)
				continue
			}
			q.Reply(s, nil)
		}
	}})
}

const (
	// accountsFraction limits how much is written for snapshots: the next one is due only after records of at least
	// 1/accountsFraction of the size of all accounts. A million accounts are as large as the records of some hours.
	accountsFraction = 4
	// overdueSnapshots is the number of snapshots that must be missing before Health reports that they are late.
	overdueSnapshots = 4
	// snapshotSpaceMin is the minimum free space for retrying a failed snapshot.
	snapshotSpaceMin = 1 << 20
)

// snapshotPlan decides when the next snapshot is due.
type snapshotPlan struct {
	recordsMax int
	bytesMax   int64

	last             uint64 // sequence of the newest snapshot
	records          int    // since the last attempt of a snapshot
	bytes            int64
	uncoveredRecords int // since the newest snapshot
	uncoveredBytes   int64
	accountBytes     int64 // size of all accounts in the newest snapshot
	running          bool
	final            bool   // take the last snapshot, for Finish
	finalTried       bool   // the last snapshot was tried
	retry            bool   // retry a failed snapshot
	dropBefore       uint64 // records before this sequence can be dropped; 0 = none
}

func (p *snapshotPlan) count(records, bytes int) {
	p.records += records
	p.bytes += int64(bytes)
	p.uncoveredRecords += records
	p.uncoveredBytes += int64(bytes)
}

// late reports whether overdueSnapshots snapshots were due and none was written.
func (p *snapshotPlan) late() bool {
	manyRecords := p.uncoveredRecords >= overdueSnapshots*p.recordsMax && p.uncoveredBytes >= p.accountBytes
	return manyRecords || p.uncoveredBytes >= overdueSnapshots*p.bytesMax
}

func (p *snapshotPlan) due() bool {
	manyRecords := p.records >= p.recordsMax && p.bytes >= p.accountBytes/accountsFraction
	return !p.running && (manyRecords || p.bytes >= p.bytesMax || p.final || p.retry)
}

// begin resets the counts. It reports whether there are records that the newest snapshot does not include.
func (p *snapshotPlan) begin(last uint64) bool {
	p.records, p.bytes, p.final, p.retry = 0, 0, false, false
	p.running = last > p.last
	return p.running
}

// snapshotWritten is the result of a snapshot.
type snapshotWritten struct {
	mailbox.OneWay
	sequence     uint64
	accountBytes int64
	writtenBytes int64 // even if the snapshot failed
	err          error
}

// retrySnapshot tells the Actor that there is enough space to retry a failed snapshot.
type retrySnapshot struct{ mailbox.OneWay }

// snapshotWritten handles the result of a snapshot. After a success old records can be dropped. After a failure the log
// continues, because it still has all records.
func (a *Actor) snapshotWritten(m *snapshotWritten) {
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

// WriteSnapshot encodes and writes a full snapshot in the snapshot worker, while commits continue.
func (l *Log) WriteSnapshot(s *StateSnapshot) {
	l.snapshots.submit(func() { l.Ref.Send(l.writeSnapshot(s)) })
}

// writeSnapshot writes a snapshot and returns the result. It does not read the parts of a failed snapshot, because
// owners may still set them.
func (l *Log) writeSnapshot(s *StateSnapshot) *snapshotWritten {
	if err := s.Err.Load(); err != nil {
		return &snapshotWritten{sequence: s.Sequence, err: err}
	}
	counter := countingWriter{}
	err := l.Journal.WriteSnapshot(s.Sequence, func(w io.Writer) error {
		counter = countingWriter{w: w}
		return s.Write(&counter)
	})
	return &snapshotWritten{sequence: s.Sequence, accountBytes: s.accountBytes(), writtenBytes: counter.written, err: err}
}

// countingWriter counts the bytes written.
type countingWriter struct {
	w       io.Writer
	written int64
}

// Write implements io.Writer.
func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.written += int64(n)
	return n, err
}
