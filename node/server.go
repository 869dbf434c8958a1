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

// shutdownMax is the time for requests in flight when the node stops. The server's own limit for a request is shorter.
const shutdownMax = 15 * time.Second

// descriptorsReserved is the number of descriptors for the log, the collectors, mail, management, and connections
// beyond the maximum, which get 503.
const descriptorsReserved = 256

// Descriptors returns the number of descriptors that a node needs for conns connections, and the limit of this process.
func Descriptors(conns int) (needed, limit int) {
	return cmp.Or(conns, ConnsDefault) + descriptorsReserved, descriptorsMax()
}

// limits returns the server's limits, with no more connections than there are descriptors for.
func (h *HTTP) limits() httpapi.Limits {
	l := httpapi.Limits{ConnsMax: h.Conns, ConnsPerClient: cmp.Or(h.ConnsPerAddress, -1)}
	if needed, limit := Descriptors(h.Conns); limit < needed {
		l.ConnsMax = max(1, limit-descriptorsReserved)
	}
	return l
}

// httpServer is the running HTTP server of a node.
type httpServer struct {
	server *httpapi.Server
	url    string
	done   chan struct{} // closed when the server has ended
	err    error         // valid when done is closed; nil after stop
}

// Listen listens on a TCP address; field is the field of Config with the address. Multipath TCP is off, because its
// listener can't stop accepting before it is closed, and closing it would reset new connections.
func Listen(address, field string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	listener, err := config.Listen(context.Background(), "tcp", address)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errorf(Busy, field, "listen on %s: %w by another program; stop it or choose another address", address, syscall.EADDRINUSE)
	case errors.Is(err, fs.ErrPermission):
		return nil, errorf(BadFile, field, "listen on %s: permission denied; choose a port from 1024 up", address)
	}
	var cause syscall.Errno
	if errors.As(err, &cause) {
		err = cause
	}
	return nil, errorf(BadFile, field, "listen on %s: %w; choose an address of this machine", address, err)
}

// checkListen checks that an address belongs to this machine. An address in use is accepted, because a running node
// may be about to restart.
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

// startServer starts to serve the listener. Requests get 503 until the node is ready. stop waits for the goroutine.
func (n *Node) startServer(listener net.Listener) {
	if needed, limit := Descriptors(n.config.HTTP.Conns); limit < needed {
		n.config.Logger.Warn("the limit of open files leaves room for fewer connections; raise it, or lower the number of connections",
			"connections", n.config.HTTP.limits().ConnsMax)
	}
	n.server = &httpServer{server: n.core.Server, url: n.certificate.scheme() + listener.Addr().String(), done: make(chan struct{})}
	go func() {
		defer close(n.server.done)
		n.server.err = n.server.server.Serve(listener)
	}()
}

// stop waits for requests in flight and for the server's goroutine.
func (f *httpServer) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	if err := f.server.Shutdown(ctx); err != nil {
		return errorf(Failed, "", "stop answering: %w", err)
	}
	<-f.done
	return nil
}
