package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// Fprintf writes formatted text and ignores errors. ErrWriter keeps errors of stdout; errors of stderr can't be
// reported.
func Fprintf(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// Plural returns a number with its noun: 1 line, 2 lines.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Thousands formats an integer with commas between thousands.
func Thousands[N int | int64 | uint64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// FormatDays formats a duration in days if it is two days or more.
func FormatDays(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day {
		return d.Round(time.Minute).String()
	}
	return fmt.Sprintf("%d days", d/day)
}

// FormatInstant formats a time in UTC to the second, and the zero time as "-".
func FormatInstant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// Sanitize replaces characters that could control the terminal in text from other programs or users, and "" by "-".
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

// WriteAnswer writes an answer as one line of JSON, or calls table.
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

// NewTable returns a table with a header line. Cells end with a tab, rows with a newline. Flush writes the table.
func NewTable(out io.Writer, header string) *tabwriter.Writer {
	const gap = 2
	table := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	Fprintf(table, "%s", header)
	return table
}
