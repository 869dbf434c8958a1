package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// lab is where goals are measured: the data, the servers that run, and what was found.
type lab struct {
	options  runOptions
	tasard   string // the node's program
	self     program
	dir      string // scratch space, removed at the end
	profile  string // directory for CPU profiles of the node, "" = none
	progress *progress
	report   *report

	fixture *fixture
	node    *target
	started []contender // to be stopped, last first
}

// missingError is what can't be measured here, and why: it is skipped by name.
type missingError struct{ name, why string }

func (e *missingError) Error() string { return e.name + ": " + e.why }

// openLab makes a scratch directory.
func openLab(options runOptions, tasard string, out io.Writer) (*lab, error) {
	self, err := ownProgram()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tasard-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	l := &lab{options: options, tasard: tasard, self: self, dir: dir, report: newReport(options)}
	l.progress = newProgress(out, time.Now, nil)
	return l, nil
}

func newReport(options runOptions) *report {
	r := &report{Started: time.Now(), Machine: thisMachine(), Options: options}
	r.Commit, r.Changed = treeState()
	return r
}

// close stops what runs and removes what was made.
func (l *lab) close() error {
	err := l.stopFrom(0)
	return errors.Join(err, os.RemoveAll(l.dir))
}

// stopFrom stops the contenders that were started from a place on.
func (l *lab) stopFrom(place int) error {
	var all []error
	for i := len(l.started) - 1; i >= place; i-- {
		if err := l.started[i].stop(); err != nil {
			all = append(all, fmt.Errorf("stop %s: %w", l.started[i].name(), err))
		}
	}
	l.started = l.started[:place]
	return errors.Join(all...)
}

// start starts a contender on the servers' core.
func (l *lab) start(ctx context.Context, c contender) (*target, error) {
	if why := c.missing(); why != "" {
		return nil, &missingError{c.name(), why}
	}
	found, err := c.start(ctx, serverCore)
	if err != nil {
		return nil, err
	}
	l.started = append(l.started, c)
	return found, nil
}

// prepare makes the data that most goals are measured with, and starts the node on it.
func (l *lab) prepare(ctx context.Context) error {
	if l.node != nil {
		return nil
	}
	size := standardSize()
	size.accounts = l.options.Accounts
	var err error
	if l.fixture, err = newFixture(filepath.Join(l.dir, "standard"), size); err != nil {
		return err
	}
	l.node, err = l.start(ctx, newNode(l.tasard, l.fixture))
	return err
}

// ours is the node, asked questions in the names of all accounts.
func (l *lab) ours(questions []question) side {
	return side{target: l.node, keys: l.fixture.keys, questions: questions}
}

// bare starts a server that says what the node says to questions, and nothing else.
func (l *lab) bare(ctx context.Context, questions []question) (side, error) {
	replies, err := capture(ctx, l.node.address, l.fixture.keys[0], questions)
	if err != nil {
		return side{}, err
	}
	file := filepath.Join(l.dir, fmt.Sprintf("replies-%d.json", len(l.started)))
	if err := writeReplies(file, replies); err != nil {
		return side{}, err
	}
	found, err := l.start(ctx, newBare(l.self, file))
	return side{target: found, keys: l.fixture.keys, questions: questions}, err
}

// besideBare compares the node with the bare server on one kind of question.
func (l *lab) besideBare(ctx context.Context, name string) ([]pair, error) {
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	questions := mixes(benchInstitution)[name]
	before := len(l.started)
	bare, err := l.bare(ctx, questions)
	if err != nil {
		return nil, err
	}
	pairs, err := l.compare(ctx, l.ours(questions), bare)
	if err == nil {
		err = l.profiled(ctx, name, questions)
	}
	return pairs, errors.Join(err, l.stopFrom(before))
}

// benchInstitution is one with rates and history in dollars.
const benchInstitution = "popular"

// meet measures a goal and puts it into the report. What is missing here is skipped by name.
func (l *lab) meet(ctx context.Context, s scenario) error {
	l.progress.begin(s.goal)
	found := goal{ID: s.goal, Title: s.title}
	err := s.run(ctx, l, &found)
	var missing *missingError
	if errors.As(err, &missing) {
		l.report.Skipped = append(l.report.Skipped, skip{s.goal + ", " + missing.name, missing.why})
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%s, %s: %w", s.goal, s.title, err)
	}
	l.report.Goals = append(l.report.Goals, found)
	return nil
}
