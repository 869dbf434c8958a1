package operator

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// invocation holds the flags of one command, and the node to call.
type invocation struct {
	*process.Process
	datadir.Options
	author admin.Author
	node   *datadir.Node
}

// New returns the command tasard admin.
func New(p *process.Process) *cobra.Command {
	r := &invocation{Process: p}
	return command.Spec{
		Use:   "admin",
		Short: "Manage a running node: accounts, quarantine, manual rates, required keys, cluster",
		Long: `admin calls a running node through the Unix socket in its data directory, or at --admin-socket. Only the user of the
node and root can open it. Every change is logged with its time and author: the operating system's user, after the
name that --by gives.

Answers are tables, or with --json JSON.`,
		Example: `  tasard admin accounts list --data ./data
  tasard admin quarantine list --data ./data
  tasard admin rates set vega-real USD --buy 58.10 --sell 59.30 --data ./data --by ana
  tasard admin keys-required --data ./data --at 2027-03-01T00:00:00-04:00 --by ana`,
		Subcommands: []*cobra.Command{r.accounts(), r.quarantine(), r.rates(), r.keysRequired(), r.cluster()},
	}.Command(p)
}

// newCommand returns a command that calls a running node. It adds --json and the flags that select the node (--data and
// --admin-socket).
func (r *invocation) newCommand(spec command.Spec) *cobra.Command {
	run, addFlags := spec.Run, spec.Flags
	spec.DataOptional = true // without --data, --admin-socket selects the node
	o := &command.Serve{}
	spec.Settings = func(flags *pflag.FlagSet) { command.Add(flags, o, "data", "admin-socket") }
	spec.Flags = func(flags *pflag.FlagSet) {
		command.BoolFlag(flags, &r.JSON, "json", "print JSON")
		if addFlags != nil {
			addFlags(flags)
		}
	}
	spec.Run = func(ctx context.Context, args []string) (err error) {
		r.Data, r.Socket = o.Config.Dir, o.Config.Admin.Socket
		if r.node, err = r.Node(); err != nil {
			return err
		}
		return run(ctx, args)
	}
	return spec.Command(r.Process)
}

// newChangeCommand returns a command that changes data of a node. It adds the flag --by: the operator's name for the
// log.
func (r *invocation) newChangeCommand(spec command.Spec) *cobra.Command {
	addFlags := spec.Flags
	spec.Flags = func(flags *pflag.FlagSet) {
		flags.Var(command.Line(&r.author.Name, "NAME", admin.ByMax), "by", "your name for the log, which also has the operating system's user")
		if addFlags != nil {
			addFlags(flags)
		}
	}
	return r.newCommand(spec)
}

// newOperation returns a command whose arguments name the target and whose body is only the author.
func newOperation[Answer any](r *invocation, spec command.Spec, op admin.Operation[admin.Author, Answer], table func(io.Writer, *Answer)) *cobra.Command {
	spec.Run = func(ctx context.Context, args []string) error {
		_, err := call(ctx, r, op, r.author, table, args...)
		return err
	}
	return r.newChangeCommand(spec)
}

// list calls an operation that returns a list. It prints the list as a table, or with --json one JSON object per line.
func list[T any](ctx context.Context, r *invocation, op admin.Operation[admin.NoBody, []T], table func(io.Writer, []T), values ...string) error {
	items, err := datadir.Call(ctx, r.node, op, admin.NoBody{}, values...)
	if err == nil && !r.JSON {
		table(r.Stdout, items)
		return nil
	}
	for i := 0; i < len(items) && err == nil; i++ {
		err = terminal.WriteAnswer(r.Stdout, true, items[i], nil)
	}
	return err
}

// call calls an operation and prints the result, as a table or as JSON.
func call[Body, Answer any](
	ctx context.Context, r *invocation, op admin.Operation[Body, Answer], body Body, table func(io.Writer, *Answer), values ...string,
) (answer Answer, err error) {
	if answer, err = datadir.Call(ctx, r.node, op, body, values...); err != nil {
		return answer, err
	}
	return answer, terminal.WriteAnswer(r.Stdout, r.JSON, answer, func() { table(r.Stdout, &answer) })
}

// pingTimeout is the maximum response time of a node. A busy node has taken 0.4 s.
const pingTimeout = 5 * time.Second

// NewPing returns the command tasard ping.
func NewPing(p *process.Process) *cobra.Command {
	r, live := &invocation{Process: p}, false
	return r.newCommand(command.Spec{
		Use:   "ping",
		Short: "Check whether a running node can answer",
		Long: `ping asks a running node, at its management socket, whether it answers data requests. It prints the status and every
condition that is not ok, and exits with 0 when the node answers data requests, and with 69 when it does not or no
node runs. With --live any answer is a success, as with GET /livez, for a supervisor that restarts a hanging node. It
is meant for health checks of containers; elsewhere use GET /readyz.`,
		Example: `  tasard ping --data ./data
  TASARD_CONFIG=/etc/tasard/tasard.toml tasard ping --live`,
		Flags: func(flags *pflag.FlagSet) {
			command.BoolFlag(flags, &live, "live", "succeed with any answer of the node")
		},
		Run: func(ctx context.Context, _ []string) error { return r.ping(ctx, live) },
	})
}

// ping prints whether the node is ready. It returns an error if the node does not respond. If live is false, a node
// that cannot answer data requests is an error too.
func (r *invocation) ping(ctx context.Context, live bool) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	readiness, err := r.node.Readiness(ctx)
	if err != nil {
		return r.node.Explain(err)
	}
	if err := terminal.WriteAnswer(r.Stdout, r.JSON, readiness, func() { terminal.Fprintf(r.Stdout, "%s\n", readinessSummary(&readiness)) }); err != nil {
		return err
	}
	if readiness.Status == engine.Unavailable && !live {
		return exit.Errorf(exit.Unavailable, "the node at %s answers no data requests now", r.node.Socket)
	}
	return nil
}
