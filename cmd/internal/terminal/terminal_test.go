package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
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

func TestLogging_Lines(t *testing.T) {
	var out bytes.Buffer
	log := NewLogger(&out, LogOptions{Format: "text", Level: "info"})
	log = log.With("part", "wal").WithGroup("file").With("name", "a b")
	at := time.Date(2026, 6, 30, 11, 0, 0, 0, time.FixedZone("", -4*60*60))
	record := slog.NewRecord(at, slog.LevelWarn, "torn tail cut", 0)
	record.AddAttrs(slog.Int("bytes", 7), slog.Any("error", errors.New("x\ny")), slog.Time("when", at), slog.Duration("pause", 90*time.Second), slog.String("empty", ""),
		slog.Group("more", slog.String("Authorization", "Bearer abc"), slog.String("is", "é=")))
	if err := log.Handler().Handle(context.Background(), record); err != nil {
		t.Fatal(err)
	}
	log.Debug("not written")
	want := `time=2026-06-30T15:00:00.000Z level=WARN msg="torn tail cut" part=wal file.name="a b" file.bytes=7 file.error="x\ny" ` +
		`file.when=2026-06-30T15:00:00.000Z file.pause=1m30s file.empty="" file.more.Authorization=(hidden) file.more.is="é="` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
}

func TestLogging_JSON(t *testing.T) {
	for _, format := range []string{"json", "auto"} { // a buffer is not a terminal
		var out bytes.Buffer
		NewLogger(&out, LogOptions{Format: format, Level: "error"}).Error("stopped", "token", "abc", "pause", 90*time.Second)
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v in %q", format, err, out.String())
		}
		if line["msg"] != "stopped" || line["level"] != "ERROR" || line["token"] != "(hidden)" || line["pause"] != "1m30s" {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}

// TestLogging_Codes wants the code of an error to be readable, and that of a login never.
func TestLogging_Codes(t *testing.T) {
	for value, want := range map[any]string{
		"invalid_code": "code=invalid_code", "": `code=""`, "01234567": "code=(hidden)", 1234567: "code=(hidden)", "word 01234567": "code=(hidden)",
	} {
		var out bytes.Buffer
		NewLogger(&out, LogOptions{Format: "text", Level: "info"}).Info("m", "code", value)
		if !strings.HasSuffix(out.String(), " msg=m "+want+"\n") {
			t.Errorf("%v: %s", value, out.String())
		}
	}
}

// injections are texts with which an attacker would try to forge log lines or control a terminal.
func injections() []string {
	return []string{
		"\r\n", "\n", "\r", "\x1b[31m", "\x1b]0;title\a", "\u2028", "\u2029", "\u0085", "\u200b", "\u202e", "\x00", "\x7f", "\xff\xfe", "\t", "\v", "\f", "\"", "\\", "=", " ",
		"\n2026-06-30T15:00:00Z ERROR forged", "\r\n{\"level\":\"ERROR\",\"msg\":\"forged\"}", "\",\"level\":\"ERROR\",\"x\":\"", "</script>", "a\u0000b", "é", "𐍈", "\ufeff",
	}
}

// injected is a record with the text in every place that a field has: message, names, values of each kind, groups,
// and what a logger carries along.
func injected(log *slog.Logger, text string) {
	log.With("carried", text, "n"+text, 1).WithGroup("g"+text).LogAttrs(context.Background(), slog.LevelError, "m"+text,
		slog.String("text", text), slog.String("k"+text, "v"), slog.Any("cause", errors.New(text)), slog.Any("wrapped", fmt.Errorf("e: %w", errors.New(text))),
		slog.Any("bytes", []byte(text)), slog.Any("list", []string{text, text}), slog.Any("map", map[string]string{text: text}),
		slog.Any("stringer", stringer(text)), slog.Any("struct", struct{ A string }{text}), slog.Time("at", time.Unix(0, 0)),
		slog.Group("group", slog.String("inner", text), slog.Group("in"+text, slog.String("er", text))))
}

type stringer string

func (s stringer) String() string { return string(s) }

// TestS14_OneLineIn: whatever stands in whichever field, one record is one line, in both forms, and nothing in it is
// obeyed by a terminal. JSON is for machines: DEL and C1 controls end no line there and are left as they are.
func TestS14_OneLineIn(t *testing.T) {
	for _, text := range injections() {
		for _, format := range []string{"json", "text"} {
			var out bytes.Buffer
			injected(NewLogger(&out, LogOptions{Format: format, Level: "debug"}), text)
			line, isWhole := strings.CutSuffix(out.String(), "\n")
			if !isWhole || strings.ContainsFunc(line, func(r rune) bool {
				return r == '\u2028' || r == '\u2029' || r < ' ' || format == "text" && !unicode.IsPrint(r) && r != 0x7F
			}) {
				t.Errorf("%s, %q: %q", format, text, line)
			}
			var fields map[string]any
			if format == "json" && (json.Unmarshal([]byte(line), &fields) != nil || fields["level"] != "ERROR") {
				t.Errorf("%q: no object, or another: %q", text, line)
			}
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 20575: "20,575", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
