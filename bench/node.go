package main

import (
	"context"
	"errors"
	"time"
)

// nodeContender is the node itself: tasard serve.
type nodeContender struct {
	program program
	data    string   // its data directory
	flags   []string // besides those that every run has
	process *child
}

var _ contender = (*nodeContender)(nil)

// newNode is the program at a path on a fixture, with more flags.
func newNode(path string, f *fixture, flags ...string) *nodeContender {
	return &nodeContender{program: program{path: path}, data: f.dir, flags: flags}
}

// buildNode builds the program from the source tree that the bench runs in.
func buildNode(ctx context.Context, path string) error { return errors.New("not written yet") }

func (n *nodeContender) name() string    { return "node" }
func (n *nodeContender) missing() string { return "" }

func (n *nodeContender) start(ctx context.Context, core int) (*target, error) {
	return nil, errors.New("not written yet")
}

// startTimed is start, and tells how long after it was called a question is answered 200 for the first time.
func (n *nodeContender) startTimed(ctx context.Context, core int, request []byte) (*target, time.Duration, error) {
	return nil, 0, errors.New("not written yet")
}

func (n *nodeContender) stop() error { return nil }

// kill ends it as a crash does. It can be started again.
func (n *nodeContender) kill() {}
