package collectors

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// Writer writes an observation file. It buffers its output: call Flush at the end. It is not safe for concurrent use.
type Writer struct {
	out     *bufio.Writer
	write   func(*fields) error
	written int    // number of observations
	header  string // "" = none, or already written
}

// NewWriter returns a Writer of a format. AnyFormat is an error.
func NewWriter(w io.Writer, format Format) (*Writer, error) {
	writer := &Writer{out: bufio.NewWriter(w)}
	switch format {
	case CSV:
		writer.header = columns + "\n"
		writer.write = writer.writeCSV
	case NDJSON:
		writer.write = writer.writeJSON
	default:
		return nil, fmt.Errorf("begin an observation file: unknown format %q, want %s or %s", format, CSV, NDJSON)
	}
	return writer, nil
}

// Write writes one observation without Line and ExpiresAt, which have no column. For a line that a Reader would reject,
// it writes nothing and returns an error that names the invalid column.
func (w *Writer) Write(o Observation) error {
	values := fieldsOf(&o)
	_, problem := values.observation()
	for c, text := range values {
		if problem == nil && !utf8.ValidString(text) {
			problem = &LineError{Column: column(c).String(), Found: quoted(text), Want: "text in UTF-8"}
		}
	}
	if problem != nil {
		return fmt.Errorf("write observation %d of %s, %s: found %s, want %s",
			w.written+1, quoted(o.SourceID), problem.Column, problem.Found, problem.Want)
	}
	if err := w.writeHeader(); err != nil {
		return err
	}
	if err := w.write(&values); err != nil {
		return fmt.Errorf("write observation %d: %w", w.written+1, err)
	}
	w.written++
	return nil
}

// Flush writes the buffered output. It writes the header even if there are no observations.
func (w *Writer) Flush() error {
	if err := w.writeHeader(); err != nil {
		return err
	}
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write observations: %w", err)
	}
	return nil
}

func (w *Writer) writeHeader() error {
	if _, err := w.out.WriteString(w.header); err != nil {
		return fmt.Errorf("write observations: %w", err)
	}
	w.header = ""
	return nil
}

func fieldsOf(o *Observation) fields {
	return fields{
		columnObservedAt: instantText(o.ObservedAt), columnPublishedAt: instantText(o.PublishedAt),
		columnInstitutionID: o.InstitutionID, columnCurrency: o.Currency, columnSourceID: o.SourceID,
		columnChannel: string(cmp.Or(o.Channel, engine.Unspecified)), columnKind: string(cmp.Or(o.Kind, engine.Commercial)),
		columnBuy: o.Buy, columnSell: o.Sell, columnEffectiveDate: o.EffectiveDate.String(),
	}
}

func instantText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func (w *Writer) writeCSV(values *fields) error {
	var line strings.Builder
	out := csv.NewWriter(&line)
	_ = out.Write(values[:]) // a Builder gives no errors
	out.Flush()
	return w.writeLine(line.String())
}

func (w *Writer) writeJSON(values *fields) error {
	pairs := make([]string, len(values))
	for c, text := range values {
		value := []byte("null")
		if text != "" {
			encoded, err := json.Marshal(text)
			if err != nil {
				return fmt.Errorf("encode %s: %w", column(c), err)
			}
			value = encoded
		}
		pairs[c] = fmt.Sprintf("%q:%s", column(c).String(), value)
	}
	return w.writeLine("{" + strings.Join(pairs, ",") + "}\n")
}

// writeLine writes one line, with its line end. A line that is too long for a Reader is an error.
func (w *Writer) writeLine(text string) error {
	if length := len(text) - len("\n"); length > lineBytesMax {
		return fmt.Errorf("%d bytes, want at most %d in a line", length, lineBytesMax)
	}
	_, err := w.out.WriteString(text)
	return err
}
