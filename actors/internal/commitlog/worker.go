package commitlog

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

// CheckInterval is how often an idle log checks the free space and calls OnTick. A disk that fills up is noticed
// within a second, one that has space again within five.
const CheckInterval = 500 * time.Millisecond

// spaceMargin must be free beyond the least possible write before a disk counts as having space again.
const spaceMargin = 64 << 10

// worker is a goroutine that waits for the disk, so that no actor does. It has at most one job waiting.
type worker struct {
	jobs chan func()
	done sync.WaitGroup
}

func newWorker() *worker { return &worker{jobs: make(chan func(), 1)} }

// start runs jobs until stop; tick, if it is not nil, is called while there are none.
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
		case job, more := <-w.jobs:
			if !more {
				return
			}
			job()
		case <-ticks:
			tick()
		}
	}
}

// submit never blocks: the Actor has at most one job waiting.
func (w *worker) submit(job func()) { w.jobs <- job }

// stop waits for the last job.
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

// append appends a batch. It runs in the writer.
func (l *Log) append(expected uint64, records [][]byte) {
	// On one processor the goroutines that the last batch woke run first: they would wait for the disk as well.
	runtime.Gosched()
	last, err := l.Journal.Append(expected, records)
	if errors.Is(err, wal.ErrNoSpace) {
		l.Health.refusedBytes.Store(int64(BatchBytes(records)))
		l.Health.full.Begin(l.Health.Clock())
	}
	l.Ref.Send(&written{last: last, err: err})
}

// dropped is the result of dropping old records.
type dropped struct {
	mailbox.OneWay
	err error
}

// drop drops old records. It runs in the writer.
func (l *Log) drop(before uint64) { l.Ref.Send(&dropped{err: l.Journal.DropBefore(before)}) }

// tick runs in the writer while it is idle.
func (l *Log) tick() {
	l.OnTick()
	l.checkSpace()
}

// spaceChecker is a Journal that can tell without writing whether it would accept so many bytes.
type spaceChecker interface{ CheckSpace(bytes int64) error }

// checkSpace updates the health and has a failed snapshot retried once there is space.
func (l *Log) checkSpace() {
	journal, ok := l.Journal.(spaceChecker)
	if !ok {
		return
	}
	now := l.Health.Clock()
	switch {
	case errors.Is(journal.CheckSpace(0), wal.ErrNoSpace):
		l.Health.full.Begin(now)
	case journal.CheckSpace(max(spaceMargin, l.Health.refusedBytes.Load())) == nil:
		l.Health.refusedBytes.Store(0)
		l.Health.full.Recover(now)
	}
	if bytes := l.Health.retryBytes.Load(); bytes > 0 && journal.CheckSpace(bytes) == nil {
		l.Health.retryBytes.Store(0)
		l.Ref.Send(&retrySnapshot{})
	}
}
