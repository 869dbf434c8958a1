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
	// logQueueLines is the maximum number of a LogQueue's waiting lines, about 1 MiB.
	logQueueLines = 4096
	// logWriteBytes is the size at which a LogQueue adds no more lines to a write.
	logWriteBytes = 64 << 10
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
	lines     chan []byte
	close     func()        // closes closing, once
	closing   chan struct{} // closed by Close
	done      chan struct{} // closed when the goroutine has returned
}

// NewLogQueue returns a queue in front of out, and starts its goroutine. The caller must call Close.
func NewLogQueue(out io.Writer) *LogQueue {
	q := &LogQueue{out: out, onDropped: func(uint64) {}, lines: make(chan []byte, logQueueLines), closing: make(chan struct{}), done: make(chan struct{})}
	q.close = sync.OnceFunc(func() { close(q.closing) })
	go q.run()
	return q
}

// OnDropped sets a function that is called when out accepts lines again after some were dropped. The function may write
// to the queue. OnDropped must be called before the first Write.
func (q *LogQueue) OnDropped(report func(lines uint64)) { q.onDropped = report }

// Dropped returns how many lines were dropped so far, because the queue was full or out could not be written.
func (q *LogQueue) Dropped() uint64 { return q.dropped.Load() }

// Write queues a line, which must end with a newline. It never waits. The error means that the line was dropped.
func (q *LogQueue) Write(line []byte) (int, error) {
	select {
	case <-q.closing:
	default:
		select {
		case q.lines <- bytes.Clone(line):
			return len(line), nil
		default:
		}
	}
	q.drop(line)
	return 0, errLogQueueFull
}

func (q *LogQueue) drop(lines []byte) {
	q.dropped.Add(uint64(bytes.Count(lines, []byte{'\n'}))) //nolint:gosec // G115: a count
}

// Close writes the waiting lines. It waits at most logCloseMax for a blocked reader of the log; in that case the
// goroutine ends with the process.
func (q *LogQueue) Close() {
	q.close()
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
	for {
		select {
		case line := <-q.lines:
			dropped := q.Dropped()
			if q.write(line) && len(q.lines) == 0 && dropped > reported {
				q.onDropped(dropped - reported)
				reported = dropped
			}
		case <-q.closing:
			for len(q.lines) > 0 {
				q.write(<-q.lines)
			}
			return
		}
	}
}

// write writes a line together with those that wait. It returns false if that fails. Lines that were not written count
// as dropped.
func (q *LogQueue) write(lines []byte) bool {
	for len(q.lines) > 0 && len(lines) < logWriteBytes { // only this goroutine takes lines
		lines = append(lines, <-q.lines...)
	}
	n, err := q.out.Write(lines)
	if err != nil {
		q.drop(lines[n:])
	}
	return err == nil
}
