package cmd

import (
	"context"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// startWithSocket starts a node with a listening socket of the service manager, which this test plays.
func startWithSocket(t *testing.T, socket *os.File, args ...string) *program {
	t.Helper()
	// The variable has the number of the process that the socket is for.
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0]}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"="+realNow, socketsVariable+"=1")
	cmd.ExtraFiles = []*os.File{socket}
	p := &program{startChild(t, cmd)}
	p.Await("recovered")
	return p
}

// TestSockets_Restart: with a socket that stays open no request fails over a restart, on new connections.
func TestSockets_Restart(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	noError(t, err)
	defer socket.Close()
	args := serveArgs(t.TempDir())
	p := startWithSocket(t, socket, args...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := &drainResult{enough: make(chan struct{})}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() { d.ask(ctx, listener.Addr().String(), drainMode{fresh: true}) })
	}
	<-d.enough
	for range 3 {
		p.stop(syscall.SIGTERM)
		p = startWithSocket(t, socket, args...)
		before := d.whole.Load()
		eventually(t, "the next node answers", func() bool { return d.whole.Load() > before+100 || d.dropped.Load()+d.failed.Load() > 0 })
	}
	cancel()
	clients.Wait()
	if d.dropped.Load()+d.failed.Load() > 0 {
		t.Errorf("%d requests were answered, %d not, %d failed", d.whole.Load(), d.dropped.Load(), d.failed.Load())
	}
}
