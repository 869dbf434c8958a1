package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// SocketName is the file name of the management socket in a node's data directory.
const SocketName = "admin.sock"

const (
	socketMode         = 0o600
	socketPathBytesMax = 107 // limit of the operating system
)

// Errors of Listen, besides those of the operating system.
var (
	ErrSocketPath = errors.New("path too long for a socket")
	ErrInUse      = errors.New("another node uses it")
)

// Listen creates the management socket and listens on it. If the socket exists, Listen replaces it, or returns ErrInUse
// if another process listens on it.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := CheckSocket(path); err != nil {
		return nil, err
	}
	listener, err := bind(ctx, path)
	if errors.Is(err, syscall.EADDRINUSE) {
		if err := removeStale(ctx, path); err != nil {
			return nil, err
		}
		listener, err = bind(ctx, path)
	}
	if err != nil {
		var cause syscall.Errno
		if errors.As(err, &cause) {
			err = cause
		}
		return nil, fmt.Errorf("create the management socket %s: %w", path, err)
	}
	return listener, nil
}

// CheckSocket returns ErrSocketPath if the path is too long for a socket.
func CheckSocket(path string) error {
	if len(path) <= socketPathBytesMax {
		return nil
	}
	return fmt.Errorf("%w: %s has %d bytes; want at most %d", ErrSocketPath, path, len(path), socketPathBytesMax)
}

// bind creates the socket. It sets socketMode before the socket has a path, so that no other user can ever open it.
func bind(ctx context.Context, path string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(fd uintptr) {
			_ = syscall.Fchmod(int(fd), socketMode) // on systems without support, Chmod below sets the mode
		})
	}}
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// removeStale removes a socket on which no process listens. If a process listens, removeStale returns ErrInUse.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the management socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s: a file is there, and it is not a socket", path)
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was sent
		return fmt.Errorf("%s: %w", path, ErrInUse)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: can't find out whether %w: %w", path, ErrInUse, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of an ended node: %w", err)
	}
	return nil
}

// peerKey is the context key of the user at the other end of the socket; see withPeerName.
type peerKey struct{}

func withPeerName(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerName(conn))
}

// authorName returns the author of a change: the name in the request and the operating-system user, as in "ana (root)",
// or only the user.
func authorName(ctx context.Context, by Author) string {
	peer, _ := ctx.Value(peerKey{}).(string)
	if by.Name == "" {
		return peer
	}
	return fmt.Sprintf("%s (%s)", by.Name, peer)
}
