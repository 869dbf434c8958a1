package terminal

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// logQueueBytesMax is the maximum size of a LogQueue's waiting lines, about 4,000 lines.
	logQueueBytesMax = 1 << 20
	// logQueueBytesKept is the maximum buffer size of a LogQueue while few lines wait.
	logQueueBytesKept = 64 << 10
	// logCloseMax limits how long LogQueue.Close waits for a blocked reader.
	logCloseMax = time.Second
)

var errLogQueueFull = errors.New("the line was dropped: too many wait for the reader of the output")

// LogQueue is a writer for logs that never blocks on the reader of the log, so that a blocked reader does not stop the
// node. A goroutine writes the lines. Beyond a maximum, lines are dropped and counted. LogQueue is safe for concurrent
// use.
type LogQueue struct {
	out       io.Writer
	onDropped func(lines uint64) // see OnDropped
	dropped   atomic.Uint64
	wake      chan struct{} // signals the goroutine to check the fields below
	done      chan struct{} // closed when the goroutine has returned

	mu      sync.Mutex
	waiting []byte // whole lines
	spare   []byte // the next buffer for waiting lines; may be nil
	failure error  // result of the newest write
	closing bool
}

// NewLogQueue returns a queue in front of out, and starts its goroutine. The caller must call Close.
func NewLogQueue(out io.Writer) *LogQueue {
	q := &LogQueue{out: out, onDropped: func(uint64) {}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// OnDropped sets a function that is called when out accepts lines again after some were dropped. The function may write
// to the queue. OnDropped must be called before the first Write.
func (q *LogQueue) OnDropped(report func(lines uint64)) { q.onDropped = report }

// Dropped returns how many lines were dropped so far, because the queue was full or out could not be written.
func (q *LogQueue) Dropped() uint64 { return q.dropped.Load() }

// Write queues a line, which must end with a newline. It never waits. The error means that the line was dropped, or
// that the newest write to out has failed.
func (q *LogQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if len(q.waiting)+len(line) > logQueueBytesMax || q.closing {
		q.mu.Unlock()
		q.dropped.Add(1)
		return 0, errLogQueueFull
	}
	q.waiting = append(q.waiting, line...)
	failure := q.failure
	q.mu.Unlock()
	q.signal()
	return len(line), failure
}

func (q *LogQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Close writes the lines that wait. It waits at most logCloseMax for a reader of the log that does not read; the
// goroutine then ends with the process.
func (q *LogQueue) Close() {
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	q.signal()
	limit := time.NewTimer(logCloseMax)
	defer limit.Stop()
	select {
	case <-q.done:
	case <-limit.C:
	}
}

// run writes the lines until Close.
func (q *LogQueue) run() {
	defer close(q.done)
	var reported uint64
	for range q.wake {
		for {
			lines, closing := q.take()
			if len(lines) > 0 {
				q.write(lines)
				continue
			}
			if closing {
				return
			}
			dropped := q.Dropped()
			if dropped == reported || q.failure != nil { // only this goroutine changes failure
				break
			}
			q.onDropped(dropped - reported)
			reported = dropped
		}
	}
}

// take removes and returns the lines that wait.
func (q *LogQueue) take() (lines []byte, closing bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, q.waiting, q.spare = q.waiting, q.spare[:0], nil
	return lines, q.closing
}

// write writes lines to out. If that fails, those that were not written count as dropped.
func (q *LogQueue) write(lines []byte) {
	n, err := q.out.Write(lines)
	if err != nil {
		q.dropped.Add(uint64(bytes.Count(lines[n:], []byte{'\n'}))) //nolint:gosec // G115: a count
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failure = err
	if cap(lines) <= logQueueBytesKept {
		q.spare = lines
	}
}
