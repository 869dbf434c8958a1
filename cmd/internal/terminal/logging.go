package terminal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
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
	if o.IsJSON(out) {
		return slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: redactAttr})
	}
	return &textHandler{out: out, mu: new(sync.Mutex), level: level}
}

// IsJSON reports whether a logger with these options writes JSON to out. Format "auto" means text on a terminal, and
// JSON elsewhere.
func (o LogOptions) IsJSON(out io.Writer) bool {
	return o.Format == "json" || o.Format == "auto" && !IsTerminal(out)
}

// NewNodeLogger returns the logger of a node. It logs the same error of many requests at most once in ten seconds, with
// their number, and says how many lines the queue had to drop. The caller must call end before it closes the queue.
func NewNodeLogger(queue *LogQueue, o LogOptions) (logger *slog.Logger, end func()) {
	handler := newRepeatLimiter(newHandler(queue, o))
	logger = slog.New(handler)
	queue.OnDropped(func(lines uint64) {
		logger.Warn("lines of the log were dropped, because nothing read them", "lines", lines)
	})
	return logger, handler.close
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

// secretNames returns the names of attributes whose values are secret, and therefore not logged.
func secretNames() []string {
	return []string{"authorization", "code", "cookie", "email", "key", "password", "secret", "token"}
}

// redactAttr hides secrets, converts times to UTC, and writes durations with their unit. It shows the attribute code if
// its value is a word: error codes are words, but login codes have digits.
func redactAttr(_ []string, attr slog.Attr) slog.Attr {
	name := strings.ToLower(attr.Key)
	if slices.Contains(secretNames(), name) && !(name == "code" && isWord(attr.Value)) {
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

// textHandler writes one line for each log record: time, level, message, and name=value for each attribute.
type textHandler struct {
	out   io.Writer
	mu    *sync.Mutex // protects out; handlers that WithAttrs and WithGroup return share it
	level slog.Level
	attrs []byte // formatted attributes of WithAttrs
	group string // prefix of attribute names, such as "group."
}

// Enabled implements slog.Handler.
func (h *textHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle implements slog.Handler.
func (h *textHandler) Handle(_ context.Context, record slog.Record) error {
	var line bytes.Buffer
	message := record.Message
	if strings.ContainsFunc(message, unprintable) || !utf8.ValidString(message) {
		message = strconv.Quote(message)
	}
	fmt.Fprintf(&line, "%s %-5s %s", record.Time.UTC().Format("2006-01-02T15:04:05Z"), record.Level, message)
	line.Write(h.attrs)
	record.Attrs(func(attr slog.Attr) bool {
		appendAttr(&line, h.group, attr)
		return true
	})
	line.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.out.Write(line.Bytes())
	return err
}

// WithAttrs implements slog.Handler.
func (h *textHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	line := bytes.NewBuffer(slices.Clone(h.attrs))
	for _, attr := range attrs {
		appendAttr(line, h.group, attr)
	}
	derived.attrs = line.Bytes()
	return &derived
}

// WithGroup implements slog.Handler. Names in a group begin with the name of the group and a dot.
func (h *textHandler) WithGroup(name string) slog.Handler {
	derived := *h
	if name != "" {
		derived.group += name + "."
	}
	return &derived
}

func appendAttr(line *bytes.Buffer, group string, attr slog.Attr) {
	attr.Value = attr.Value.Resolve()
	attr = redactAttr(nil, attr)
	if attr.Equal(slog.Attr{}) {
		return
	}
	if attr.Value.Kind() == slog.KindGroup {
		if attr.Key != "" {
			group += attr.Key + "."
		}
		for _, member := range attr.Value.Group() {
			appendAttr(line, group, member)
		}
		return
	}
	text := attr.Value.String()
	if attr.Value.Kind() == slog.KindTime {
		text = attr.Value.Time().Format(time.RFC3339Nano)
	}
	fmt.Fprintf(line, " %s=%s", quoteIfNeeded(group+attr.Key), quoteIfNeeded(text))
}

// quoteIfNeeded quotes a name or value with spaces, quotes, "=" or control characters. Such a text could otherwise
// look like another line or attribute.
func quoteIfNeeded(text string) string {
	if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || r == '"' || r == '=' || unprintable(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// unprintable reports whether r could control a terminal.
func unprintable(r rune) bool { return !strconv.IsPrint(r) }
