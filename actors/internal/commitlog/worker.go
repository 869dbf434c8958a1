package commitlog

import (
	"errors"
	"sync"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

// CheckInterval is the period of the free-space checks of an idle writer (the worker that appends records).
const CheckInterval = 500 * time.Millisecond

// spaceMargin is the free space at which Health ends the fault of a full disk.
const spaceMargin = 64 << 10

// worker is a goroutine for work that waits for the disk. An actor must not block, so it leaves such work to workers.
type worker struct {
	jobs chan func()
	done sync.WaitGroup
}

func newWorker() *worker { return &worker{jobs: make(chan func(), 1)} }

// start starts the goroutine. If tick is not nil, the goroutine calls it every CheckInterval while it has no job.
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

// submit gives the worker a job. It does not block: the Actor submits a job only after the result of the previous one.
func (w *worker) submit(job func()) { w.jobs <- job }

// stop waits for all jobs and for the end of the goroutine.
func (w *worker) stop() {
	close(w.jobs)
	w.done.Wait()
}

// appendResult tells the Actor the result of Log.append.
type appendResult struct {
	mailbox.OneWay
	last uint64
	err  error
}

// append appends a batch and sends appendResult to the Actor. It is a job of the writer.
func (l *Log) append(expected uint64, records [][]byte) {
	last, err := l.Journal.Append(expected, records)
	if errors.Is(err, wal.ErrNoSpace) {
		l.Health.rejectedBytes.Store(int64(BatchBytes(records)))
		l.Health.diskFull.Begin(l.Health.Clock())
	}
	l.Ref.Send(&appendResult{last: last, err: err})
}

// dropResult tells the Actor the result of Log.drop.
type dropResult struct {
	mailbox.OneWay
	err error
}

// drop deletes old records and sends dropResult to the Actor. It is a job of the writer.
func (l *Log) drop(before uint64) { l.Ref.Send(&dropResult{err: l.Journal.DropBefore(before)}) }

// spaceChecker is a Journal that can check whether the disk has space for a write.
type spaceChecker interface{ CheckSpace(bytes int64) error }

// checkSpace updates Health. When the disk has space again, it makes the Actor retry a failed snapshot.
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
