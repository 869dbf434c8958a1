package main

import (
	"context"
	"errors"
)

// nginxContender is nginx with the bodies of answers as files.
type nginxContender struct {
	dir     string // empty, for its configuration and files
	answers []answer
	process *child
}

var _ contender = (*nginxContender)(nil)

func newNginx(dir string, answers []answer) *nginxContender {
	return &nginxContender{dir: dir, answers: answers}
}

func (n *nginxContender) name() string    { return "nginx" }
func (n *nginxContender) missing() string { return "" }

func (n *nginxContender) start(ctx context.Context, core int) (*target, error) {
	return nil, errors.New("not written yet")
}

func (n *nginxContender) stop() error { return nil }
