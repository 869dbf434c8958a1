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
	progressTerminal = 100 * time.Millisecond // between two updates of the line on a terminal
	progressLines    = 5 * time.Second        // between two lines elsewhere
)

// report tells the user of the import command what becomes of a file.
type report struct {
	out      io.Writer // progress and lines that were not published, for people
	terminal bool      // out is one: progress is one line that changes
	clock    func() time.Time
	last     time.Time // when progress was last shown
	shown    int       // characters of the progress line that stands on the terminal
	file     *os.File  // where untaken lines go as NDJSON; nil = out
	lines    *bufio.Writer
}

// openReport begins a report; refused names the file for lines that were not published, "" for none.
func openReport(p *process.Process, refused string) (*report, error) {
	r := &report{out: p.Stderr, terminal: terminal.IsTerminal(p.Stderr), clock: p.Clock, last: p.Clock()}
	if refused == "" {
		return r, nil
	}
	file, err := os.OpenFile(refused, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, exit.Fail(exit.CannotWrite, "write refused lines: %w", err)
	}
	r.file, r.lines = file, bufio.NewWriter(file)
	return r, nil
}

// close writes out what is buffered.
func (r *report) close() error {
	if r.file == nil {
		return nil
	}
	err := r.lines.Flush()
	if closed := r.file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return exit.Fail(exit.Broken, "write refused lines: %w", err)
	}
	return nil
}

func (r *report) untaken(u untaken) error {
	if r.file == nil {
		r.wipe()
		terminal.Say(r.out, "%s\n", u)
		return nil
	}
	line, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("encode a refused line: %w", err)
	}
	if _, err := r.lines.Write(append(line, '\n')); err != nil {
		return exit.Fail(exit.Broken, "write refused lines: %w", err)
	}
	return nil
}

func (r *report) wonder(question string) {
	r.wipe()
	terminal.Say(r.out, "%s\n", question)
}

func (r *report) progress(p progress) {
	now := r.clock()
	pause := progressLines
	if r.terminal {
		pause = progressTerminal
	}
	if now.Sub(r.last) < pause {
		return
	}
	r.last = now
	r.wipe()
	text := fmt.Sprintf("%s: %s%s, %s a second", p.file, percentRead(p), terminal.Counted(p.lines, cmp.Or(p.unit, "line")), terminal.Grouped(p.perSecond()))
	if !r.terminal {
		terminal.Say(r.out, "%s\n", text)
		return
	}
	r.shown = len(text)
	terminal.Say(r.out, "%s", text)
}

func percentRead(p progress) string {
	if p.size <= 0 {
		return ""
	}
	return fmt.Sprintf("%d %%, ", min(100, p.bytes*100/p.size))
}

// wipe takes the progress line off the terminal.
func (r *report) wipe() {
	if r.shown > 0 {
		terminal.Say(r.out, "%s", "\r"+strings.Repeat(" ", r.shown)+"\r")
		r.shown = 0
	}
}

// summary is the last word on a file.
func (r *report) summary(out io.Writer, file string, t *tally) {
	r.wipe()
	terminal.Say(out, "%s: %s\n", file, t)
}

// String is the tally as one sentence.
func (t *tally) String() string {
	return fmt.Sprintf("%s in %s, %s a second: %s taken in (%s new), %s held, %s refused, %s malformed",
		terminal.Counted(t.lines, cmp.Or(t.unit, "line")), t.elapsed.Round(time.Millisecond), terminal.Grouped(t.perSecond()),
		terminal.Grouped(t.taken), terminal.Grouped(t.changed), terminal.Grouped(t.held), terminal.Grouped(t.refused), terminal.Grouped(t.malformed))
}

// logReport tells the log of a running node what becomes of a file.
type logReport struct {
	log   *slog.Logger
	clock func() time.Time
	last  time.Time
}

func (r *logReport) untaken(u untaken) error {
	r.log.Warn(u.String(), "outcome", u.Outcome, "reason", u.Reason, "line", u.Line)
	return nil
}

func (r *logReport) wonder(question string) { r.log.Warn(question) }

func (r *logReport) progress(p progress) {
	if now := r.clock(); now.Sub(r.last) >= progressLines {
		r.last = now
		r.log.Info(fmt.Sprintf("importing %s: %s%s", p.file, percentRead(p), terminal.Counted(p.lines, "line")))
	}
}
