package commitlog

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// StateSnapshot is the state of all owners after one record of the journal: the journal actor sends each owner its
// share behind the last commit up to that record and before the next one.
type StateSnapshot struct {
	Sequence   uint64
	Currencies []*engine.CurrencySnapshot
	Full       bool       // accounts and registry as well
	Accounts   [][][]byte // of each shard its accounts, as record.AccountParts takes them apart
	Registry   RegistrySnapshot
	Done       func(*StateSnapshot) // called once, when the last share is there or settled

	Pending atomic.Int64
	Err     atomic.Pointer[engine.Error]
}

// SnapshotRequest is the part of a cut that one owner has: a currency's board, a shard's accounts, the state of one of them, or the registry. Currencies
// go on at once: what they hand over is immutable.
type SnapshotRequest struct {
	mailbox.OneWay
	Snapshot        *StateSnapshot
	Index, Position int
}

// SetCurrency is for the actor of a currency.
func (s *SnapshotRequest) SetCurrency(board *engine.CurrencySnapshot) {
	s.Snapshot.Currencies[s.Index] = board
	s.Snapshot.PartDone()
}

// SetAccount is for one account, with its state as record.SplitAccount takes it apart.
func (s *SnapshotRequest) SetAccount(state []byte) {
	s.Snapshot.Accounts[s.Index][s.Position] = state
	s.Snapshot.PartDone()
}

// SetRegistry is for the registrar.
func (s *SnapshotRequest) SetRegistry(registry RegistrySnapshot) {
	s.Snapshot.Registry = registry
	s.Snapshot.PartDone()
}

// Reject gives up a cut of which an owner has stopped.
func (s *SnapshotRequest) Reject(why *engine.Error) {
	s.Snapshot.Err.Store(why)
	s.Snapshot.PartDone()
}

// PartDone counts a share that is there, or given up; behind the last one Done is called.
func (c *StateSnapshot) PartDone() {
	if c.Pending.Add(-1) == 0 {
		c.Done(c)
	}
}

// snapshotQuestion asks for a cut at the present end of the journal.
type snapshotQuestion = mailbox.Question[struct{}, *StateSnapshot]

// requestParts sends every owner its share.
func (j *Actor) requestParts(c *StateSnapshot) {
	c.Currencies = make([]*engine.CurrencySnapshot, len(j.Currencies))
	c.Pending.Store(int64(len(j.Currencies)) + 1)
	for i, owner := range j.Currencies {
		owner.Send(&SnapshotRequest{Snapshot: c, Index: i})
	}
	if c.Full {
		j.requestAccounts(c)
	}
	c.PartDone()
}

// answerQuestions gives everybody who waits the same cut.
func (j *Actor) answerQuestions() {
	askers := j.questions
	j.questions = nil
	j.requestParts(&StateSnapshot{Sequence: j.Last, Done: func(c *StateSnapshot) {
		for _, q := range askers {
			if err := c.Err.Load(); err != nil {
				q.Reject(err)
				continue
			}
			q.Reply(c, nil)
		}
	}})
}

// SnapshotPlan is the journal actor's view of snapshots: when the next one is due.
type SnapshotPlan struct {
	Writer     *SnapshotWriter
	RecordsMax int
	BytesMax   int64

	Last             uint64 // sequence of the newest one
	Records          int    // appended since
	Bytes            int64
	AccountBytes     int64 // bytes of all accounts in it
	Running          bool
	final            bool   // Close wants one
	finalTried       bool   // and got one, or an error
	retry            bool   // one that failed is tried again
	UncoveredRecords int    // records since the newest one
	UncoveredBytes   int64  // bytes of them
	dropBefore       uint64 // records before this one can go
}

// Count notes records that no snapshot has.
func (p *SnapshotPlan) Count(records, bytes int) {
	p.Records += records
	p.Bytes += int64(bytes)
	p.UncoveredRecords += records
	p.UncoveredBytes += int64(bytes)
}

// Late reports that records have come for several snapshots, and none was written.
func (p *SnapshotPlan) Late() bool {
	many := p.UncoveredRecords >= overdueSnapshots*p.RecordsMax && p.UncoveredBytes >= p.AccountBytes
	return many || p.UncoveredBytes >= overdueSnapshots*p.BytesMax
}

