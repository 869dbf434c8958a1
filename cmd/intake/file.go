package intake

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// batchObservationsMin is the number of observations at which a batch is complete. Batches are large, because each
// waits for the disk.
const batchObservationsMin = 8192

// progressInterval is the time between two messages about the progress of an import.
const progressInterval = 10 * time.Second

// fileImport imports one file into a node's data.
type fileImport struct {
	sink    engine.Ingester
	clock   func() time.Time
	report  *report
	sources *engine.Catalogue // known sources; if nil, unknown sources cause no warning
	unknown map[string]bool   // unknown sources already reported
	counts  lineCounts
}

// rejectedLine is a line of an observation file, or a quote of a document, that was not published.
type rejectedLine struct {
	File         string
	Line         int    // 0 for a document, which has no lines
	Of           string // for a document: institution, currency and date of the quote
	Outcome      outcome
	Reason       engine.Reason // "" for a malformed line
	Detail       string
	QuarantineID uint64 // number of the value in the quarantine of its currency
}

type outcome string

const (
	quarantined outcome = "quarantined" // kept in quarantine until an operator decides
	refused     outcome = "refused"     // the node's catalogue has no such institution or currency
	malformed   outcome = "malformed"   // the line cannot be read as an observation
)

func (l rejectedLine) String() string {
	position := fmt.Sprintf("%s:%d", l.File, l.Line)
	if l.Line == 0 {
		position = l.File + ": " + l.Of
	}
	switch l.Outcome {
	case quarantined:
		return fmt.Sprintf("%s: quarantined as number %d: %s: %s", position, l.QuarantineID, l.Reason, l.Detail)
	case refused:
		return fmt.Sprintf("%s: refused: %s: %s", position, l.Reason, l.Detail)
	}
	return fmt.Sprintf("%s: malformed: %s", position, l.Detail)
}

type lineCounts struct {
	lines       int // number of observations and malformed lines
	accepted    int // published, added to history, or already known
	changed     int // accepted observations with a new value or date
	quarantined int
	refused     int
	malformed   int
	notices     int // published rates withdrawn or confirmed
	elapsed     time.Duration
	unit        string // unit of the counts in messages, such as row; "" means line
}

// err returns an error if lines were refused or malformed, or if all were quarantined.
func (c *lineCounts) err() error {
	rejected := c.refused + c.malformed
	switch {
	case rejected == 0 && c.accepted == 0 && c.quarantined > 0:
		return exit.Errorf(exit.Rejected, "nothing was published: every %s was quarantined, see above; tasard admin quarantine decides on them",
			cmp.Or(c.unit, "line"))
	case rejected == 0:
		return nil
	}
	return exit.Errorf(exit.Rejected, "%s of %s not imported: %s refused, %s malformed; see above",
		terminal.Thousands(rejected), terminal.Plural(c.lines, cmp.Or(c.unit, "line")), terminal.Thousands(c.refused), terminal.Thousands(c.malformed))
}

// add adds the counts that err uses.
func (c *lineCounts) add(other *lineCounts) {
	c.lines += other.lines
	c.accepted += other.accepted
	c.quarantined += other.quarantined
	c.refused += other.refused
	c.malformed += other.malformed
	c.unit = other.unit
}

// importFile imports a whole file. If ctx ends before the final batch, the earlier batches are imported; another import
// of the file imports the rest.
func (f *fileImport) importFile(ctx context.Context, file *process.Input) error {
	start := f.clock()
	readCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, err := collectors.OpenObservations(file.Reader(readCtx), file.Name)
	if ctx.Err() != nil {
		return interrupted(file.Name, 0)
	}
	if err != nil {
		return openFailure(err)
	}
	var reported time.Duration // elapsed at the last message about the progress
	for more := true; more; {
		if ctx.Err() != nil {
			return interrupted(file.Name, reader.Lines())
		}
		batch, err := reader.Next()
		more = err == nil
		if err != nil && !errors.Is(err, io.EOF) {
			if ctx.Err() != nil {
				return errors.Join(f.submit(batch, file.Name), interrupted(file.Name, reader.Lines()))
			}
			return errors.Join(f.submit(batch, file.Name), exit.WrapUncoded(exit.IOError, err))
		}
		if err := f.submit(batch, file.Name); err != nil {
			return err
		}
		f.counts.elapsed = f.clock().Sub(start)
		if more && f.counts.elapsed >= reported+progressInterval {
			reported = f.counts.elapsed
			f.report.progress(fmt.Sprintf("%s: %s so far, in %s", file.Name, terminal.Plural(f.counts.lines, "line"), reported.Round(time.Second)))
		}
	}
	return nil
}

