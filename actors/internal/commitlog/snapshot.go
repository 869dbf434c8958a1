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

// Cut is the state of all owners after one record of the journal: the journal actor sends each owner its
// share behind the last commit up to that record and before the next one.
type Cut struct {
	Sequence uint64
	Boards   []*engine.Board
	Whole    bool       // accounts and registry as well
	Ledgers  [][][]byte // of each shard its accounts, as record.AccountParts takes them apart
	Registry RegistryCut
	Done     func(*Cut) // called once, when the last share is there or settled

	Missing atomic.Int64
	Err     atomic.Pointer[engine.Error]
}

// Share is the part of a cut that one owner has: a currency's board, a shard's accounts, the state of one of them, or the registry. Owners
// go on at once: what they hand over is immutable.
type Share struct {
	mailbox.OneWay
	Cut         *Cut
	Index, Slot int
}

// HandBoard is for the actor of a currency.
func (s *Share) HandBoard(board *engine.Board) {
	s.Cut.Boards[s.Index] = board
	s.Cut.Arrived()
}

// HandAccount is for one account, with its state as record.AccountParts takes it apart.
func (s *Share) HandAccount(state []byte) {
	s.Cut.Ledgers[s.Index][s.Slot] = state
	s.Cut.Arrived()
}

// HandRegistry is for the registrar.
func (s *Share) HandRegistry(registry RegistryCut) {
	s.Cut.Registry = registry
	s.Cut.Arrived()
}

// Reject gives up a cut of which an owner has stopped.
func (s *Share) Reject(why *engine.Error) {
	s.Cut.Err.Store(why)
	s.Cut.Arrived()
}

// Arrived counts a share that is there, or given up; behind the last one Done is called.
func (c *Cut) Arrived() {
	if c.Missing.Add(-1) == 0 {
		c.Done(c)
	}
}

// cutQuestion asks for a cut at the present end of the journal.
type cutQuestion = mailbox.Question[struct{}, *Cut]

// share sends every owner its share.
func (j *Actor) share(c *Cut) {
	c.Boards = make([]*engine.Board, len(j.Owners))
	c.Missing.Store(int64(len(j.Owners)) + 1)
	for i, owner := range j.Owners {
		owner.Send(&Share{Cut: c, Index: i})
	}
	if c.Whole {
		j.shareLedgers(c)
	}
	c.Arrived()
}

// answerCuts gives everybody who waits the same cut.
func (j *Actor) answerCuts() {
	askers := j.cuts
	j.cuts = nil
	j.share(&Cut{Sequence: j.Last, Done: func(c *Cut) {
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
	Keeper     *Keeper
	RecordsMax int
	BytesMax   int64

	Last    uint64 // sequence of the newest one
	Records int    // appended since
	Bytes   int64
	Ledger  int64 // bytes of all accounts in it
	Running bool
	final   bool   // Close wants one
	tried   bool   // and got one, or an error
	again   bool   // one that failed is tried again
	Missed  int    // records since the newest one
	Lost    int64  // bytes of them
	drop    uint64 // records before this one can go
}

// Count notes records that no snapshot has.
func (p *SnapshotPlan) Count(records, bytes int) {
	p.Records += records
	p.Bytes += int64(bytes)
	p.Missed += records
	p.Lost += int64(bytes)
}

// Late reports that records have come for several snapshots, and none was written.
func (p *SnapshotPlan) Late() bool {
	many := p.Missed >= lateSnapshots*p.RecordsMax && p.Lost >= p.Ledger
	return many || p.Lost >= lateSnapshots*p.BytesMax
}

// ledgerPart is how large a part of all accounts the records since the last snapshot are at least: with a
// million accounts a snapshot is as long as hours of records.
const ledgerPart = 4

func (p *SnapshotPlan) due() bool {
	many := p.Records >= p.RecordsMax && p.Bytes >= p.Ledger/ledgerPart
	return !p.Running && (many || p.Bytes >= p.BytesMax || p.final || p.again)
}

// begin reports whether there is something new to keep at the end of the journal.
func (p *SnapshotPlan) begin(end uint64) bool {
	p.Records, p.Bytes, p.final, p.again = 0, 0, false, false
	p.Running = end > p.Last
	return p.Running
}

// snapshotted is the outcome of a snapshot.
type snapshotted struct {
	mailbox.OneWay
	Sequence uint64
	Ledger   int64 // bytes of all accounts in it
	written  int64 // bytes, whole or not
	Err      error
}

// again tells that there is space for a snapshot that failed.
type again struct{ mailbox.OneWay }

// snapshotted makes room after a snapshot. One that failed costs only room: the log has everything.
func (j *Actor) snapshotted(m *snapshotted) {
	j.Snapshot.Running = false
	switch {
	case m.Err == nil:
		j.Snapshot.Missed, j.Snapshot.Lost = j.Snapshot.Records, j.Snapshot.Bytes
		j.Vitals.failing.End()
		j.Vitals.late.End()
		j.Snapshot.Last, j.Snapshot.drop, j.Snapshot.Ledger = m.Sequence, m.Sequence+1, m.Ledger
	case errors.Is(m.Err, wal.ErrPoisoned):
		j.stop(outcome(m.Err))
		j.Fail(m.Err)
	default:
		j.Vitals.failing.Begin(j.Vitals.Clock())
		j.Vitals.wanted.Store(max(snapshotSpaceMin, 2*m.written))
		j.Logger.Error("snapshot not taken, the log goes on without it", "sequence", m.Sequence, "cause", m.Err.Error())
	}
}

// snapshotSpaceMin is the least space for which a snapshot that failed waits; then it waits for twice what it had written.
const snapshotSpaceMin = 1 << 20

// Keeper is the goroutine that encodes and writes snapshots while everything else goes on.
type Keeper struct {
	journal Journal
	cuts    chan *Cut // one place: there is one snapshot at a time
	done    sync.WaitGroup
	to      *mailbox.Ref
}

// NewKeeper keeps nothing before Start.
func NewKeeper(journal Journal) *Keeper {
	return &Keeper{journal: journal, cuts: make(chan *Cut, 1)}
}

// Start lets it work and report to the journal actor.
func (k *Keeper) Start(to *mailbox.Ref) {
	k.to = to
	k.done.Add(1)
	go k.run()
}

// Take hands it a whole cut. There is at most one at a time.
func (k *Keeper) Take(c *Cut) { k.cuts <- c }

func (k *Keeper) run() {
	defer k.done.Done()
	for c := range k.cuts {
		k.to.Send(k.Keep(c))
	}
}

// Keep writes a whole cut. Into one that failed owners may still be writing: it is not looked at.
func (k *Keeper) Keep(c *Cut) *snapshotted {
	if why := c.Err.Load(); why != nil {
		return &snapshotted{Sequence: c.Sequence, Err: why}
	}
	counting := countingWriter{}
	err := k.journal.WriteSnapshot(c.Sequence, func(w io.Writer) error {
		counting = countingWriter{to: w}
		return c.Write(&counting)
	})
	return &snapshotted{Sequence: c.Sequence, Ledger: c.ledgerBytes(), written: counting.written, Err: err}
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
func (k *Keeper) Stop() {
	close(k.cuts)
	k.done.Wait()
}
