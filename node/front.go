package node

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/tasard/tasard/httpapi"
)

// stopMax is how long requests in flight may take at the end; the server's own limit for a request is shorter.
const stopMax = 15 * time.Second

// descriptorsKept are for the log, the collectors, mail, the operator, and newcomers at the cap of connections.
const descriptorsKept = 256

// Descriptors are the files and connections that a node with so many connections may open, and how many this process may.
func Descriptors(conns int) (wanted, most int) {
	return cmp.Or(conns, ConnsDefault) + descriptorsKept, descriptorsMax()
}

// limits are the connections that the server takes: no more than there are descriptors for.
func (h *HTTP) limits() httpapi.Limits {
	l := httpapi.Limits{ConnsMax: h.Conns, ConnsPerAddress: cmp.Or(h.ConnsPerAddress, -1)}
	if wanted, most := Descriptors(h.Conns); most < wanted {
		l.ConnsMax = max(1, most-descriptorsKept)
	}
	return l
}

// front is the HTTP side of a node.
type front struct {
	server *httpapi.Server
	url    string
	ended  chan struct{} // closed when the server has ended
	err    error         // why, nil after stop; to be read when ended is closed
}

// Listen opens an address; field is that of Config which names it. It is plain TCP: a listener of multipath TCP can't be made deaf before
// it is closed, and would cut off who is just coming.
func Listen(address, field string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	listener, err := config.Listen(context.Background(), "tcp", address)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fail(Busy, field, "listen on %s: another program listens there; stop it or choose another address: %w", address, syscall.EADDRINUSE)
	case errors.Is(err, fs.ErrPermission):
		return nil, fail(BadFile, field, "listen on %s: not allowed; choose a port from 1024 up", address)
	}
	return nil, fail(BadFile, field, "listen on %s: choose an address of this machine: %w", address, err)
}

// checkListen wants an address of this machine. One that is taken is good: the node that is to be started anew may hold it.
func checkListen(address string) error {
	listener, err := Listen(address, "HTTP.Listen")
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	if err != nil {
		return err
	}
	return listener.Close()
}

// startFront answers what the listener accepts, at once: 503 until the node is ready. stop waits for its goroutine.
func (n *Node) startFront(listener net.Listener) {
	if wanted, most := Descriptors(n.config.HTTP.Conns); most < wanted {
		n.config.Logger.Warn("the limit of open files leaves room for fewer connections; raise it, or lower the number of connections",
			"connections", n.config.HTTP.limits().ConnsMax)
	}
	n.front = &front{server: n.core.Server, url: n.certificate.scheme() + listener.Addr().String(), ended: make(chan struct{})}
	go func() {
		defer close(n.front.ended)
		n.front.err = n.front.server.Serve(listener)
	}()
}

// stop lets requests in flight finish and waits for the server's end.
func (f *front) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMax)
	defer cancel()
	if err := f.server.Shutdown(ctx); err != nil {
		return fail(Failed, "", "stop answering: %w", err)
	}
	<-f.ended
	return nil
}
