package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

const (
	adminSocketName    = "admin.sock"
	adminSocketMode    = 0o600
	adminHeaderMax     = 8 << 10 // bytes
	adminReadTimeout   = 5 * time.Second
	adminWriteTimeout  = 5 * time.Minute // for a list of a million accounts, read slowly
	adminIdleTimeout   = 30 * time.Second
	socketPathBytesMax = 107 // the system's own limit
)

// addAdminSocket declares --admin-socket.
func addAdminSocket(cmd *cobra.Command, socket *string) {
	cmd.Flags().Var(pathValue(socket, "PATH"), "admin-socket", "the socket of tasard admin; by default "+adminSocketName+" in the data directory")
}

// managed is what the management listener works on.
type managed interface {
	engine.Operator
	engine.Intake
	Transition() engine.Transition
	Rates(engine.RatesQuery) (*engine.Page[*engine.Rate], error)
	Held(currency string) ([]engine.Held, error)
	Order(currency string, c engine.Command) (engine.Receipt, error)
	Backup(w io.Writer, o wal.BackupOptions) (wal.BackupInfo, error)
}

// management lets the operator at a running node, over a Unix socket: HTTP with JSON, for tasard admin alone. Who may open
// the socket may do everything; its mode lets in the node's own user, and root.
type management struct {
	node      managed
	catalogue *engine.Catalogue
	sources   *collection
	health    watched          // nil: nobody can tell
	front     measured         // the same
	system    stocked          // the same
	cluster   standing         // nil: the node is alone
	allowance engine.Allowance // of accounts without their own
	mail      string           // how letters leave the node
	clock     func() time.Time
	log       *slog.Logger
	copies    copies

	certificates []shownCertificate // that the node uses

	server *http.Server
	ended  chan struct{} // closed when the server has ended
}

// start answers what the listener accepts, at once: errors until the node is ready. stop waits for its goroutine.
func (m *management) start(listener net.Listener) {
	m.ended = make(chan struct{})
	m.server = &http.Server{
		Handler: m.routes(), ConnContext: withPeer, ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelDebug),
		MaxHeaderBytes: adminHeaderMax, ReadTimeout: adminReadTimeout, WriteTimeout: adminWriteTimeout, IdleTimeout: adminIdleTimeout,
	}
	m.copies.leaving = make(chan struct{})
	m.server.RegisterOnShutdown(sync.OnceFunc(func() { close(m.copies.leaving) }))
	go func() {
		defer close(m.ended)
		if err := m.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			m.log.Error("tasard admin is not answered any more: the management listener ended", "cause", err.Error())
		}
	}()
}

// stop lets requests in flight finish, removes the socket and waits for the server's end.
func (m *management) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	err := m.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fail(exitFailStop, "stop the management listener: %w", err), m.server.Close())
	}
	<-m.ended
	return err
}

// listenAdmin makes the socket. One that a dead process left behind is replaced, one that is answered is refused.
func listenAdmin(ctx context.Context, path string) (net.Listener, error) {
	if err := checkSocketPath(path); err != nil {
		return nil, err
	}
	listener, err := bindSocket(ctx, path)
	if errors.Is(err, syscall.EADDRINUSE) {
		if err := removeStale(ctx, path); err != nil {
			return nil, err
		}
		listener, err = bindSocket(ctx, path)
	}
	if err != nil {
		return nil, fail(exitCannotWrite, "make the management socket: %w; choose another place with --admin-socket", err)
	}
	return listener, nil
}

// checkSocketPath refuses what no socket can be called.
func checkSocketPath(path string) error {
	if len(path) <= socketPathBytesMax {
		return nil
	}
	return fail(exitBadData, "%s: %d bytes, the path of a socket has at most %d; choose another with --admin-socket",
		path, len(path), socketPathBytesMax)
}

// bindSocket gives the socket its mode before it has a name, so that at no moment anybody else can open it.
func bindSocket(ctx context.Context, path string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(fd uintptr) {
			_ = syscall.Fchmod(int(fd), adminSocketMode) // not every system can; Chmod below is for those
		})
	}}
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, adminSocketMode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// removeStale removes a socket that nobody answers.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail(exitCannotWrite, "make the management socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fail(exitCannotWrite, "%s: there is a file that is no socket; choose another place with --admin-socket", path)
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was said
		return fail(exitBusy, "%s: another node answers there; stop it, or choose another place with --admin-socket", path)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fail(exitBusy, "%s: it can't be told whether another node answers there (%w); choose another place with --admin-socket", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(exitCannotWrite, "remove the socket of a node that is gone: %w", err)
	}
	return nil
}

// peerKey marks the operating system's user in the context of a connection.
type peerKey struct{}

// withPeer notes who is at the other end, as the operating system knows it.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerName(conn))
}

// who is the name under which a change goes into the log: the operating system's user, behind the name that was given.
func who(ctx context.Context, by string) string {
	peer, _ := ctx.Value(peerKey{}).(string)
	if by == "" {
		return peer
	}
	return fmt.Sprintf("%s (%s)", by, peer)
}
