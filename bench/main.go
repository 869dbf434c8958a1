package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, leave := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	leave()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case errors.Is(err, errShort):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

// run is the program: one of its hidden servers, a load on an address, or the goals.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "bare":
			return runBare(ctx, args[1:], out)
		case "postgres":
			return runPostgres(ctx, args[1:], out)
		case "costs":
			return runCosts(ctx, args[1:], out, progress)
		}
	}
	s, err := readSettings(args, progress)
	if err != nil {
		return err
	}
	if s.against != nil {
		return s.against.run(ctx, s, out)
	}
	return s.measureGoals(ctx, out, progress)
}

// errShort is the end of a run in which a goal was not met, when -strict asks for that.
var errShort = errors.New("a goal was not met")

// measureGoals measures what was chosen and writes the reports.
func (s *settings) measureGoals(ctx context.Context, out, progress io.Writer) (err error) {
	list, err := chosen(s.goals)
	if err != nil {
		return err
	}
	if s.tasard == "" {
		return errors.New("-tasard: the path of the node's program; make build makes ./tasard")
	}
	l, err := openLab(s.options, s.tasard, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	l.profile = s.profile
	l.progress = newProgress(progress, time.Now, stages(list, &s.options))
	for _, scenario := range list {
		if err := l.meet(ctx, scenario); err != nil {
			l.progress.end()
			return err
		}
	}
	l.progress.end()
	l.report.Took = time.Since(l.report.Started)
	if err := l.report.writeText(out); err != nil {
		return err
	}
	if err := l.report.writeAll(s.out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nThe reports are in %s: report.txt and report.json.\n", s.out)
	if err != nil {
		return err
	}
	if s.strict && l.report.short() {
		return errShort
	}
	return nil
}

// short reports that some measure misses its bound.
func (r *report) short() bool {
	for i := range r.Goals {
		for j := range r.Goals[i].Measures {
			if !r.Goals[i].Measures[j].met() {
				return true
			}
		}
	}
	return false
}

// writeAll writes the report into a directory, as text and as JSON.
func (r *report) writeAll(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the directory of reports: %w", err)
	}
	for name, write := range map[string]func(io.Writer) error{"report.json": r.writeJSON, "report.txt": r.writeText} {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		if err := errors.Join(write(file), file.Close()); err != nil {
			return fmt.Errorf("write %s: %w", file.Name(), err)
		}
	}
	return nil
}
