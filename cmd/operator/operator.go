package operator

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/remote"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
)

// request is one call of a command: the node that it asks, what the flags of all commands say, and where the answer goes.
type request struct {
	*process.Process
	remote.Options
	by   string
	node *remote.Node
}

// New is tasard admin.
func New(p *process.Process) *cobra.Command {
	r := &request{Process: p}
	return command.Row{
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
		Below: []*cobra.Command{r.accounts(), r.quarantine(), r.rates(), r.keysRequired(), r.cluster()},
	}.Command(p)
}

// row completes a command that speaks to a running node, which is known when its work begins.
func (r *request) row(row command.Row) *cobra.Command {
	work, flags := row.Run, row.Flags
	var cmd *cobra.Command
	row.Alone = true // its socket will do
	row.Settings = func(flags *pflag.FlagSet) {
		setting.AddData(flags, &r.Data)
		setting.AddAdminSocket(flags, &r.Socket)
	}
	row.Flags = func(all *pflag.FlagSet) {
		setting.PlainSwitch(all, &r.JSON, "json", "answer as JSON")
		if flags != nil {
			flags(all)
		}
	}
	row.Run = func(ctx context.Context, args []string) (err error) {
		if r.node, err = r.Node(cmd.CommandPath()); err != nil {
			return err
		}
		return work(ctx, args)
	}
	cmd = row.Command(r.Process)
	return cmd
}

// change is row for a command that changes something: --by says who does it.
func (r *request) change(row command.Row) *cobra.Command {
	flags := row.Flags
	row.Flags = func(all *pflag.FlagSet) {
		all.Var(setting.Line(&r.by, "NAME", admin.ByMax), "by", "who does it, for the log; the user of this command is noted in any case")
		if flags != nil {
			flags(all)
		}
	}
	return r.row(row)
}

// ask has the node carry out an operation and prints its answer: as JSON, or as table writes it.
func ask[Body, Answer any](
	ctx context.Context, r *request, of admin.Operation[Body, Answer], body Body, table func(io.Writer, *Answer), values ...string,
) (answer Answer, err error) {
	if answer, err = remote.Ask(ctx, r.node, of, body, values...); err != nil {
		return answer, err
	}
	return answer, terminal.Present(r.Stdout, r.JSON, answer, func() { table(r.Stdout, &answer) })
}

func (r *request) keysRequired() *cobra.Command {
	var at time.Time
	var withdraw, show bool
	return r.change(command.Row{
		Use:   "keys-required --at INSTANT | --withdraw | --show",
		Short: "Announce the day on which keys become mandatory",
		Long: `keys-required announces the end of anonymous access for an instant at least 14 days ahead. Until then every answer
carries Deprecation, Sunset and Link; from that instant on a request without a valid key is answered 401, without a
restart. Before its day the announcement can be withdrawn, or made again for another instant.`,
		Example: `  tasard admin keys-required --data ./data --at 2027-03-01T00:00:00-04:00
  tasard admin keys-required --data ./data --show
  tasard admin keys-required --data ./data --withdraw --by ana`,
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.Instant(&at), "at", "announce this `INSTANT`, RFC 3339, at least 14 days ahead")
			setting.PlainSwitch(flags, &withdraw, "withdraw", "take the announcement back, before its day")
			setting.PlainSwitch(flags, &show, "show", "tell what is announced")
		},
		Run: func(ctx context.Context, _ []string) (err error) {
			table := func(out io.Writer, t *admin.Transition) { printTransition(out, t, r.Clock()) }
			switch {
			case !oneOf(!at.IsZero(), withdraw, show):
				return exit.Fail(exit.Usage, "tasard admin keys-required: want one of --at INSTANT, --withdraw and --show")
			case show:
				_, err = ask(ctx, r, admin.ShowTransition, admin.None{}, table)
			case withdraw:
				_, err = ask(ctx, r, admin.WithdrawAnnouncement, admin.By{By: r.by}, table)
			default:
				_, err = ask(ctx, r, admin.Announce, admin.Announcement{At: at, By: r.by}, table)
			}
			return err
		},
	})
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
