package intake

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
)

// report tells an operator about the problems of an import.
type report struct {
	warn     func(text string)  // for valid input that may be a mistake
	rejected func(rejectedLine) // called for each rejected line, in the order of the file
}

// newReport returns a report that writes to standard error.
func newReport(p *process.Process) *report {
	say := func(text string) { terminal.Fprintf(p.Stderr, "%s\n", text) }
	return &report{warn: say, rejected: func(l rejectedLine) { say(l.String()) }}
}

// newLogReport returns a report that logs.
func newLogReport(log *slog.Logger) *report {
	return &report{
		warn:     func(text string) { log.Warn(text) },
		rejected: func(l rejectedLine) { log.Warn(l.String(), "outcome", l.Outcome, "reason", l.Reason, "line", l.Line) },
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
