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

// shutdownMax is how long requests in flight may take at the end; the server's own limit for a request is shorter.
const shutdownMax = 15 * time.Second

// descriptorsReserved are for the log, the collectors, mail, the operator, and newcomers at the cap of connections.
const descriptorsReserved = 256

// Descriptors are the files and connections that a node with so many connections may open, and how many this process may.
func Descriptors(conns int) (wanted, most int) {
	return cmp.Or(conns, ConnsDefault) + descriptorsReserved, descriptorsMax()
}

// limits are the connections that the server takes: no more than there are descriptors for.
func (h *HTTP) limits() httpapi.Limits {
	l := httpapi.Limits{ConnsMax: h.Conns, ConnsPerClient: cmp.Or(h.ConnsPerAddress, -1)}
	if wanted, most := Descriptors(h.Conns); most < wanted {
		l.ConnsMax = max(1, most-descriptorsReserved)
	}
	return l
}

// httpServer is the HTTP side of a node.
type httpServer struct {
	server *httpapi.Server
	url    string
	done   chan struct{} // closed when the server has ended
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
		return nil, errorf(Busy, field, "listen on %s: another program listens there; stop it or choose another address: %w", address, syscall.EADDRINUSE)
	case errors.Is(err, fs.ErrPermission):
		return nil, errorf(BadFile, field, "listen on %s: not allowed; choose a port from 1024 up", address)
	}
	return nil, errorf(BadFile, field, "listen on %s: choose an address of this machine: %w", address, err)
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

// startServer answers what the listener accepts, at once: 503 until the node is ready. stop waits for its goroutine.
func (n *Node) startServer(listener net.Listener) {
	if wanted, most := Descriptors(n.config.HTTP.Conns); most < wanted {
		n.config.Logger.Warn("the limit of open files leaves room for fewer connections; raise it, or lower the number of connections",
			"connections", n.config.HTTP.limits().ConnsMax)
	}
	n.server = &httpServer{server: n.core.Server, url: n.certificate.scheme() + listener.Addr().String(), done: make(chan struct{})}
	go func() {
		defer close(n.server.done)
		n.server.err = n.server.server.Serve(listener)
	}()
}

// stop lets requests in flight finish and waits for the server's end.
func (f *httpServer) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	if err := f.server.Shutdown(ctx); err != nil {
		return errorf(Failed, "", "stop answering: %w", err)
	}
	<-f.done
	return nil
}
