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

// injectionProblem logs the text in both forms, and says which line was not one line.
func injectionProblem(text string, wrap func(*bytes.Buffer) *bytes.Buffer) string {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		injected(NewLogger(&out, LogOptions{Format: format, Level: "debug"}), text)
		line, last := strings.CutSuffix(wrap(&out).String(), "\n")
		// JSON is for machines: DEL and C1 controls end no line there and are left as they are. Terminals ignore DEL.
		if !last || strings.ContainsFunc(line, func(r rune) bool { return r == '\u2028' || r == '\u2029' || r < ' ' }) {
			return fmt.Sprintf("%s: more or less than one plain line: %q", format, line)
		}
		if format == "text" {
			if !strings.Contains(line, "level=ERROR ") || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != 0x7F }) {
				return fmt.Sprintf("text: %q", line)
			}
			continue
		}
		decoder := json.NewDecoder(strings.NewReader(line))
		var fields map[string]any
		if err := decoder.Decode(&fields); err != nil || decoder.More() {
			return fmt.Sprintf("json: no object, or more than one: %v: %q", err, line)
		}
		if message, _ := fields["msg"].(string); fields["level"] != "ERROR" || message != strings.ToValidUTF8("m"+text, "\ufffd") && validText(text) {
			return fmt.Sprintf("json: the line says something else: %q", line)
		}
	}
	return ""
}

func validText(text string) bool { return strings.ToValidUTF8(text, "\ufffd") == text }

// TestS14_OneLineIn: whatever stands in whichever field, one record is one line, in both forms, and nothing in it is
// obeyed by a terminal.
func TestS14_OneLineIn(t *testing.T) {
	same := func(out *bytes.Buffer) *bytes.Buffer { return out }
	played := 0
	for _, first := range injections() {
		for _, second := range append(injections(), "") {
			if problem := injectionProblem(first+second, same); problem != "" {
				t.Errorf("%q: %s", first+second, problem)
			}
			played++
		}
	}
	if played < 500 {
		t.Errorf("only %d texts were logged", played)
	}
}

// TestS14_Control: a log that passes a line end, an escape or half an object on is seen.
func TestS14_Control(t *testing.T) {
	for name, spoil := range map[string]func(string) string{
		"unquoted end":   func(line string) string { return strings.ReplaceAll(line, `\n`, "\n") },
		"unquoted ESC":   func(line string) string { return strings.NewReplacer(`\x1b`, "\x1b", `\u001b`, "\x1b").Replace(line) },
		"two lines":      func(line string) string { return line + line },
		"half an object": func(line string) string { return strings.Replace(line, "}", "", 1) },
		"no end":         func(line string) string { return strings.TrimSuffix(line, "\n") },
	} {
		spoilt := func(out *bytes.Buffer) *bytes.Buffer { return bytes.NewBufferString(spoil(out.String())) }
		if injectionProblem("a\nb\x1bc", spoilt) == "" {
			t.Errorf("%s passes", name)
		}
	}
}

// FuzzLogInjection is TestS14_OneLineIn with any text.
func FuzzLogInjection(f *testing.F) {
	for _, text := range injections() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if problem := injectionProblem(text, func(out *bytes.Buffer) *bytes.Buffer { return out }); problem != "" {
			t.Fatal(problem)
		}
	})
}
