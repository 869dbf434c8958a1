package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
)

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
