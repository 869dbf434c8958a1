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

// StateSnapshot is the state of all owners after one record of the journal.
type StateSnapshot struct {
	Sequence   uint64
	Currencies []*engine.CurrencySnapshot
	Full       bool       // with accounts and registry
	Accounts   [][][]byte // by shard, each as for record.SplitAccount
	Registry   RegistrySnapshot
	Done       func(*StateSnapshot) // called once, after the last part

	Pending atomic.Int64 // parts
	Err     atomic.Pointer[engine.Error]
}

// RegistrySnapshot is the part of the registrar.
type RegistrySnapshot struct {
	Registry  account.RegistrySnapshot
	KeyPolicy account.KeyPolicy
	Steady    time.Duration // not before any event of the snapshot
}

// SnapshotRequest asks an owner for its part. The part is immutable, so the owner continues at once.
type SnapshotRequest struct {
	mailbox.OneWay
	Snapshot        *StateSnapshot
	Index, Position int // of the owner; of an account in its shard
}

// SetCurrency is called by a currency.
func (s *SnapshotRequest) SetCurrency(state *engine.CurrencySnapshot) {
	s.Snapshot.Currencies[s.Index] = state
	s.Snapshot.PartDone()
}

// SetAccount is called by an account, with its state as for record.SplitAccount.
func (s *SnapshotRequest) SetAccount(state []byte) {
	s.Snapshot.Accounts[s.Index][s.Position] = state
	s.Snapshot.PartDone()
}

// SetRegistry is called by the registrar.
func (s *SnapshotRequest) SetRegistry(registry RegistrySnapshot) {
	s.Snapshot.Registry = registry
	s.Snapshot.PartDone()
}

// Reject fails the snapshot, because an owner has stopped.
func (s *SnapshotRequest) Reject(why *engine.Error) {
	s.Snapshot.Err.Store(why)
	s.Snapshot.PartDone()
}

// PartDone counts a part that is set or failed, and calls Done after the last one.
func (s *StateSnapshot) PartDone() {
	if s.Pending.Add(-1) == 0 {
		s.Done(s)
	}
}

// Write encodes a full snapshot.
func (s *StateSnapshot) Write(to io.Writer) error {
	w := record.NewSnapshotWriter(to)
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

// accountBytes is the size of all accounts.
func (s *StateSnapshot) accountBytes() int64 {
	total := int64(0)
	for _, accounts := range s.Accounts {
		for _, account := range accounts {
			total += int64(len(account))
		}
	}
	return total
}

// snapshotQuestion asks for the state at the present end of the journal, without accounts.
type snapshotQuestion = mailbox.Question[struct{}, *StateSnapshot]

// requestParts asks every owner for its part.
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

// answerQuestions answers all questions with one snapshot.
func (a *Actor) answerQuestions() {
	questions := a.questions
	a.questions = nil
	a.requestParts(&StateSnapshot{Sequence: a.last, Done: func(s *StateSnapshot) {
		for _, q := range questions {
			if err := s.Err.Load(); err != nil {
				q.Reject(err)
				continue
			}
			q.Reply(s, nil)
		}
	}})
}

const (
	// accountsFraction bounds the share of snapshots in all writing: records of a fraction of the accounts' size must
	// come before the next one. A million accounts are as large as the records of hours.
	accountsFraction = 4
	// overdueSnapshots is the number of snapshots that can be due before a missing one is reported.
	overdueSnapshots = 4
	// snapshotSpaceMin is the least free space for the retry of a failed snapshot.
	snapshotSpaceMin = 1 << 20
)

// snapshotPlan decides when the next snapshot is due.
type snapshotPlan struct {
	recordsMax int
	bytesMax   int64

	last             uint64 // sequence of the newest one
	records          int    // since the last attempt
	bytes            int64
	uncoveredRecords int // since the newest one
	uncoveredBytes   int64
	accountBytes     int64 // of the accounts in it
	running          bool
	final            bool   // Finish wants one
	finalTried       bool   // that was begun
	retry            bool   // a failed one
	dropBefore       uint64 // records that can be dropped; 0 = none
}

func (p *snapshotPlan) count(records, bytes int) {
	p.records += records
	p.bytes += int64(bytes)
	p.uncoveredRecords += records
	p.uncoveredBytes += int64(bytes)
}

// late reports that several snapshots were due and none was written.
func (p *snapshotPlan) late() bool {
	many := p.uncoveredRecords >= overdueSnapshots*p.recordsMax && p.uncoveredBytes >= p.accountBytes
	return many || p.uncoveredBytes >= overdueSnapshots*p.bytesMax
}

func (p *snapshotPlan) due() bool {
	many := p.records >= p.recordsMax && p.bytes >= p.accountBytes/accountsFraction
	return !p.running && (many || p.bytes >= p.bytesMax || p.final || p.retry)
}

// begin reports whether there is anything new to save.
func (p *snapshotPlan) begin(end uint64) bool {
	p.records, p.bytes, p.final, p.retry = 0, 0, false, false
	p.running = end > p.last
	return p.running
}

// snapshotWritten is the result of a snapshot.
type snapshotWritten struct {
	mailbox.OneWay
	sequence     uint64
	accountBytes int64
	writtenBytes int64 // also of an incomplete one
	err          error
}

// retrySnapshot tells the Actor that there is space for a failed snapshot.
type retrySnapshot struct{ mailbox.OneWay }

// snapshotWritten drops old records after a snapshot. After a failed one the log continues: it has all records.
func (a *Actor) snapshotWritten(m *snapshotWritten) {
	p, health := &a.snapshot, a.log.Health
	p.running = false
	switch {
	case m.err == nil:
		p.uncoveredRecords, p.uncoveredBytes = p.records, p.bytes
		p.last, p.dropBefore, p.accountBytes = m.sequence, m.sequence+1, m.accountBytes
		health.failing.Clear()
		health.late.Clear()
	case errors.Is(m.err, wal.ErrPoisoned):
		a.failStop(m.err)
	default:
		health.failing.Begin(health.Clock())
		health.retryBytes.Store(max(snapshotSpaceMin, 2*m.writtenBytes))
		a.log.Logger.Error("snapshot failed, the log continues without it", "sequence", m.sequence, "cause", m.err.Error())
	}
}

// WriteSnapshot encodes and writes a full snapshot while commits continue. There is one at a time.
func (l *Log) WriteSnapshot(s *StateSnapshot) {
	l.snapshots.submit(func() { l.Ref.Send(l.writeSnapshot(s)) })
}

// writeSnapshot does not read the parts of a failed snapshot: owners may still be setting them.
func (l *Log) writeSnapshot(s *StateSnapshot) *snapshotWritten {
	if why := s.Err.Load(); why != nil {
		return &snapshotWritten{sequence: s.Sequence, err: why}
	}
	counting := countingWriter{}
	err := l.Journal.WriteSnapshot(s.Sequence, func(w io.Writer) error {
		counting = countingWriter{to: w}
		return s.Write(&counting)
	})
	return &snapshotWritten{sequence: s.Sequence, accountBytes: s.accountBytes(), writtenBytes: counting.written, err: err}
}

// countingWriter counts the bytes written.
type countingWriter struct {
	to      io.Writer
	written int64
}

// Write implements io.Writer.
func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.written += int64(n)
	return n, err
}
