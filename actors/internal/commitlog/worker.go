package commitlog

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

// CheckInterval is how often an idle writer checks the free space and calls OnTick. A full disk is reported within a
// second, and its recovery within five.
const CheckInterval = 500 * time.Millisecond

// spaceMargin is the minimum size of a write that must fit before a full disk counts as recovered.
const spaceMargin = 64 << 10

// worker is a goroutine that executes jobs that wait for the disk, because actors must not block. At most one job
// waits.
type worker struct {
	jobs chan func()
	done sync.WaitGroup
}

func newWorker() *worker { return &worker{jobs: make(chan func(), 1)} }

// start starts the goroutine. While there are no jobs it calls tick every CheckInterval, unless tick is nil.
func (w *worker) start(tick func()) {
	w.done.Add(1)
	go w.run(tick)
}

func (w *worker) run(tick func()) {
	defer w.done.Done()
	var ticks <-chan time.Time
	if tick != nil {
		ticker := time.NewTicker(CheckInterval)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for {
		select {
		case job, ok := <-w.jobs:
			if !ok {
				return
			}
			job()
		case <-ticks:
			tick()
		}
	}
}

// submit submits a job. It does not block, because the Actor has at most one job waiting.
func (w *worker) submit(job func()) { w.jobs <- job }

// stop waits for the last job and ends the goroutine.
func (w *worker) stop() {
	close(w.jobs)
	w.done.Wait()
}

// written is the result of an append.
type written struct {
	mailbox.OneWay
	last uint64
	err  error
}

// append appends a batch and sends the result to the Actor. The writer calls it.
func (l *Log) append(expected uint64, records [][]byte) {
	// Let the goroutines that the last batch woke run first. On one processor they would otherwise wait for the disk too.
	runtime.Gosched()
	last, err := l.Journal.Append(expected, records)
	if errors.Is(err, wal.ErrNoSpace) {
		l.Health.rejectedBytes.Store(int64(BatchBytes(records)))
		l.Health.diskFull.Begin(l.Health.Clock())
	}
	l.Ref.Send(&written{last: last, err: err})
}

// dropped is the result of dropping old records.
type dropped struct {
	mailbox.OneWay
	err error
}

// drop drops old records and sends the result to the Actor. The writer calls it.
func (l *Log) drop(before uint64) { l.Ref.Send(&dropped{err: l.Journal.DropBefore(before)}) }

// tick is called by the idle writer.
func (l *Log) tick() {
	l.OnTick()
	l.checkSpace()
}

// spaceChecker is implemented by a Journal that can check, without writing, whether a write would fit.
type spaceChecker interface{ CheckSpace(bytes int64) error }

// checkSpace updates the health. If there is space again, it lets the Actor retry a failed snapshot.
func (l *Log) checkSpace() {
	journal, ok := l.Journal.(spaceChecker)
	if !ok {
		return
	}
	now := l.Health.Clock()
	switch {
	case errors.Is(journal.CheckSpace(0), wal.ErrNoSpace):
		l.Health.diskFull.Begin(now)
	case journal.CheckSpace(max(spaceMargin, l.Health.rejectedBytes.Load())) == nil:
		l.Health.rejectedBytes.Store(0)
		l.Health.diskFull.Recover(now)
	}
	if bytes := l.Health.retryBytes.Load(); bytes > 0 && journal.CheckSpace(bytes) == nil {
		l.Health.retryBytes.Store(0)
		l.Ref.Send(&retrySnapshot{})
	}
}
