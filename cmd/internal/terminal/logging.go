package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// LogOptions are the format and lowest level of a log.
type LogOptions struct {
	Format string // auto, text, json
	Level  string // debug, info, warn, error
}

// NewLogger returns a logger.
func NewLogger(out io.Writer, o LogOptions) *slog.Logger { return slog.New(newHandler(out, o)) }

func newHandler(out io.Writer, o LogOptions) slog.Handler {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.Level)); err != nil {
		level = slog.LevelInfo // cannot happen: the flag accepts only known levels
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: redactAttr}
	if o.IsJSON(out) {
		return slog.NewJSONHandler(out, options)
	}
	return slog.NewTextHandler(out, options)
}

// IsJSON reports whether a logger with these options writes JSON to out. Format "auto" means text on a terminal, and
// JSON elsewhere.
func (o LogOptions) IsJSON(out io.Writer) bool {
	return o.Format == "json" || o.Format == "auto" && !IsTerminal(out)
}

// NewNodeLogger returns the logger of a node. It logs equal errors of requests at most once in ten seconds, with their
// number, and reports dropped lines of the queue.
func NewNodeLogger(queue *LogQueue, o LogOptions) *slog.Logger {
	logger := slog.New(&repeatLimiter{newHandler(queue, o), &recentErrors{errors: map[string]recentError{}}})
	queue.OnDropped(func(lines uint64) {
		logger.Warn("lines of the log were dropped, because nothing read them", "lines", lines)
	})
	return logger
}

// IsTerminal reports whether out is a terminal or another character device, such as /dev/null.
func IsTerminal(out any) bool {
	if queue, ok := out.(*LogQueue); ok {
		out = queue.out
	}
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// secretNames are the names of redacted attributes.
const secretNames = " authorization code cookie email key password secret token "

// redactAttr hides secrets, converts times to UTC, and writes durations with their unit. It shows the attribute code if
// its value is a word: error codes are words, but login codes have digits. Times of lines are in whole milliseconds.
func redactAttr(groups []string, attr slog.Attr) slog.Attr {
	if attr.Key == slog.TimeKey && len(groups) == 0 && attr.Value.Kind() == slog.KindTime {
		return slog.String(slog.TimeKey, attr.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	name := strings.ToLower(attr.Key)
	if strings.Contains(secretNames, " "+name+" ") && !(name == "code" && isWord(attr.Value)) {
		return slog.String(attr.Key, "(hidden)")
	}
	switch attr.Value.Kind() {
	case slog.KindTime:
		return slog.Time(attr.Key, attr.Value.Time().UTC())
	case slog.KindDuration:
		return slog.String(attr.Key, attr.Value.String())
	}
	return attr
}

func isWord(value slog.Value) bool {
	return value.Kind() == slog.KindString &&
		!strings.ContainsFunc(value.String(), func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
}

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

const (
	repeatInterval = 10 * time.Second // minimum time between two lines about the same error
	repeatKeysMax  = 16               // maximum number of different errors; further ones count as one
	requestAttr    = "requestId"      // the attribute that marks a record about one request
)

// repeatLimiter is a slog.Handler. It logs equal errors of requests at most once in repeatInterval, so that a full
// disk, for example, does not cause a line for each request. Errors are equal if they differ only in the id of the
// request. The attribute repeated is the number of records omitted since the previous line. All other records pass.
type repeatLimiter struct {
	slog.Handler
	recent *recentErrors
}

// recentErrors holds the logged errors by text. Handlers from WithAttrs and WithGroup share it.
type recentErrors struct {
	mu     sync.Mutex
	errors map[string]recentError
}

type recentError struct {
	loggedAt time.Time
	leftOut  int // number of equal records omitted since then
}

// Handle implements slog.Handler.
func (l *repeatLimiter) Handle(ctx context.Context, record slog.Record) error {
	key, ofRequest := record.Message, false
	record.Attrs(func(attr slog.Attr) bool {
		if attr.Key == requestAttr {
			ofRequest = true
		} else {
			key += "\n" + attr.String()
		}
		return true
	})
	if ofRequest && record.Level >= slog.LevelWarn {
		repeated, leaveOut := l.recent.note(key, record.Time)
		if leaveOut {
			return nil
		}
		if repeated > 0 {
			record.AddAttrs(slog.Int("repeated", repeated))
		}
	}
	return l.Handler.Handle(ctx, record)
}

// note counts an error. If the record must be logged, it returns the number of equal records omitted before it.
func (e *recentErrors) note(key string, now time.Time) (repeated int, leaveOut bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, isKnown := e.errors[key]
	if !isKnown && len(e.errors) >= repeatKeysMax {
		key = ""
		last, isKnown = e.errors[key]
	}
	if isKnown && now.Sub(last.loggedAt) < repeatInterval {
		last.leftOut++
		e.errors[key] = last
		return 0, true
	}
	e.errors[key] = recentError{loggedAt: now}
	return last.leftOut, false
}

// WithAttrs implements slog.Handler.
func (l *repeatLimiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &repeatLimiter{l.Handler.WithAttrs(attrs), l.recent}
}

// WithGroup implements slog.Handler.
func (l *repeatLimiter) WithGroup(name string) slog.Handler {
	return &repeatLimiter{l.Handler.WithGroup(name), l.recent}
}
