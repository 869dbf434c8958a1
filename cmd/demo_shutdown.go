package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// removeTriesMax is the number of tries to remove a directory while a node still writes to it.
const removeTriesMax = 10

// demoShutdown ends a demo on a hang-up of the terminal, on a closed standard output, and on a second signal, after
// which no directory is left behind.
type demoShutdown struct {
	directory atomic.Pointer[string] // removed on the second signal; nil = none
	release   func()                 // stops watching and restores the default effect of signals
}

// demoContext returns a context that also ends with a hang-up, and when standard output is closed.
func (p *commands) demoContext(ctx context.Context) (context.Context, *demoShutdown) {
	ctx, cancel := context.WithCancel(ctx)
	p.Stdout = &cancelingWriter{p.Stdout, cancel}
	pipes := make(chan os.Signal, 1) // caught so that a write to a closed pipe fails instead of killing the process
	signal.Notify(pipes, syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP)
	}
	e, released, watchDone := &demoShutdown{}, make(chan struct{}), make(chan struct{})
	e.release = func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(released)
		<-watchDone
		cancel()
	}
	go func() {
		defer close(watchDone)
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

// abort removes the directory and sends the signal to the process again, with its default effect.
func (e *demoShutdown) abort(by os.Signal) {
	directory := e.directory.Load()
	for range removeTriesMax {
		if directory == nil || os.RemoveAll(*directory) == nil {
			break
		}
	}
	signal.Reset(by)
	if number, ok := by.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), number) // on failure the orderly stop goes on
	}
}

// cancelingWriter cancels the context of the demo when a write fails.
type cancelingWriter struct {
	to     io.Writer
	cancel context.CancelFunc
}

// Write writes, and cancels on an error.
func (o *cancelingWriter) Write(bytes []byte) (int, error) {
	n, err := o.to.Write(bytes)
	if err != nil {
		o.cancel()
	}
	return n, err
}