func interrupted(name string, lines int) error {
	return exit.Errorf(exit.Interrupted, "%s: interrupted after line %d; the lines before are imported, the same command imports the rest", name, lines)
}

// openFailure adds an exit code to an error of collectors.OpenObservations.
func openFailure(err error) error {
	var line collectors.LineError
	var unreadable *exit.Error
	if errors.As(err, &unreadable) { // an error of Process.OpenInput, which names the file
		return unreadable
	}
	if errors.As(err, &line) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, bufio.ErrTooLong) {
		return exit.Errorf(exit.NoInput, "%w", err)
	}
	return exit.WrapUncoded(exit.IOError, err)
}

// submit imports a batch, counts its lines, and reports rejected ones.
func (f *fileImport) submit(batch collectors.Batch, name string) error {
	var receipt engine.Receipt
	f.warnUnknownSources(&batch, name)
	if len(batch.Refreshes) > 0 {
		var err error
		if receipt, err = f.sink.Observe(batch.Refreshes); err != nil {
			if batch.Lines == nil {
				return fmt.Errorf("import %s: %w", name, err)
			}
			return fmt.Errorf("import %s from line %d: %w", name, batch.Lines[0][0], err)
		}
	}
	lines := make([]rejectedLine, 0, len(receipt.Refused)+len(batch.Errors))
	for i := range receipt.Refused {
		lines = append(lines, rejectedByEngine(&receipt.Refused[i], &batch, name))
	}
	for _, problem := range batch.Errors {
		lines = append(lines, malformedLine(problem, name))
	}
	slices.SortStableFunc(lines, func(a, b rejectedLine) int { return cmp.Compare(a.Line, b.Line) })
	f.counts.addReceipt(&receipt, lines)
	if _, remote := f.sink.(admin.Importer); remote { // a node in this process has logged them
		for _, notice := range receipt.Notices {
			f.report.warn(name + ": " + notice.String())
		}
	}
	for _, line := range lines {
		f.report.rejected(line)
	}
	return nil
}

// warnUnknownSources warns once about each source outside the catalogue. With a mistyped ID, the rates get the default
// priority instead of their source's.
func (f *fileImport) warnUnknownSources(batch *collectors.Batch, name string) {
	for i, refresh := range batch.Refreshes {
		if f.sources == nil || f.sources.HasSource(refresh.SourceID) || f.unknown[refresh.SourceID] {
			continue
		}
		if f.unknown == nil {
			f.unknown = map[string]bool{}
		}
		f.unknown[refresh.SourceID] = true
		f.report.warn(fmt.Sprintf("%s:%d: the catalogue has no source %q: its rates get priority %d and expire after %s, unless a "+
			"catalogue file sets them", name, batch.Lines[i][0], refresh.SourceID, engine.PriorityDefault, engine.LifetimeDefault))
	}
}

func rejectedByEngine(r *engine.Refusal, batch *collectors.Batch, name string) rejectedLine {
	line := rejectedLine{File: name, Outcome: refused, Reason: r.Reason, Detail: r.Detail, QuarantineID: r.QuarantineID}
	if o := &r.Observation; batch.Lines != nil {
		line.Line = batch.Lines[r.Refresh][r.Index]
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

// addReceipt counts the lines of one batch.
func (c *lineCounts) addReceipt(receipt *engine.Receipt, lines []rejectedLine) {
	c.lines += receipt.Accepted + len(lines)
	c.accepted += receipt.Accepted
	c.changed += receipt.Changed
	c.notices += len(receipt.Notices)
	for _, line := range lines {
		switch line.Outcome {
		case quarantined:
			c.quarantined++
		case refused:
			c.refused++
		case malformed:
			c.malformed++
		}
	}
}
