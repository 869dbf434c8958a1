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

// intakeBatchMin is how many observations are gathered before they are handed over: one hand-over waits for the disk once
// or twice, whatever its size.
const intakeBatchMin = 8192

// intake takes one file of observations into a running system.
type intake struct {
	to      engine.Intake
	clock   func() time.Time
	report  reporter
	sources *engine.Catalogue // what is known of sources; nil = nobody wonders
	unknown map[string]bool   // sources that were wondered about
	pause   func()            // between small pieces of reading, so that others go first; nil = nobody waits
	tally   tally
}

// reporter is told what becomes of a file.
type reporter interface {
	untaken(untaken) error // a line that was not published, in the order of the file
	wonder(string)         // something that is right in form and may be a mistake
	progress(progress)     // after each batch
}

// untaken is a line that was not published, and why.
type untaken struct {
	File    string        `json:"file"`
	Line    int           `json:"line,omitempty"` // 0 = a document, which has none
	Of      string        `json:"of,omitempty"`   // what of a document it is
	Outcome outcome       `json:"outcome"`
	Reason  engine.Reason `json:"reason,omitempty"` // "" for malformed
	Detail  string        `json:"detail"`
	Held    uint64        `json:"heldId,omitempty"` // number in the quarantine of its currency
}

// outcome of a line that was not published.
type outcome string

const (
	held      outcome = "held"      // in quarantine, where it stays
	refused   outcome = "refused"   // nothing is known to file it under
	malformed outcome = "malformed" // no observation
)

// String is the line for people.
func (u untaken) String() string {
	place := fmt.Sprintf("%s:%d", u.File, u.Line)
	if u.Line == 0 {
		place = u.File + ": " + u.Of
	}
	switch u.Outcome {
	case held:
		return fmt.Sprintf("%s: held as number %d: %s: %s", place, u.Held, u.Reason, u.Detail)
	case refused:
		return fmt.Sprintf("%s: refused: %s: %s", place, u.Reason, u.Detail)
	}
	return fmt.Sprintf("%s: malformed: %s", place, u.Detail)
}

// tally counts what became of the lines of a file.
type tally struct {
	lines     int // observations and malformed lines
	taken     int // published, or in history, or known already
	changed   int // of these, the ones with a new value or date
	held      int
	refused   int
	malformed int
	elapsed   time.Duration
	unit      string // what is counted, "" = line
}

// lost is the error of a work of which something was not taken in, nil when all was taken in or held.
func (t *tally) lost() error {
	lost := t.refused + t.malformed
	if lost == 0 {
		return nil
	}
	return exit.Fail(exit.BadLines, "%s of %s not taken in: %s refused, %s malformed; reported above",
		terminal.Grouped(lost), terminal.Counted(t.lines, cmp.Or(t.unit, "line")), terminal.Grouped(t.refused), terminal.Grouped(t.malformed))
}

func (t *tally) add(other *tally) {
	t.lines += other.lines
	t.taken += other.taken
	t.changed += other.changed
	t.held += other.held
	t.refused += other.refused
	t.malformed += other.malformed
	t.elapsed += other.elapsed
	t.unit = other.unit
}

// perSecond is how many lines were dealt with each second; 0 when no time passed.
func (t *tally) perSecond() int {
	if t.elapsed <= 0 {
		return 0
	}
	return int(int64(t.lines) * int64(time.Second) / int64(t.elapsed))
}

// progress is how far a file has been taken in.
type progress struct {
	tally
	file  string
	bytes int64 // read so far
	size  int64 // of the file; 0 = unknown
}

// gathered is what is handed over at once.
type gathered struct {
	refreshes []engine.Refresh
	lines     [][]int // lines[i][j] is where refreshes[i].Observations[j] stood; nil for a document, which has no lines
	malformed []collectors.LineError
	count     int // observations
}

// take takes the whole file in. Lines that are not published stop nothing. When ctx ends, everything up to the last batch
// is in; reading the file again goes on from there.
func (t *intake) take(ctx context.Context, file *input.File, format collectors.Format) error {
	began := t.clock()
	reading, leave := context.WithCancel(ctx)
	defer leave()
	reader, err := collectors.OpenObservations(paced{file.Until(reading), t.pause}, file.Name, format)
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
		batch, err := gather(reader)
		more = err == nil
		if err != nil && !errors.Is(err, io.EOF) {
			if ctx.Err() != nil {
				return errors.Join(t.hand(batch, file.Name), interrupted(file.Name, reader.Lines()))
			}
			return errors.Join(t.hand(batch, file.Name), exit.WithCode(exit.Broken, err))
		}
		if err := t.hand(batch, file.Name); err != nil {
			return err
		}
		t.tally.elapsed = t.clock().Sub(began)
		t.report.progress(progress{t.tally, file.Name, reader.Bytes(), file.Size})
	}
	return nil
}

