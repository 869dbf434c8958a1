package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stalledWriter is an output whose reader reads only when resume is closed. It fails with err then, if that is not nil.
type stalledWriter struct {
	resume chan struct{}
	err    error
	mu     sync.Mutex
	text   bytes.Buffer
}

func (w *stalledWriter) Write(p []byte) (int, error) {
	<-w.resume
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	return w.text.Write(p)
}

// TestLogQueue_Stalled: while nothing reads the log, its lines are kept up to the limit and the others are counted; no
// Write waits. When the reader reads again, the log says how many are missing.
func TestLogQueue_Stalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stalledWriter{resume: make(chan struct{})}
		queue := NewLogQueue(out)
		log := NewNodeLogger(queue, LogOptions{Format: "text", Level: "info"})
		const lines = 20_000
		for i := range lines {
			log.Info(fmt.Sprintf("line %d", i), "padding", strings.Repeat("x", 100))
		}
		dropped := queue.Dropped()
		if dropped == 0 || dropped > lines-logQueueLines {
			t.Errorf("%d of %d lines were dropped", dropped, lines)
		}
		close(out.resume)
		synctest.Wait()
		queue.Close()
		if got := uint64(strings.Count(out.text.String(), "\"line ")); got != lines-dropped {
			t.Errorf("%d lines arrived, want %d", got, lines-dropped)
		}
		if want := fmt.Sprintf("because nothing read them\" lines=%d\n", dropped); !strings.HasSuffix(out.text.String(), want) {
			t.Errorf("the log does not end with %q", want)
		}
	})
}

// TestLogQueue_Close waits only a second for a reader that does not read, and counts the lines that could not be
// written.
func TestLogQueue_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stalledWriter{resume: make(chan struct{}), err: errors.New("broken pipe")}
		queue, began := NewLogQueue(out), time.Now()
		_, _ = queue.Write([]byte("a\nb\n"))
		queue.Close()
		if took := time.Now().Sub(began); took != logCloseMax { //nolint:staticcheck // time.Since is forbidden here
			t.Errorf("Close took %s", took)
		}
		if _, err := queue.Write([]byte("late\n")); err == nil {
			t.Error("a line was accepted after Close")
		}
		close(out.resume)
		synctest.Wait()
		if queue.Dropped() != 3 {
			t.Errorf("%d lines were dropped, want 3", queue.Dropped())
		}
	})
}

// TestRepeatLimiter: the same error of many requests is a line at once, and ten seconds later one with its number.
// Other records, and other errors, are logged as they come.
func TestRepeatLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		queue := NewLogQueue(&out)
		log := NewNodeLogger(queue, LogOptions{Format: "text", Level: "info"})
		fail := func(id int, cause string) { log.With("part", "a").Error("failed", "requestId", id, "cause", cause) }
		for id := range 1000 {
			fail(id, "full")
		}
		fail(1000, "gone")
		for id := range 2 {
			log.Error("no request", "id", id)
			log.Info("a request", "requestId", id)
		}
		<-time.NewTimer(repeatInterval + time.Second).C
		fail(1001, "full")
		fail(1002, "gone")
		for i := range 2 * repeatKeysMax {
			fail(i, fmt.Sprint("cause ", i))
		}
		queue.Close()
		text := out.String()
		for part, count := range map[string]int{
			"requestId=0 cause=full\n": 1, "requestId=1001 cause=full repeated=999\n": 1, "cause=full": 2,
			"cause=gone\n": 2, "no request": 2, "level=INFO msg=\"a request\"": 2, "cause=\"cause ": repeatKeysMax - 1, "repeated=": 1,
		} {
			if got := strings.Count(text, part); got != count {
				t.Errorf("%q: %d times, want %d", part, got, count)
			}
		}
		if t.Failed() {
			t.Log(text)
		}
	})
}

// TestLogging_Durations have their unit in both forms.
func TestLogging_Durations(t *testing.T) {
	for format, want := range map[string]string{"text": "pause=1m30s", "json": `"pause":"1m30s"`} {
		var out bytes.Buffer
		NewLogger(&out, LogOptions{Format: format}).Info("mail", slog.Duration("pause", 90*time.Second))
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}
