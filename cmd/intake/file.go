package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/input"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
)

// batchObservationsMin is how many observations are submitted at once: each batch waits for the disk once or twice.
const batchObservationsMin = 8192

// fileImport imports one file into a running system.
type fileImport struct {
	sink    engine.Ingester
	clock   func() time.Time
	report  reporter
	sources *engine.Catalogue // to warn about unknown sources; nil = no warnings
	unknown map[string]bool   // unknown sources that were warned about
	pause   func()            // called between small pieces of reading; nil = no pauses
	counts  lineCounts
}

// reporter receives what happens to a file.
type reporter interface {
	rejected(rejectedLine) error // a line that was not published, in the order of the file
	warn(string)                 // valid input that may be a mistake
	progress(importProgress)     // after each batch
}

// rejectedLine is a line that was not published, and why.
type rejectedLine struct {
	File         string        `json:"file"`
	Line         int           `json:"line,omitempty"` // 0 = a document, which has no lines
	Of           string        `json:"of,omitempty"`   // the quote of a document
	Outcome      outcome       `json:"outcome"`
	Reason       engine.Reason `json:"reason,omitempty"` // "" for malformed
	Detail       string        `json:"detail"`
	QuarantineID uint64        `json:"quarantineId,omitempty"` // number in the quarantine of its currency
}

// outcome is why a line was not published.
type outcome string

const (
	quarantined outcome = "quarantined" // kept in quarantine
	refused     outcome = "refused"     // the catalogue lacks its institution or currency
	malformed   outcome = "malformed"   // not an observation
)

func (u rejectedLine) String() string {
	place := fmt.Sprintf("%s:%d", u.File, u.Line)
	if u.Line == 0 {
		place = u.File + ": " + u.Of
	}
	switch u.Outcome {
	case quarantined:
		return fmt.Sprintf("%s: quarantined as number %d: %s: %s", place, u.QuarantineID, u.Reason, u.Detail)
	case refused:
		return fmt.Sprintf("%s: refused: %s: %s", place, u.Reason, u.Detail)
	}
	return fmt.Sprintf("%s: malformed: %s", place, u.Detail)
}

// lineCounts counts the lines of a file by outcome.
type lineCounts struct {
	lines       int // observations and malformed lines
	accepted    int // published, in history, or known already
	changed     int // of these, with a new value or date
	quarantined int
	refused     int
	malformed   int
	elapsed     time.Duration
	unit        string // what is counted, "" = line
}

// err returns an error if lines were refused or malformed.
func (t *lineCounts) err() error {
	lost := t.refused + t.malformed
	if lost == 0 {
		return nil
	}
	return exit.Errorf(exit.Rejected, "%s of %s not imported: %s refused, %s malformed; see above",
		terminal.Thousands(lost), terminal.Plural(t.lines, cmp.Or(t.unit, "line")), terminal.Thousands(t.refused), terminal.Thousands(t.malformed))
}

func (t *lineCounts) add(other *lineCounts) {
	t.lines += other.lines
	t.accepted += other.accepted
	t.changed += other.changed
	t.quarantined += other.quarantined
	t.refused += other.refused
	t.malformed += other.malformed
	t.elapsed += other.elapsed
	t.unit = other.unit
}

// perSecond is the rate of lines, 0 if no time passed.
func (t *lineCounts) perSecond() int {
	if t.elapsed <= 0 {
		return 0
	}
	return int(int64(t.lines) * int64(time.Second) / int64(t.elapsed))
}

type importProgress struct {
	lineCounts
	file  string
	bytes int64 // read so far
	size  int64 // of the file; 0 = unknown
}

// lineBatch is what is submitted at once.
type lineBatch struct {
	refreshes []engine.Refresh
	lines     [][]int // lines[i][j] is the line of refreshes[i].Observations[j]; nil for a document
	malformed []collectors.LineError
	count     int // of observations
}

// importFile imports a whole file. If ctx ends, earlier batches are imported, and importing the file again continues
// from there.
func (t *fileImport) importFile(ctx context.Context, file *input.File, format collectors.Format) error {
	began := t.clock()
	reading, leave := context.WithCancel(ctx)
	defer leave()
	reader, err := collectors.OpenObservations(pacedReader{file.Reader(reading), t.pause}, file.Name, format)
	if ctx.Err() != nil {
		return interrupted(file.Name, 0)
	}
	if err != nil {
		return openFailure(err)
	}
	for more := true; more; {
		if ctx.Err() != nil {
			return interrupted(file.Name, reader.Lines())
		}
		batch, err := readBatch(reader)
		more = err == nil
		if err != nil && !errors.Is(err, io.EOF) {
			if ctx.Err() != nil {
				return errors.Join(t.submit(batch, file.Name), interrupted(file.Name, reader.Lines()))
			}
			return errors.Join(t.submit(batch, file.Name), exit.WrapUncoded(exit.IOError, err))
		}
		if err := t.submit(batch, file.Name); err != nil {
			return err
		}
		t.counts.elapsed = t.clock().Sub(began)
		t.report.progress(importProgress{t.counts, file.Name, reader.Bytes(), file.Size})
	}
	return nil
}

