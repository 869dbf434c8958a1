package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// removalsMax is how often the removal of a directory is tried in which a node still writes.
const removalsMax = 10

// demoEnd watches for all that ends a demo besides its context: a hang-up of the terminal, a reader of its output that has
// gone, and a second signal, which leaves no directory behind.
type demoEnd struct {
	directory atomic.Pointer[string] // to remove with the second signal, nil = none
	release   func()                 // ends the watch; a signal has its usual effect again
}

// untilDemoEnds is a context that also ends with a hang-up, and when standard output takes no more.
func (p *commands) untilDemoEnds(ctx context.Context) (context.Context, *demoEnd) {
	ctx, cancel := context.WithCancel(ctx)
	p.Stdout = &endingOutput{p.Stdout, cancel}
	pipes := make(chan os.Signal, 1) // taken so that a write to a closed pipe is an error and no death
	signal.Notify(pipes, syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup asks
		signal.Notify(signals, syscall.SIGHUP)
	}
	e, released, watched := &demoEnd{}, make(chan struct{}), make(chan struct{})
	e.release = func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(released)
		<-watched
		cancel()
	}
	go func() {
		defer close(watched)
		for _, then := range []func(os.Signal){func(os.Signal) { cancel() }, e.die} {
			select {
			case by := <-signals:
				then(by)
			case <-released:
				return
			}
		}
	}()
	return ctx, e
}

// die removes the directory and gives the signal its usual effect.
func (e *demoEnd) die(by os.Signal) {
	directory := e.directory.Load()
	for range removalsMax {
		if directory == nil || os.RemoveAll(*directory) == nil {
			break
		}
	}
	signal.Reset(by)
	if number, ok := by.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), number) // where it fails the orderly stop goes on
	}
}

// endingOutput ends the demo when nothing more can be written.
type endingOutput struct {
	to  io.Writer
	end context.CancelFunc
}

// Write writes, or ends the demo.
func (o *endingOutput) Write(bytes []byte) (int, error) {
	n, err := o.to.Write(bytes)
	if err != nil {
		o.end()
	}
	return n, err
}
