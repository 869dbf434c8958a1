package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// adminOptions say which node a command speaks to, and how it answers.
type adminOptions struct {
	data   string
	socket string
	by     string
	json   bool
}

// addBy declares --by.
func addBy(cmd *cobra.Command, o *adminOptions) {
	cmd.Flags().Var(lineValue(&o.by, "NAME", admin.ByMax), "by", "who does it, for the log; the user of this command is noted in any case")
}

// remote is a running node that a command speaks to.
type remote struct {
	*admin.Client
	start string // the command that starts such a node, for messages
}

// ask has the node carry out an operation.
func ask[Body, Answer any](ctx context.Context, n *remote, o admin.Operation[Body, Answer], body Body, values ...string) (Answer, error) {
	answer, err := o.Ask(ctx, n.Client, body, values...)
	return answer, n.told(err)
}

// told gives an error of asking the node its exit code, and says what to do.
func (n *remote) told(err error) error {
	var unreached *admin.UnreachedError
	var refusal *admin.Refusal
	var strange *admin.StrangeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		return refusedBy(refusal)
	case errors.As(err, &strange):
		return fail(exitBroken, "%w", strange)
	case !errors.As(err, &unreached):
		return err
	case noNode(unreached):
		return fail(exitUnavailable, "no node is running behind %s; start it (%s), or name its socket with --admin-socket", n.Socket, n.start)
	case errors.Is(err, fs.ErrPermission):
		return fail(exitUnavailable, "%s: not allowed; be the user that runs the node, or root", n.Socket)
	case errors.Is(err, context.Canceled):
		return fail(exitInterrupted, "interrupted while the node was asked")
	}
	return fail(exitUnavailable, "%w", unreached)
}

// noNode tells that there is no socket, or that nobody listens there.
func noNode(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// errNodeLeaves says that the node is on its way down, or was gone before it answered.
var errNodeLeaves = errors.New("the node is stopping")

// refusedBy gives a refusal its exit code.
func refusedBy(r *admin.Refusal) error {
	code := exitFailStop
	switch r.Code {
	case engine.CodeInvalidParameters, engine.CodeNotFound:
		code = exitUsage
	case engine.CodeDataUnavailable, engine.CodeOverloaded:
		code = exitUnavailable
	case engine.CodeReadOnly:
		code = exitCannotWrite
	case admin.CodeUnprepared:
		code = exitBadData
	case admin.CodeLeaving:
		return fail(exitBusy, "%w; ask again when it is gone", errNodeLeaves)
	}
	return fail(code, "%w", r)
}

// socketOf is where the operator reaches the node of a data directory.
func socketOf(socket, data string) string {
	return cmp.Or(socket, filepath.Join(data, admin.SocketName))
}

// node is the one that the flags name.
func (o *adminOptions) node(command string) (*remote, error) {
	switch {
	case o.socket != "":
		return &remote{admin.NewClient(o.socket), "tasard serve --admin-socket " + o.socket}, nil
	case o.data == "":
		return nil, fail(exitUsage, "%s: no node; name its data directory with --data DIR, or its socket with --admin-socket PATH", command)
	}
	if err := needDirectory(o.data); err != nil {
		return nil, err
	}
	return &remote{admin.NewClient(socketOf("", o.data)), "tasard serve --data " + o.data}, nil
}

// list asks for a list and prints it as table writes it, or passes it on: one JSON object a line, as it comes.
func list[T any](ctx context.Context, p *process, o *adminOptions, n *remote, of admin.Listing[T], query url.Values, table func(io.Writer, []T) error) (err error) {
	items, err := of.Ask(ctx, n.Client, query)
	if err != nil {
		return n.told(err)
	}
	defer func() { err = errors.Join(err, items.Close()) }()
	if o.json {
		if _, err := io.Copy(p.stdout, items); err != nil {
			return fail(exitBroken, "pass the list on: %w", err)
		}
		return nil
	}
	var all []T
	for {
		switch one, err := items.Next(); {
		case errors.Is(err, io.EOF):
			return table(p.stdout, all)
		case err != nil:
			return fail(exitBroken, "read the list: %w", err)
		default:
			all = append(all, one)
		}
	}
}

// running is the node that the options name, nil when they name none, or a data directory on which none runs.
func (o *adminOptions) running(ctx context.Context) *remote {
	socket := o.socket
	if socket == "" && o.data != "" {
		socket = socketOf("", o.data)
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		if err == nil {
			_ = conn.Close() // nothing was said
		}
	}
	if socket == "" {
		return nil
	}
	return &remote{admin.NewClient(socket), "tasard serve" + o.place()}
}

// place is the flag that names the same node again.
func (o *adminOptions) place() string {
	if o.socket != "" {
		return fmt.Sprintf(" --admin-socket %s", o.socket)
	}
	return fmt.Sprintf(" --data %s", o.data)
}
