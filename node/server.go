package node

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"net"
	"syscall"
	"time"
)

// shutdownMax limits how long a stopping node waits for requests in flight. The HTTP server's time limit for a request
// is shorter.
const shutdownMax = 15 * time.Second

// acceptDelayMax limits how long a node reads its log before it accepts connections and answers 503. It applies only to
// HTTP.Listener, which another process, such as systemd, may keep open.
const acceptDelayMax = 2 * time.Second

// descriptorsReserved is the number of file descriptors for other uses than client connections: log, collectors, mail,
// management, and excess connections, which get 503.
const descriptorsReserved = 256

// descriptorsMax returns the process's limit of open files. The Go runtime has already raised it to the hard limit.
func descriptorsMax() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

// connsMin is the minimum number of connections for a start, unless fewer are configured.
const connsMin = 32

// connsMax returns the maximum number of connections: Conns, or what the process's limit of open files leaves room for.
func (h *HTTP) connsMax() int { return min(h.Conns, descriptorsMax()-descriptorsReserved) }

// checkDescriptors returns an error if the process's limit of open files is too low for connsMin.
func (h *HTTP) checkDescriptors() error {
	least := min(h.Conns, connsMin)
	if h.connsMax() >= least {
		return nil
	}
	return errorf(BadFile, "", "the limit of open files is %d: a node needs at least %d, and %d for %d connections; raise it (LimitNOFILE, ulimit -n)",
		descriptorsMax(), descriptorsReserved+least, descriptorsReserved+h.Conns, h.Conns)
}

// Listen listens on a TCP address. Errors name field, the field of Config with the address. Multipath TCP is off,
// because closing a multipath listener resets the connections in its backlog. A plain TCP listener can stop accepting
// first, so that these connections are still served.
func Listen(address, field string) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: -1} // the servers' own timeouts end dead connections; each new one saves system calls
	config.SetMultipathTCP(false)
	listener, err := config.Listen(context.Background(), "tcp", address)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errorf(Busy, field, "listen on %s: %w by another program; stop it or choose another address", address, syscall.EADDRINUSE)
	case errors.Is(err, fs.ErrPermission):
		return nil, errorf(BadFile, field, "listen on %s: permission denied; choose a port from 1024 up, or let systemd open it", address)
	}
	var cause syscall.Errno
	if errors.As(err, &cause) {
		err = cause
	}
	return nil, errorf(BadFile, field, "listen on %s: %w; choose an address of this machine", address, err)
}

// checkListen checks that an address belongs to this machine. An address in use is not an error: it may belong to the
// node that is about to be restarted.
func checkListen(address, field string) error {
	listener, err := Listen(address, field)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	if err != nil {
		return err
	}
	return listener.Close()
}

// startServer starts a goroutine that serves the listener. Until the node is ready, requests get 503.
func (n *Node) startServer(listener net.Listener) {
	if conns := n.config.HTTP.connsMax(); conns < n.config.HTTP.Conns {
		n.config.Logger.Warn("the limit of open files leaves room for fewer connections; raise it, or lower the number of connections", "connections", conns)
	}
	n.url, n.served = n.certificate.scheme()+listener.Addr().String(), make(chan struct{})
	go func() {
		defer close(n.served)
		if n.config.HTTP.Listener != nil { // meanwhile connections wait in the backlog: clients do not notice a shorter restart
			n.waitUpTo(acceptDelayMax, n.system.Ready())
		}
		n.serveErr = n.core.Server.Serve(listener)
	}()
}

// waitUpTo waits for d. It returns earlier if the channel end is closed or the system has ended by itself.
func (n *Node) waitUpTo(d time.Duration, end <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-end:
	case <-n.system.Done():
	}
}

// stopServer stops the HTTP server. It waits up to shutdownMax for requests in flight.
func (n *Node) stopServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	if err := n.core.Server.Shutdown(ctx); err != nil {
		return errorf(Failed, "", "stop the HTTP server: %w", err)
	}
	<-n.served
	return nil
}
