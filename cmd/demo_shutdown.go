package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// removeTriesMax is the number of attempts to remove a directory to which a node still writes.
const removeTriesMax = 10

// demoShutdown ends a demo when the terminal hangs up or standard output is closed. On a second signal it removes the
// demo's directory and kills the process.
type demoShutdown struct {
	directory atomic.Pointer[string] // removed on the second signal; nil = none
	release   func()                 // stops watching and restores the default effect of signals
}

// demoContext returns a context that also ends on the first SIGHUP, and when standard output is closed.
func (p *commands) demoContext(ctx context.Context) (context.Context, *demoShutdown) {
	ctx, cancel := context.WithCancel(ctx)
	p.Stdout = &cancelingWriter{p.Stdout, cancel}
	pipes := make(chan os.Signal, 1) // so that a write to a closed pipe fails instead of killing the process
	signal.Notify(pipes, syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP)
	}
	d, released, watchDone := &demoShutdown{}, make(chan struct{}), make(chan struct{})
	d.release = func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(released)
		<-watchDone
		cancel()
	}
	go func() {
		defer close(watchDone)
		for _, handle := range []func(os.Signal){func(os.Signal) { cancel() }, d.abort} {
			select {
			case sig := <-signals:
				handle(sig)
			case <-released:
				return
			}
		}
	}()
	return ctx, d
}

// abort removes the directory and sends the signal to the process again, with its default effect.
func (d *demoShutdown) abort(sig os.Signal) {
	directory := d.directory.Load()
	for range removeTriesMax {
		if directory == nil || os.RemoveAll(*directory) == nil {
			break
		}
	}
	signal.Reset(sig)
	if sysSignal, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), sysSignal) // if it fails, the orderly stop continues
	}
}

// cancelingWriter cancels the context of the demo when a write fails.
type cancelingWriter struct {
	w      io.Writer
	cancel context.CancelFunc
}

// Write writes, and cancels on an error.
func (c *cancelingWriter) Write(bytes []byte) (int, error) {
	n, err := c.w.Write(bytes)
	if err != nil {
		c.cancel()
	}
	return n, err
}
