package main

import (
	"context"
	"errors"
)

// bareContender answers from memory what the node answered, with the same HTTP library and settings, and does nothing else.
type bareContender struct {
	program program
	answers string // file of writeAnswers
	process *child
}

var _ contender = (*bareContender)(nil)

// newBare is the bench's own program with its subcommand bare.
func newBare(self program, answers string) *bareContender {
	return &bareContender{program: self, answers: answers}
}

func (b *bareContender) name() string    { return "bare" }
func (b *bareContender) missing() string { return "" }

func (b *bareContender) start(ctx context.Context, core int) (*target, error) {
	return nil, errors.New("not written yet")
}

func (b *bareContender) stop() error { return nil }

// runBare is the subcommand: bench bare ANSWERS. It ends with the context.
func runBare(ctx context.Context, args []string) error { return errors.New("not written yet") }
