package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// removalsMax is how often the removal of a directory is tried in which a node still writes.
const removalsMax = 10

// demoEnd watches for all that ends a demo besides its context: a hang-up of the terminal, a reader of its output that has
// gone, and a second signal, which leaves no directory behind.
type demoEnd struct {
	cancel   context.CancelFunc
	signals  chan os.Signal
	pipes    chan os.Signal // taken so that a write to a closed pipe is an error and no death
	released chan struct{}
	watched  chan struct{} // closed when watch has ended

	mu        sync.Mutex
	directory string // to remove with the second signal, "" = none
}

// untilDemoEnds is a context that also ends with a hang-up, and when standard output takes no more. release gives the
// signals back.
func (p *commands) untilDemoEnds(ctx context.Context) (context.Context, *demoEnd) {
	ctx, cancel := context.WithCancel(ctx)
	e := &demoEnd{
		cancel: cancel, signals: make(chan os.Signal, 2), pipes: make(chan os.Signal, 1),
		released: make(chan struct{}), watched: make(chan struct{}),
	}
	p.Stdout = &endingOutput{p.Stdout, cancel}
	signal.Notify(e.pipes, syscall.SIGPIPE)
	signal.Notify(e.signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup asks
		signal.Notify(e.signals, syscall.SIGHUP)
	}
	go e.watch()
	return ctx, e
}

// removes names the directory that must not be left behind.
func (e *demoEnd) removes(directory string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.directory = directory
}

// watch ends the demo with the first signal, and the process with the second.
func (e *demoEnd) watch() {
	defer close(e.watched)
	select {
	case <-e.signals:
		e.cancel()
	case <-e.released:
		return
	}
	select {
	case second := <-e.signals:
		e.die(second)
	case <-e.released:
	}
}

// die removes the directory and gives the signal its usual effect.
func (e *demoEnd) die(by os.Signal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range removalsMax {
		if e.directory == "" || os.RemoveAll(e.directory) == nil {
			break
		}
	}
	signal.Reset(by)
	if number, ok := by.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), number) // where it fails the orderly stop goes on
	}
}

// release ends the watch; a signal has its usual effect again.
func (e *demoEnd) release() {
	signal.Stop(e.signals)
	signal.Stop(e.pipes)
	close(e.released)
	<-e.watched
	e.cancel()
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