// accountsFraction is how large a part of all accounts the records since the last snapshot are at least: with a
// million accounts a snapshot is as long as hours of records.
const accountsFraction = 4

func (p *SnapshotPlan) due() bool {
	many := p.Records >= p.RecordsMax && p.Bytes >= p.AccountBytes/accountsFraction
	return !p.Running && (many || p.Bytes >= p.BytesMax || p.final || p.retry)
}

// begin reports whether there is something new to keep at the end of the journal.
func (p *SnapshotPlan) begin(end uint64) bool {
	p.Records, p.Bytes, p.final, p.retry = 0, 0, false, false
	p.Running = end > p.Last
	return p.Running
}

// snapshotWritten is the outcome of a snapshot.
type snapshotWritten struct {
	mailbox.OneWay
	Sequence     uint64
	AccountBytes int64 // bytes of all accounts in it
	writtenBytes int64 // bytes, whole or not
	Err          error
}

// retrySnapshot tells that there is space for a snapshot that failed.
type retrySnapshot struct{ mailbox.OneWay }

// snapshotWritten makes room after a snapshot. One that failed costs only room: the log has everything.
func (j *Actor) snapshotWritten(m *snapshotWritten) {
	j.Snapshot.Running = false
	switch {
	case m.Err == nil:
		j.Snapshot.UncoveredRecords, j.Snapshot.UncoveredBytes = j.Snapshot.Records, j.Snapshot.Bytes
		j.Health.failing.Clear()
		j.Health.late.Clear()
		j.Snapshot.Last, j.Snapshot.dropBefore, j.Snapshot.AccountBytes = m.Sequence, m.Sequence+1, m.AccountBytes
	case errors.Is(m.Err, wal.ErrPoisoned):
		j.stop(writeError(m.Err))
		j.Fail(m.Err)
	default:
		j.Health.failing.Begin(j.Health.Clock())
		j.Health.retryBytes.Store(max(snapshotSpaceMin, 2*m.writtenBytes))
		j.Logger.Error("snapshot not taken, the log goes on without it", "sequence", m.Sequence, "cause", m.Err.Error())
	}
}

// snapshotSpaceMin is the least space for which a snapshot that failed waits; then it waits for twice what it had written.
const snapshotSpaceMin = 1 << 20

// Writer is the goroutine that encodes and writes snapshots while everything else goes on.
type SnapshotWriter struct {
	journal   Journal
	snapshots chan *StateSnapshot // one place: there is one snapshot at a time
	done      sync.WaitGroup
	to        *mailbox.Ref
}

// NewSnapshotWriter keeps nothing before Start.
func NewSnapshotWriter(journal Journal) *SnapshotWriter {
	return &SnapshotWriter{journal: journal, snapshots: make(chan *StateSnapshot, 1)}
}

// Start lets it work and report to the journal actor.
func (k *SnapshotWriter) Start(to *mailbox.Ref) {
	k.to = to
	k.done.Add(1)
	go k.run()
}

// Submit hands it a whole cut. There is at most one at a time.
func (k *SnapshotWriter) Submit(c *StateSnapshot) { k.snapshots <- c }

func (k *SnapshotWriter) run() {
	defer k.done.Done()
	for c := range k.snapshots {
		k.to.Send(k.Write(c))
	}
}

// Write writes a whole cut. Into one that failed owners may still be writing: it is not looked at.
func (k *SnapshotWriter) Write(c *StateSnapshot) *snapshotWritten {
	if why := c.Err.Load(); why != nil {
		return &snapshotWritten{Sequence: c.Sequence, Err: why}
	}
	counting := countingWriter{}
	err := k.journal.WriteSnapshot(c.Sequence, func(w io.Writer) error {
		counting = countingWriter{to: w}
		return c.Write(&counting)
	})
	return &snapshotWritten{Sequence: c.Sequence, AccountBytes: c.accountBytes(), writtenBytes: counting.written, Err: err}
}

// countingWriter counts what goes through it.
type countingWriter struct {
	to      io.Writer
	written int64
}

// Write is io.Writer.
func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.written += int64(n)
	return n, err
}

// Stop waits for the snapshot that is being written.
func (k *SnapshotWriter) Stop() {
	close(k.snapshots)
	k.done.Wait()
}
