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

	"github.com/tasard/tasard/engine"
)

// Writer writes an observation file. It buffers its output: call Flush at the end. It is not safe for concurrent use.
type Writer struct {
	out *bufio.Writer
	csv *csv.Writer // nil = NDJSON
}

// NewWriter returns a Writer of a format.
func NewWriter(w io.Writer, format Format) (*Writer, error) {
	writer := &Writer{out: bufio.NewWriter(w)}
	switch format {
	case CSV:
		writer.csv = csv.NewWriter(writer.out)
		return writer, writer.csv.Write(columnNames)
	case NDJSON:
		return writer, nil
	}
	return nil, fmt.Errorf("begin an observation file: unknown format %q, want %s or %s", format, CSV, NDJSON)
}

// Write writes one observation without Line and ExpiresAt, which have no column. Its texts must be without line ends.
func (w *Writer) Write(o Observation) error {
	return w.writeFields(fieldsOf(&o))
}

func (w *Writer) writeFields(values fields) error {
	if w.csv != nil {
		return w.csv.Write(values[:])
	}
	pairs := make([]string, len(values))
	for c, text := range values {
		value := []byte("null")
		if text != "" {
			var err error
			if value, err = json.Marshal(text); err != nil {
				return fmt.Errorf("encode %s: %w", column(c), err)
			}
		}
		pairs[c] = fmt.Sprintf("%q:%s", column(c), value)
	}
	_, err := w.out.WriteString("{" + strings.Join(pairs, ",") + "}\n")
	return err
}

// Flush writes the buffered output.
func (w *Writer) Flush() error {
	if w.csv != nil {
		w.csv.Flush()
	}
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write observations: %w", err)
	}
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
