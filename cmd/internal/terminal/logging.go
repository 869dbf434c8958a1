package terminal

import (
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
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
	logger := slog.New(newRepeatLimiter(newHandler(queue, o)))
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

// secretNames returns the names of redacted attributes.
func secretNames() []string {
	return []string{"authorization", "code", "cookie", "email", "key", "password", "secret", "token"}
}

// redactAttr hides secrets, converts times to UTC, and writes durations with their unit. It shows the attribute code if
// its value is a word: error codes are words, but login codes have digits. Times of lines are in whole milliseconds.
func redactAttr(groups []string, attr slog.Attr) slog.Attr {
	if attr.Key == slog.TimeKey && len(groups) == 0 && attr.Value.Kind() == slog.KindTime {
		return slog.String(slog.TimeKey, attr.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
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
