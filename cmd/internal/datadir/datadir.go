package datadir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

// ExplainLogError explains an error of the log in the directory data. If another process uses the directory, it adds an
// exit code and advice.
func ExplainLogError(data string, err error) error {
	var damageErr *wal.DamageError
	switch {
	case errors.Is(err, wal.ErrLocked):
		return exit.Errorf(exit.Busy, "%s: a running node uses the directory; stop it, or use a copy", data)
	case errors.As(err, &damageErr):
		return damageErr // its message has the file, the offset and a hint
	}
	return err
}

// RequireLog returns an error if data is not a directory with a log.
func RequireLog(data string) error {
	if err := RequireDir(data); err != nil {
		return err
	}
	exists, err := wal.Exists(data)
	switch {
	case err != nil:
		return exit.Errorf(exit.NoInput, "open data directory: %w", err)
	case !exists:
		return exit.Errorf(exit.NoInput, "%s: not a data directory: it has no log", data)
	}
	return nil
}

// RequireDir returns an error if data is not a directory, or belongs to another user.
func RequireDir(data string) error {
	info, err := os.Stat(data)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return exit.Errorf(exit.NoInput, "%s: no such data directory", data)
	case err != nil && !errors.Is(err, fs.ErrPermission):
		return exit.Errorf(exit.NoInput, "open data directory: %w", err)
	case err == nil && !info.IsDir():
		return exit.Errorf(exit.NoInput, "%s: a file; want a data directory", data)
	}
	return node.CheckOwner(data, false)
}

// Open opens the data directory and waits until its log has been replayed. The directory is locked until Data.Close.
func Open(ctx context.Context, p *process.Process, c node.Config, log *slog.Logger) (*node.Data, error) {
	data, err := node.OpenData(ctx, p.CompleteConfig(c, log))
	return data, ExplainLogError(c.Dir, err)
}

// OpenCopy copies the data directory c.Dir to the new directory dir, and opens the copy. It does not change c.Dir. If a
// node is running there, the copy contains everything that the node has acknowledged.
func OpenCopy(ctx context.Context, p *process.Process, c node.Config, log *slog.Logger, dir string) (*node.Data, error) {
	if err := RequireLog(c.Dir); err != nil {
		return nil, err
	}
	if _, err := wal.Verify(c.Dir); err != nil { // otherwise errors would name files of the copy
		return nil, ExplainLogError(c.Dir, err)
	}
	for err, try := fs.ErrNotExist, 0; err != nil; try++ { // repeated if the node removes old files meanwhile
		if !errors.Is(err, fs.ErrNotExist) || try == copyTries {
			return nil, exit.Errorf(exit.CannotWrite, "make a temporary copy: %w", err)
		}
		if err = errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err == nil {
			err = wal.CopyFiles(c.Dir, func(name string, content io.Reader) error {
				out, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the name of a file of the log
				if err == nil {
					_, err = io.Copy(out, content)
					err = errors.Join(err, out.Close())
				}
				return err
			})
		}
	}
	c.Dir = dir
	return Open(ctx, p, c, log)
}

const copyTries = 10

// Options are the values of --data and --admin-socket, which select a running node, and of --json.
type Options struct {
	Data   string
	Socket string
	JSON   bool
}

// Node is a running node.
type Node struct {
	*admin.Client
	startCommand string // command that starts the node, for messages
}

// New returns the node behind a socket. start is the command that starts this node, for messages.
func New(socket, start string) *Node { return &Node{admin.NewClient(socket), start} }

// Call calls an operation of the node. Errors have exit codes and advice for the operator (see Explain).
func Call[Body, Answer any](ctx context.Context, n *Node, op admin.Operation[Body, Answer], body Body, values ...string) (Answer, error) {
	answer, err := op.Call(ctx, n.Client, body, values...)
	return answer, n.Explain(err)
}

// Explain adds an exit code to the error of a call, and advice for the operator to the message.
func (n *Node) Explain(err error) error {
	var unreachable *admin.UnreachableError
	var response *admin.Error
	var protocolErr *admin.ProtocolError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &response):
		return explainError(response)
	case errors.As(err, &protocolErr):
		return exit.Errorf(exit.IOError, "%w", protocolErr)
	case !errors.As(err, &unreachable):
		return err
	case NotRunning(unreachable):
		return exit.Errorf(exit.Unavailable, "no node listens on %s; start it (%s), or name its socket with --admin-socket", n.Socket, n.startCommand)
	case errors.Is(err, fs.ErrPermission):
		return exit.Errorf(exit.BadData, "%s: permission denied; run this as the user of the node, or as root", n.Socket)
	case errors.Is(err, context.Canceled):
		return exit.Errorf(exit.Interrupted, "interrupted while waiting for the node")
	}
	return exit.Errorf(exit.Unavailable, "%w", unreachable)
}

// NotRunning reports whether err means a missing socket, or one without a listening process. EINVAL means that the path
// is too long for a socket, so no node can listen on it.
func NotRunning(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EINVAL)
}

// ErrStopping means that the node is stopping, or has stopped before it answered.
var ErrStopping = errors.New("the node is stopping")

// explainError adds an exit code to a node's error response.
func explainError(r *admin.Error) error {
	code := exit.FailStop
	switch r.Code {
	case engine.CodeInvalidParameters, engine.CodeNotFound:
		code = exit.Usage
	case engine.CodeDataUnavailable, engine.CodeOverloaded, engine.CodeReadOnly, engine.CodeNoMajority:
		code = exit.Unavailable
	case admin.CodeNotConfigured:
		code = exit.BadData
	case admin.CodeStopping:
		return exit.Errorf(exit.Busy, "%w; try again when it has ended", ErrStopping)
	}
	return exit.Errorf(code, "%w", r)
}

// SocketPath returns socket. If socket is "", it returns the default path of the management socket in the directory
// data.
func SocketPath(socket, data string) string {
	return cmp.Or(socket, filepath.Join(data, admin.SocketName))
}

// Node returns the node selected by the flags. It does not check that the node is running.
func (o *Options) Node() (*Node, error) {
	switch {
	case o.Socket != "":
		return New(o.Socket, "tasard serve"+o.NodeFlag()), nil
	case o.Data == "":
		return nil, exit.Errorf(exit.Usage, "no node; name its data directory with --data DIR, or its socket with --admin-socket PATH")
	}
	if err := RequireDir(o.Data); err != nil {
		return nil, err
	}
	return New(SocketPath("", o.Data), "tasard serve"+o.NodeFlag()), nil
}

// Running returns the running node selected by the flags. It returns nil if they select none, or only a data directory
// without a node.
func (o *Options) Running(ctx context.Context) *Node {
	socket := o.Socket
	if socket == "" && o.Data != "" {
		socket = SocketPath("", o.Data)
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if NotRunning(err) {
			return nil
		}
		if err == nil {
			_ = conn.Close() // nothing was sent
		}
	}
	if socket == "" {
		return nil
	}
	return New(socket, "tasard serve"+o.NodeFlag())
}

// NodeFlag returns the flag that selects the node, with its value, for commands in messages.
func (o *Options) NodeFlag() string {
	if o.Socket != "" {
		return fmt.Sprintf(" --admin-socket %s", o.Socket)
	}
	return fmt.Sprintf(" --data %s", o.Data)
}