// pacedBytesMax is how much is read between two pauses: about twenty lines.
const pacedBytesMax = 4 << 10

// pacedReader pauses before each read.
type pacedReader struct {
	io.Reader
	pause func() // nil = never
}

func (p pacedReader) Read(into []byte) (int, error) {
	if p.pause == nil {
		return p.Reader.Read(into)
	}
	p.pause()
	return p.Reader.Read(into[:min(len(into), pacedBytesMax)])
}

func interrupted(name string, lines int) error {
	return exit.Errorf(exit.Interrupted, "%s: interrupted after line %d; the lines before are imported, the same command imports the rest", name, lines)
}

// openFailure sets the exit code of a file that is not an observation file.
func openFailure(err error) error {
	var header *collectors.HeaderError
	var line collectors.LineError
	if errors.As(err, &header) || errors.As(err, &line) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, collectors.ErrEndlessLine) {
		return exit.Errorf(exit.NoInput, "%w", err)
	}
	return exit.WrapUncoded(exit.IOError, err)
}

// readBatch reads until a batch is full. At the end of the file the error is io.EOF, with the last batch.
func readBatch(reader *collectors.Reader) (lineBatch, error) {
	var g lineBatch
	for g.count+len(g.malformed) < batchObservationsMin {
		batch, err := reader.Next()
		if err != nil {
			return g, err
		}
		g.malformed = append(g.malformed, batch.Errors...)
		if len(batch.Lines) > 0 {
			g.refreshes = append(g.refreshes, batch.Refresh)
			g.lines = append(g.lines, batch.Lines)
			g.count += len(batch.Lines)
		}
	}
	return g, nil
}

// submit passes a batch to the system and reports the lines that were not published.
func (t *fileImport) submit(g lineBatch, name string) error {
	var receipt engine.Receipt
	t.warnUnknownSources(&g, name)
	if len(g.refreshes) > 0 {
		var err error
		if receipt, err = t.sink.Observe(g.refreshes); err != nil {
			if g.lines == nil {
				return fmt.Errorf("import %s: %w", name, err)
			}
			return fmt.Errorf("import %s from line %d: %w", name, g.lines[0][0], err)
		}
	}
	lines := make([]rejectedLine, 0, len(receipt.Refused)+len(g.malformed))
	for i := range receipt.Refused {
		lines = append(lines, rejectedByEngine(&receipt.Refused[i], &g, name))
	}
	for _, problem := range g.malformed {
		lines = append(lines, malformedLine(problem, name))
	}
	slices.SortStableFunc(lines, func(a, b rejectedLine) int { return cmp.Compare(a.Line, b.Line) })
	t.counts.addReceipt(&receipt, lines)
	for _, line := range lines {
		if err := t.report.rejected(line); err != nil {
			return err
		}
	}
	return nil
}

// warnUnknownSources warns once about each source that the catalogue lacks: a typing error in its id would change its
// priority.
func (t *fileImport) warnUnknownSources(g *lineBatch, name string) {
	for i, refresh := range g.refreshes {
		if t.sources == nil || t.sources.HasSource(refresh.SourceID) || t.unknown[refresh.SourceID] {
			continue
		}
		if t.unknown == nil {
			t.unknown = map[string]bool{}
		}
		t.unknown[refresh.SourceID] = true
		t.report.warn(fmt.Sprintf("%s:%d: the catalogue has no source %q: its rates get priority %d and expire after %s, unless a "+
			"catalogue file sets them", name, g.lines[i][0], refresh.SourceID, engine.PriorityDefault, engine.LifetimeDefault))
	}
}

func rejectedByEngine(r *engine.Refusal, g *lineBatch, name string) rejectedLine {
	line := rejectedLine{File: name, Outcome: refused, Reason: r.Reason, Detail: r.Detail, QuarantineID: r.QuarantineID}
	if o := &r.Observation; g.lines != nil {
		line.Line = g.lines[r.Refresh][r.Index]
	} else if line.Of = o.InstitutionID + " " + o.Currency; !o.EffectiveDate.IsZero() {
		line.Of += " " + o.EffectiveDate.String()
	}
	if r.QuarantineID != 0 {
		line.Outcome = quarantined
	}
	return line
}

func malformedLine(problem collectors.LineError, name string) rejectedLine {
	detail := fmt.Sprintf("found %s, want %s", problem.Found, problem.Want)
	if problem.Column != "" {
		detail = problem.Column + ": " + detail
	}
	return rejectedLine{File: name, Line: problem.Line, Outcome: malformed, Detail: detail}
}

// addReceipt counts the outcome of one batch.
func (t *lineCounts) addReceipt(receipt *engine.Receipt, lines []rejectedLine) {
	t.lines += receipt.Accepted + len(lines)
	t.accepted += receipt.Accepted
	t.changed += receipt.Changed
	for _, line := range lines {
		switch line.Outcome {
		case quarantined:
			t.quarantined++
		case refused:
			t.refused++
		case malformed:
			t.malformed++
		}
	}
}
