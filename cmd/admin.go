package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"syscall"
	"time"

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

func (p *process) newAdmin() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "admin",
		Short: "Look after a running node: accounts, held values, manual rates, required keys, its cluster",
		Long: `admin speaks to a running node through the Unix socket in its data directory, or at --admin-socket. Only the user that
runs the node, and root, can open it. Every change is written down with the instant and the name of who made it: the
user at the other end of the socket, as the operating system knows it, behind the name that --by gives.

Tables are for people; --json is for programs.`,
		Example: `  tasard admin accounts list --data ./data
  tasard admin quarantine list --data ./data
  tasard admin rates set vega-real USD --buy 58.10 --sell 59.30 --data ./data --by ana
  tasard admin keys-required --data ./data --at 2027-03-01T00:00:00-04:00 --by ana`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.newAdminAccounts(), p.newAdminQuarantine(), p.newAdminRates(), p.newAdminRequired(), p.newAdminCluster())
	return cmd
}

// adminCommand completes a command that speaks to a running node.
func (p *process) adminCommand(cmd *cobra.Command, o *adminOptions, work func(ctx context.Context, node *remote, args []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := settle(cmd, p.environ); err != nil {
			return err
		}
		node, err := o.node(cmd.CommandPath())
		if err != nil {
			return err
		}
		return work(cmd.Context(), node, args)
	}
	addData(cmd, &o.data)
	addAdminSocket(cmd, &o.socket)
	markSettings(cmd.Flags())
	plainSwitch(cmd.Flags(), &o.json, "json", "answer as JSON")
	return cmd
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

// print gives an answer as one line of JSON, or as table writes it.
func (p *process) print(o *adminOptions, answer any, table func()) error {
	if !o.json {
		table()
		return nil
	}
	if err := json.NewEncoder(p.stdout).Encode(answer); err != nil {
		return fail(exitBroken, "write the answer: %w", err)
	}
	return nil
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

func (p *process) newAdminRequired() *cobra.Command {
	o, at := &adminOptions{}, time.Time{}
	var withdraw, show bool
	cmd := &cobra.Command{
		Use:   "keys-required --at INSTANT | --withdraw | --show",
		Short: "Announce the day on which keys become mandatory",
		Long: `keys-required announces the end of anonymous access for an instant at least 14 days ahead. Until then every answer
carries Deprecation, Sunset and Link; from that instant on a request without a valid key is answered 401, without a
restart. Before its day the announcement can be withdrawn, or made again for another instant.`,
		Example: `  tasard admin keys-required --data ./data --at 2027-03-01T00:00:00-04:00
  tasard admin keys-required --data ./data --show
  tasard admin keys-required --data ./data --withdraw --by ana`,
		Args: noArguments,
	}
	p.adminCommand(cmd, o, func(ctx context.Context, node *remote, _ []string) error {
		var answer admin.Transition
		var err error
		switch {
		case !oneOf(!at.IsZero(), withdraw, show):
			return fail(exitUsage, "%s: want one of --at INSTANT, --withdraw and --show", cmd.CommandPath())
		case show:
			answer, err = ask(ctx, node, admin.ShowTransition, admin.None{})
		case withdraw:
			answer, err = ask(ctx, node, admin.WithdrawAnnouncement, admin.By{By: o.by})
		default:
			answer, err = ask(ctx, node, admin.Announce, admin.Announcement{At: at, By: o.by})
		}
		if err != nil {
			return err
		}
		return p.print(o, answer, func() { printTransition(p.stdout, answer, p.clock()) })
	})
	cmd.Flags().Var(instantValue(&at), "at", "announce this `INSTANT`, RFC 3339, at least 14 days ahead")
	plainSwitch(cmd.Flags(), &withdraw, "withdraw", "take the announcement back, before its day")
	plainSwitch(cmd.Flags(), &show, "show", "tell what is announced")
	addBy(cmd, o)
	return cmd
}

func oneOf(choices ...bool) bool {
	count := 0
	for _, chosen := range choices {
		if chosen {
			count++
		}
	}
	return count == 1
}

// oneAccount wants the account that a command is about.
func oneAccount(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fail(exitUsage, "%s: want one account, by its number or its e-mail address, found %d arguments", cmd.CommandPath(), len(args))
}
