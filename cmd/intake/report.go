package intake

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
)

// progressInterval is the interval between lines about progress.
const progressInterval = 5 * time.Second

// report tells an operator about the progress and the problems of an import.
type report struct {
	clock    func() time.Time
	last     time.Time                // of the last line about progress
	info     func(text string)        // for progress
	warn     func(text string)        // for valid input that may be a mistake
	rejected func(rejectedLine) error // called for each rejected line, in the order of the file
	close    func() error
}

// openReport returns a report that writes to standard error. Rejected lines go to a file as NDJSON if refused is the
// name of one; "" means standard error too.
func openReport(p *process.Process, refused string) (*report, error) {
	say := func(text string) { terminal.Fprintf(p.Stderr, "%s\n", text) }
	r := &report{clock: p.Clock, last: p.Clock(), info: say, warn: say, close: func() error { return nil }}
	if refused == "" {
		r.rejected = func(l rejectedLine) error { say(l.String()); return nil }
		return r, nil
	}
	file, err := os.OpenFile(refused, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, exit.Errorf(exit.CannotWrite, "write rejected lines: %w", err)
	}
	failed := func(err error) error {
		if err != nil {
			err = exit.Errorf(exit.IOError, "write rejected lines: %w", err)
		}
		return err
	}
	lines := bufio.NewWriter(file)
	encoder := json.NewEncoder(lines)
	r.rejected = func(l rejectedLine) error { return failed(encoder.Encode(l)) }
	r.close = func() error { return failed(errors.Join(lines.Flush(), file.Close())) }
	return r, nil
}

// newLogReport returns a report that logs.
func newLogReport(log *slog.Logger, clock func() time.Time) *report {
	return &report{
		clock: clock, last: clock(), info: func(text string) { log.Info("importing " + text) }, warn: func(text string) { log.Warn(text) },
		rejected: func(l rejectedLine) error {
			log.Warn(l.String(), "outcome", l.Outcome, "reason", l.Reason, "line", l.Line)
			return nil
		},
	}
}

// progress is called after each batch.
func (r *report) progress(file string, c *lineCounts) {
	if now := r.clock(); now.Sub(r.last) >= progressInterval {
		r.last = now
		r.info(fmt.Sprintf("%s: %s, %s a second", file, terminal.Plural(c.lines, cmp.Or(c.unit, "line")), terminal.Thousands(c.perSecond())))
	}
}

func (c *lineCounts) String() string {
	repeats := ""
	if c.accepted > c.changed {
		repeats = fmt.Sprintf("; %s of the accepted repeat a known value", terminal.Thousands(c.accepted-c.changed))
	}
	if c.notices > 0 {
		repeats += "; " + terminal.Plural(c.notices, "published rate") + " withdrawn or confirmed by others, as the warnings say"
	}
	return fmt.Sprintf("%s in %s, %s a second: %s accepted (%s new), %s quarantined, %s refused, %s malformed%s",
		terminal.Plural(c.lines, cmp.Or(c.unit, "line")), c.elapsed.Round(time.Millisecond), terminal.Thousands(c.perSecond()),
		terminal.Thousands(c.accepted), terminal.Thousands(c.changed), terminal.Thousands(c.quarantined), terminal.Thousands(c.refused), terminal.Thousands(c.malformed), repeats)
}
