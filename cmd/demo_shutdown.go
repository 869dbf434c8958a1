package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// removeTriesMax is how often the removal of a directory is tried in which a node still writes.
const removeTriesMax = 10

// demoShutdown watches for all that ends a demo besides its context: a hang-up of the terminal, a reader of its output that has
// gone, and a second signal, which leaves no directory behind.
type demoShutdown struct {
	directory atomic.Pointer[string] // to remove with the second signal, nil = none
	release   func()                 // ends the watch; a signal has its usual effect again
}

// demoContext is a context that also ends with a hang-up, and when standard output takes no more.
func (p *commands) demoContext(ctx context.Context) (context.Context, *demoShutdown) {
	ctx, cancel := context.WithCancel(ctx)
	p.Stdout = &cancelingWriter{p.Stdout, cancel}
	pipes := make(chan os.Signal, 1) // taken so that a write to a closed pipe is an error and no death
	signal.Notify(pipes, syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup asks
		signal.Notify(signals, syscall.SIGHUP)
	}
	e, released, watched := &demoShutdown{}, make(chan struct{}), make(chan struct{})
	e.release = func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(released)
		<-watched
		cancel()
	}
	go func() {
		defer close(watched)
		for _, then := range []func(os.Signal){func(os.Signal) { cancel() }, e.abort} {
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

// abort removes the directory and gives the signal its usual effect.
func (e *demoShutdown) abort(by os.Signal) {
	directory := e.directory.Load()
	for range removeTriesMax {
		if directory == nil || os.RemoveAll(*directory) == nil {
			break
		}
	}
	signal.Reset(by)
	if number, ok := by.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), number) // where it fails the orderly stop goes on
	}
}

// cancelingWriter ends the demo when nothing more can be written.
type cancelingWriter struct {
	to     io.Writer
	cancel context.CancelFunc
}

// Write writes, or ends the demo.
func (o *cancelingWriter) Write(bytes []byte) (int, error) {
	n, err := o.to.Write(bytes)
	if err != nil {
		o.cancel()
	}
	return n, err
}
