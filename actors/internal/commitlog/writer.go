package commitlog

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

// job is one thing that the writer does: append records, or let go of old ones.
type job struct {
	expected   uint64
	records    [][]byte
	dropBefore uint64 // 0: append
}

// writtenBytes is the outcome of an append.
type written struct {
	mailbox.OneWay
	last uint64
	err  error
}

// dropped is the outcome of letting go of old records.
type dropped struct {
	mailbox.OneWay
	err error
}

// Writer is the goroutine that waits for the disk, so that no actor does. It does one job at a time: the
// journal actor gives it the next one after the outcome of the last.
type Writer struct {
	health  *Health
	onTick  func() // at the clock
	journal Journal
	jobs    chan job // one place: taking never blocks the actor
	done    sync.WaitGroup
	to      *mailbox.Ref
}

// NewWriter writes nothing before Start. While it has nothing to write it calls look again and again.
func NewWriter(journal Journal, v *Health, look func()) *Writer {
	return &Writer{journal: journal, health: v, onTick: look, jobs: make(chan job, 1)}
}

// Start lets it work and report to the journal actor.
func (w *Writer) Start(to *mailbox.Ref) {
	w.to = to
	w.done.Add(1)
	go w.run()
}

func (w *Writer) submit(j job) { w.jobs <- j }

func (w *Writer) run() {
	defer w.done.Done()
	ticker := time.NewTicker(CheckInterval)
	defer ticker.Stop()
	for {
		select {
		case j, more := <-w.jobs:
			if !more {
				return
			}
			w.do(j)
		case <-ticker.C:
			w.onTick()
			w.checkSpace()
		}
	}
}

func (w *Writer) do(j job) {
	if j.dropBefore > 0 {
		w.to.Send(&dropped{err: w.journal.DropBefore(j.dropBefore)})
		return
	}
	// What the last job let go runs first: on one processor all would wait for the disk as well.
	runtime.Gosched()
	last, err := w.journal.Append(j.expected, j.records)
	if errors.Is(err, wal.ErrNoSpace) {
		w.health.refusedBytes.Store(int64(BatchBytes(j.records)))
		w.health.full.Begin(w.health.Clock())
	}
	w.to.Send(&written{last: last, err: err})
}

// CheckInterval is how often the writer looks, while it has nothing to write, whether it could, and at the clock. A disk that fills up shows
// within a second, and one that has space again within five.
const CheckInterval = 500 * time.Millisecond

// spaceMargin is what must be free beyond the least that can be written until a disk has space again.
const spaceMargin = 64 << 10

// spaceChecker is a journal that can tell, without writing, whether it would take so many bytes.
type spaceChecker interface{ CheckSpace(bytes int64) error }

// checkSpace notes whether there is space, and has a snapshot that failed tried again when there is.
func (w *Writer) checkSpace() {
	journal, tells := w.journal.(spaceChecker)
	if !tells {
		return
	}
	now := w.health.Clock()
	switch {
	case errors.Is(journal.CheckSpace(0), wal.ErrNoSpace):
		w.health.full.Begin(now)
	case journal.CheckSpace(max(spaceMargin, w.health.refusedBytes.Load())) == nil:
		w.health.refusedBytes.Store(0)
		w.health.full.Recover(now)
	}
	if wanted := w.health.retryBytes.Load(); wanted > 0 && journal.CheckSpace(wanted) == nil {
		w.health.retryBytes.Store(0)
		w.to.Send(&retrySnapshot{})
	}
}

// Stop waits until the last job is done.
func (w *Writer) Stop() {
	close(w.jobs)
	w.done.Wait()
}
