package actors

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// cut is the state of all owners after one record of the journal: the journal actor sends each owner its
// share behind the last commit up to that record and before the next one.
type cut struct {
	sequence uint64
	boards   []*engine.Board
	whole    bool       // accounts and registry as well
	ledgers  [][][]byte // of each shard its accounts, as record.AccountParts takes them apart
	registry registryCut
	done     func(*cut) // called once, when the last share is there or settled

	missing atomic.Int64
	err     atomic.Pointer[engine.Error]
}

// share is the part of a cut that one owner has: a currency's board, a shard's accounts, the state of one of them, or the registry. Owners
// go on at once: what they hand over is immutable.
type share struct {
	mailbox.OneWay
	cut         *cut
	index, slot int
}

func (s *share) handBoard(board *engine.Board) {
	s.cut.boards[s.index] = board
	s.cut.arrived()
}

func (s *share) handAccount(state []byte) {
	s.cut.ledgers[s.index][s.slot] = state
	s.cut.arrived()
}

func (s *share) handRegistry(registry registryCut) {
	s.cut.registry = registry
	s.cut.arrived()
}

// Reject gives up a cut of which an owner has stopped.
func (s *share) Reject(why *engine.Error) {
	s.cut.err.Store(why)
	s.cut.arrived()
}

func (c *cut) arrived() {
	if c.missing.Add(-1) == 0 {
		c.done(c)
	}
}

// cutQuestion asks for a cut at the present end of the journal.
type cutQuestion = mailbox.Question[struct{}, *cut]

// share sends every owner its share.
func (j *journalActor) share(c *cut) {
	c.boards = make([]*engine.Board, len(j.owners))
	c.missing.Store(int64(len(j.owners)) + 1)
	for i, owner := range j.owners {
		owner.Send(&share{cut: c, index: i})
	}
	if c.whole {
		j.shareLedgers(c)
	}
	c.arrived()
}

// answerCuts gives everybody who waits the same cut.
func (j *journalActor) answerCuts() {
	askers := j.cuts
	j.cuts = nil
	j.share(&cut{sequence: j.last, done: func(c *cut) {
		for _, q := range askers {
			if err := c.err.Load(); err != nil {
				q.Reject(err)
				continue
			}
			q.Reply(c, nil)
		}
	}})
}

// snapshotPlan is the journal actor's view of snapshots: when the next one is due.
type snapshotPlan struct {
	keeper     *keeper
	recordsMax int
	bytesMax   int64

	last    uint64 // sequence of the newest one
	records int    // appended since
	bytes   int64
	ledger  int64 // bytes of all accounts in it
	running bool
	final   bool   // Close wants one
	tried   bool   // and got one, or an error
	again   bool   // one that failed is tried again
	missed  int    // records since the newest one
	lost    int64  // bytes of them
	drop    uint64 // records before this one can go
}

func (p *snapshotPlan) count(records, bytes int) {
	p.records += records
	p.bytes += int64(bytes)
	p.missed += records
	p.lost += int64(bytes)
}

// late reports that records have come for several snapshots, and none was written.
func (p *snapshotPlan) late() bool {
	many := p.missed >= lateSnapshots*p.recordsMax && p.lost >= p.ledger
	return many || p.lost >= lateSnapshots*p.bytesMax
}

// ledgerPart is how large a part of all accounts the records since the last snapshot are at least: with a
// million accounts a snapshot is as long as hours of records.
const ledgerPart = 4

func (p *snapshotPlan) due() bool {
	many := p.records >= p.recordsMax && p.bytes >= p.ledger/ledgerPart
	return !p.running && (many || p.bytes >= p.bytesMax || p.final || p.again)
}

// begin reports whether there is something new to keep at the end of the journal.
func (p *snapshotPlan) begin(end uint64) bool {
	p.records, p.bytes, p.final, p.again = 0, 0, false, false
	p.running = end > p.last
	return p.running
}

// snapshotted is the outcome of a snapshot.
type snapshotted struct {
	mailbox.OneWay
	sequence uint64
	ledger   int64 // bytes of all accounts in it
	written  int64 // bytes, whole or not
	err      error
}

// again tells that there is space for a snapshot that failed.
type again struct{ mailbox.OneWay }

// snapshotted makes room after a snapshot. One that failed costs only room: the log has everything.
func (j *journalActor) snapshotted(m *snapshotted) {
	j.snapshot.running = false
	switch {
	case m.err == nil:
		j.snapshot.missed, j.snapshot.lost = j.snapshot.records, j.snapshot.bytes
		j.vitals.failing.End()
		j.vitals.late.End()
		j.snapshot.last, j.snapshot.drop, j.snapshot.ledger = m.sequence, m.sequence+1, m.ledger
	case errors.Is(m.err, wal.ErrPoisoned):
		j.stop(outcome(m.err))
		j.fail(m.err)
	default:
		j.vitals.failing.Begin(j.vitals.clock())
		j.vitals.wanted.Store(max(snapshotSpaceMin, 2*m.written))
		j.logger.Error("snapshot not taken, the log goes on without it", "sequence", m.sequence, "cause", m.err.Error())
	}
}

// snapshotSpaceMin is the least space for which a snapshot that failed waits; then it waits for twice what it had written.
const snapshotSpaceMin = 1 << 20

// keeper is the goroutine that encodes and writes snapshots while everything else goes on.
type keeper struct {
	journal Journal
	cuts    chan *cut // one place: there is one snapshot at a time
	done    sync.WaitGroup
	to      *mailbox.Ref
}

func newKeeper(journal Journal) *keeper {
	return &keeper{journal: journal, cuts: make(chan *cut, 1)}
}

func (k *keeper) start(to *mailbox.Ref) {
	k.to = to
	k.done.Add(1)
	go k.run()
}

func (k *keeper) take(c *cut) { k.cuts <- c }

func (k *keeper) run() {
	defer k.done.Done()
	for c := range k.cuts {
		k.to.Send(k.keep(c))
	}
}

// keep writes a whole cut. Into one that failed owners may still be writing: it is not looked at.
func (k *keeper) keep(c *cut) *snapshotted {
	if why := c.err.Load(); why != nil {
		return &snapshotted{sequence: c.sequence, err: why}
	}
	counting := countingWriter{}
	err := k.journal.WriteSnapshot(c.sequence, func(w io.Writer) error {
		counting = countingWriter{to: w}
		return c.write(&counting)
	})
	return &snapshotted{sequence: c.sequence, ledger: c.ledgerBytes(), written: counting.written, err: err}
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

// stop waits for the snapshot that is being written.
func (k *keeper) stop() {
	close(k.cuts)
	k.done.Wait()
}
