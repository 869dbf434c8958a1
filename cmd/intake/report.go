package intake

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
)

const (
	progressTerminal = 100 * time.Millisecond // interval between updates of the progress line on a terminal
	progressLines    = 5 * time.Second        // interval between progress lines elsewhere
)

type terminalReport struct {
	out      io.Writer // output for people: progress and rejected lines
	terminal bool      // out is a terminal; progress is then one line, which is overwritten
	clock    func() time.Time
	last     time.Time // time of the last progress line
	shown    int       // number of characters of the progress line on the terminal
	file     *os.File  // file that gets rejected lines as NDJSON; if it is nil, they go to out
	lines    *bufio.Writer
}

// openReport returns a report that writes to standard error. Rejected lines go to a file if refused is the name of one;
// "" means standard error too.
func openReport(p *process.Process, refused string) (*terminalReport, error) {
	r := &terminalReport{out: p.Stderr, terminal: terminal.IsTerminal(p.Stderr), clock: p.Clock, last: p.Clock()}
	if refused == "" {
		return r, nil
	}
	file, err := os.OpenFile(refused, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, exit.Errorf(exit.CannotWrite, "write rejected lines: %w", err)
	}
	r.file, r.lines = file, bufio.NewWriter(file)
	return r, nil
}

func (r *terminalReport) close() error {
	if r.file == nil {
		return nil
	}
	err := r.lines.Flush()
	if closeErr := r.file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return exit.Errorf(exit.IOError, "write rejected lines: %w", err)
	}
	return nil
}

func (r *terminalReport) rejected(l rejectedLine) error {
	if r.file == nil {
		r.clearProgress()
		terminal.Fprintf(r.out, "%s\n", l)
		return nil
	}
	line, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode a rejected line: %w", err)
	}
	if _, err := r.lines.Write(append(line, '\n')); err != nil {
		return exit.Errorf(exit.IOError, "write rejected lines: %w", err)
	}
	return nil
}

func (r *terminalReport) warn(text string) {
	r.clearProgress()
	terminal.Fprintf(r.out, "%s\n", text)
}

func (r *terminalReport) progress(p importProgress) {
	now := r.clock()
	interval := progressLines
	if r.terminal {
		interval = progressTerminal
	}
	if now.Sub(r.last) < interval {
		return
	}
	r.last = now
	r.clearProgress()
	text := fmt.Sprintf("%s: %s%s, %s a second", p.file, percentRead(p), terminal.Plural(p.lines, cmp.Or(p.unit, "line")), terminal.Thousands(p.perSecond()))
	if !r.terminal {
		terminal.Fprintf(r.out, "%s\n", text)
		return
	}
	r.shown = len(text)
	terminal.Fprintf(r.out, "%s", text)
}

func percentRead(p importProgress) string {
	if p.size <= 0 {
		return ""
	}
	return fmt.Sprintf("%d %%, ", min(100, p.bytes*100/p.size))
}

func (r *terminalReport) clearProgress() {
	if r.shown > 0 {
		terminal.Fprintf(r.out, "%s", "\r"+strings.Repeat(" ", r.shown)+"\r")
		r.shown = 0
	}
}

func (r *terminalReport) summary(out io.Writer, file string, c *lineCounts) {
	r.clearProgress()
	terminal.Fprintf(out, "%s: %s\n", file, c)
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

// logReport reports the progress and the problems of Import as log records.
type logReport struct {
	log   *slog.Logger
	clock func() time.Time
	last  time.Time
}

func (r *logReport) rejected(l rejectedLine) error {
	r.log.Warn(l.String(), "outcome", l.Outcome, "reason", l.Reason, "line", l.Line)
	return nil
}

func (r *logReport) warn(text string) { r.log.Warn(text) }

func (r *logReport) progress(p importProgress) {
	if now := r.clock(); now.Sub(r.last) >= progressLines {
		r.last = now
		r.log.Info(fmt.Sprintf("importing %s: %s%s", p.file, percentRead(p), terminal.Plural(p.lines, "line")))
	}
}
