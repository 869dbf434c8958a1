package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// profileTime is how long a profile watches the node: as long as some rounds, in whole seconds.
func (o *runOptions) profileTime() time.Duration {
	return max(time.Second, (3 * o.Measure).Truncate(time.Second))
}

// profiled takes a CPU profile of the node while it is asked questions, into a file of its own: beside the measured rounds, because
// taking one costs something.
func (l *lab) profiled(ctx context.Context, name string, questions []question) error {
	node, ours := l.nodeOf()
	if l.profile == "" || !ours {
		return nil
	}
	if err := os.MkdirAll(l.profile, 0o750); err != nil {
		return fmt.Errorf("make the directory of profiles: %w", err)
	}
	watched := l.options.profileTime()
	taken := make(chan error, 1)
	go func() {
		text, err := node.ask(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(watched.Seconds())), watched+answerMax)
		if err == nil {
			err = os.WriteFile(filepath.Join(l.profile, name+".pprof"), text, 0o600)
		}
		taken <- err
	}()
	asker, err := newMix(benchHost, l.fixture.keys, questions, l.options.Seed)
	if err == nil {
		_, err = l.sample(ctx, l.node, &load{
			address: l.node.address, asker: asker, seed: l.options.Seed, connections: l.options.Connections, measure: watched + time.Second/2,
		})
	}
	if err = errors.Join(err, <-taken); err != nil {
		return fmt.Errorf("take a profile of %s: %w", name, err)
	}
	return nil
}

// nodeOf is the contender behind l.node.
func (l *lab) nodeOf() (*nodeContender, bool) {
	if len(l.started) == 0 {
		return nil, false
	}
	node, is := l.started[0].(*nodeContender)
	return node, is
}

// errAnswer is an answer of the node's operator's socket that is none.
var errAnswer = errors.New("the node's operator socket refused")

// checkStatus wants a 200.
func checkStatus(response *http.Response, body []byte) error {
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: want an answer 200, found %d: %.300s", errAnswer, response.StatusCode, body)
	}
	return nil
}