// pacedBytesMax is how much is read between two pauses: some twenty lines.
const pacedBytesMax = 4 << 10

// paced is a reader that pauses.
type paced struct {
	io.Reader
	pause func() // nil = never
}

// Read reads little at once.
func (p paced) Read(into []byte) (int, error) {
	if p.pause == nil {
		return p.Reader.Read(into)
	}
	p.pause()
	return p.Reader.Read(into[:min(len(into), pacedBytesMax)])
}

func interrupted(name string, lines int) error {
	return exit.Fail(exit.Interrupted, "%s: interrupted after line %d; what was read is in, the same command takes in the rest", name, lines)
}

// openFailure gives the error of a file that is no file of observations its exit code.
func openFailure(err error) error {
	var header *collectors.HeaderError
	var line collectors.LineError
	if errors.As(err, &header) || errors.As(err, &line) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, collectors.ErrEndlessLine) {
		return exit.Fail(exit.NoInput, "%w", err)
	}
	return exit.WithCode(exit.Broken, err)
}

// gather reads until there is enough for a hand-over. At the end of the file the error is io.EOF, beside what was left.
func gather(reader *collectors.Reader) (gathered, error) {
	var g gathered
	for g.count+len(g.malformed) < intakeBatchMin {
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

// hand gives what was gathered to the system and reports what was not published.
func (t *intake) hand(g gathered, name string) error {
	var receipt engine.Receipt
	t.wonder(&g, name)
	if len(g.refreshes) > 0 {
		var err error
		if receipt, err = t.to.Observe(g.refreshes); err != nil {
			if g.lines == nil {
				return fmt.Errorf("take in %s: %w", name, err)
			}
			return fmt.Errorf("take in %s, lines %d and on: %w", name, g.lines[0][0], err)
		}
	}
	lines := make([]untaken, 0, len(receipt.Refused)+len(g.malformed))
	for i := range receipt.Refused {
		lines = append(lines, untakenRefusal(&receipt.Refused[i], &g, name))
	}
	for _, problem := range g.malformed {
		lines = append(lines, untakenLine(problem, name))
	}
	slices.SortStableFunc(lines, func(a, b untaken) int { return cmp.Compare(a.Line, b.Line) })
	t.tally.count(&receipt, lines)
	for _, line := range lines {
		if err := t.report.untaken(line); err != nil {
			return err
		}
	}
	return nil
}

// wonder asks about each source that nobody has described: a typing error in its id would give it the wrong precedence.
func (t *intake) wonder(g *gathered, name string) {
	for i, refresh := range g.refreshes {
		if t.sources == nil || t.sources.HasSource(refresh.SourceID) || t.unknown[refresh.SourceID] {
			continue
		}
		if t.unknown == nil {
			t.unknown = map[string]bool{}
		}
		t.unknown[refresh.SourceID] = true
		t.report.wonder(fmt.Sprintf("%s:%d: the catalogue has no source %q: its rates get priority %d and live %s, unless a "+
			"catalogue file says otherwise", name, g.lines[i][0], refresh.SourceID, engine.PriorityDefault, engine.LifetimeDefault))
	}
}

func untakenRefusal(r *engine.Refusal, g *gathered, name string) untaken {
	line := untaken{File: name, Outcome: refused, Reason: r.Reason, Detail: r.Detail, Held: r.HeldID}
	if o := &r.Observation; g.lines != nil {
		line.Line = g.lines[r.Refresh][r.Index]
	} else if line.Of = o.InstitutionID + " " + o.Currency; !o.EffectiveDate.IsZero() {
		line.Of += " " + o.EffectiveDate.String()
	}
	if r.HeldID != 0 {
		line.Outcome = held
	}
	return line
}

func untakenLine(problem collectors.LineError, name string) untaken {
	detail := fmt.Sprintf("found %s, want %s", problem.Found, problem.Want)
	if problem.Column != "" {
		detail = problem.Column + ": " + detail
	}
	return untaken{File: name, Line: problem.Line, Outcome: malformed, Detail: detail}
}

// count adds what became of one hand-over.
func (t *tally) count(receipt *engine.Receipt, lines []untaken) {
	t.lines += receipt.Accepted + len(lines)
	t.taken += receipt.Accepted
	t.changed += receipt.Changed
	for _, line := range lines {
		switch line.Outcome {
		case held:
			t.held++
		case refused:
			t.refused++
		case malformed:
			t.malformed++
		}
	}
}
