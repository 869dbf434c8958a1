package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// removeTriesMax is the number of attempts to remove a directory. An attempt fails if the node creates a file in it.
const removeTriesMax = 10

// demoShutdown handles the signals of a demo. The first signal (SIGINT, SIGTERM or SIGHUP) ends the demo. The second
// one removes the demo's temporary directory and kills the process.
type demoShutdown struct {
	directory atomic.Pointer[string] // removed on the second signal; nil if there is none
	release   func()                 // ends the handling of signals, which then have their default effect
}

// demoContext returns a context that ends with ctx, with the first signal, or when standard output is closed.
func (p *commands) demoContext(ctx context.Context) (context.Context, *demoShutdown) {
	ctx, cancel := context.WithCancel(ctx)
	p.Stdout = &cancelingWriter{p.Stdout, cancel}
	pipes := make(chan os.Signal, 1) // with a handler, a write to a closed pipe fails instead of killing the process
	signal.Notify(pipes, syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup starts programs with SIGHUP ignored
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

// abort removes the demo's temporary directory and sends the signal to this process again, with its default effect.
func (d *demoShutdown) abort(sig os.Signal) {
	directory := d.directory.Load()
	for range removeTriesMax {
		if directory == nil || os.RemoveAll(*directory) == nil {
			break
		}
	}
	signal.Reset(sig)
	if sysSignal, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), sysSignal) // if this fails, the orderly stop of the first signal continues
	}
}

// cancelingWriter ends the context of the demo when a write fails.
type cancelingWriter struct {
	w      io.Writer
	cancel context.CancelFunc
}

// Write implements io.Writer.
func (c *cancelingWriter) Write(bytes []byte) (int, error) {
	n, err := c.w.Write(bytes)
	if err != nil {
		c.cancel()
	}
	return n, err
}
