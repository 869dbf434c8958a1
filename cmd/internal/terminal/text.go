package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// Fprintf is like fmt.Fprintf, but ignores errors. Standard output is an ErrWriter, which keeps its first error; the
// command reports that error at its end. An error of standard error could not be reported anywhere.
func Fprintf(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// Plural returns a number with its noun: 1 line, 2 lines.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Thousands formats an integer with commas: 1,000.
func Thousands[N int | int64 | uint64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// FormatDays formats a duration, in days if it is at least two days.
func FormatDays(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day {
		return d.Round(time.Minute).String()
	}
	return fmt.Sprintf("%d days", d/day)
}

// FormatInstant formats a time in UTC, to the second. The zero time is "-".
func FormatInstant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// Sanitize makes text from outside the program safe to print: it replaces characters that could control a terminal. It
// replaces "" by "-".
func Sanitize(text string) string {
	if text == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// WriteAnswer writes the result of a command. If asJSON is true, it writes answer as one line of JSON. Otherwise it
// calls table, which must print the result.
func WriteAnswer(out io.Writer, asJSON bool, answer any, table func()) error {
	if !asJSON {
		table()
		return nil
	}
	if err := json.NewEncoder(out).Encode(answer); err != nil {
		return exit.Errorf(exit.IOError, "write the answer: %w", err)
	}
	return nil
}

// Text formats a value for people: a time in UTC, and other values by Sanitize.
func Text(value any) string {
	if t, ok := value.(time.Time); ok {
		return FormatInstant(t)
	}
	return Sanitize(fmt.Sprint(value))
}

// Say prints values with the verb %s: each is formatted by Text.
func Say(out io.Writer, format string, values ...any) {
	texts := make([]any, len(values))
	for i, value := range values {
		texts[i] = Text(value)
	}
	Fprintf(out, format, texts...)
}

// Table prints a table with a header and a row for each item. The function row returns the cells of an item, which are
// formatted by Text. Columns of the header are separated by tabs.
func Table[T any](out io.Writer, header string, items []T, row func(*T) []any) {
	const gap = 2
	table := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	indent := header[:len(header)-len(strings.TrimLeft(header, " "))]
	if header != "" {
		Fprintf(table, "%s\n", header)
	}
	for i := range items {
		for column, cell := range row(&items[i]) {
			text := Text(cell)
			if column > 0 {
				text = "\t" + text
			}
			Fprintf(table, "%s%s", indent[min(column, 1)*len(indent):], text)
		}
		Fprintf(table, "\n")
	}
	_ = table.Flush() // out is an ErrWriter, which keeps errors
}

// ErrWriter writes to W and keeps the first error, so that a command can check it once at the end. It is safe for
// concurrent use.
type ErrWriter struct {
	W   io.Writer
	mu  sync.Mutex
	err error
}

// Write implements io.Writer. After an error it writes no more.
func (w *ErrWriter) Write(bytes []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.W.Write(bytes)
	w.err = err
	return n, err
}

// Err returns the first error.
func (w *ErrWriter) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
