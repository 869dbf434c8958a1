package operator

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/remote"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
)

func New(p *process.Process) *cobra.Command {
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
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAdminAccounts(p), newAdminQuarantine(p), newAdminRates(p), newAdminRequired(p), newAdminCluster(p))
	return cmd
}

func newAdminRequired(p *process.Process) *cobra.Command {
	o, at := &remote.Options{}, time.Time{}
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
		Args: command.NoArguments,
	}
	adminCommand(p, cmd, o, func(ctx context.Context, node *remote.Node, _ []string) error {
		var answer admin.Transition
		var err error
		switch {
		case !oneOf(!at.IsZero(), withdraw, show):
			return exit.Fail(exit.Usage, "%s: want one of --at INSTANT, --withdraw and --show", cmd.CommandPath())
		case show:
			answer, err = remote.Ask(ctx, node, admin.ShowTransition, admin.None{})
		case withdraw:
			answer, err = remote.Ask(ctx, node, admin.WithdrawAnnouncement, admin.By{By: o.By})
		default:
			answer, err = remote.Ask(ctx, node, admin.Announce, admin.Announcement{At: at, By: o.By})
		}
		if err != nil {
			return err
		}
		return terminal.Present(p.Stdout, o.JSON, answer, func() { printTransition(p.Stdout, answer, p.Clock()) })
	})
	cmd.Flags().Var(setting.Instant(&at), "at", "announce this `INSTANT`, RFC 3339, at least 14 days ahead")
	setting.PlainSwitch(cmd.Flags(), &withdraw, "withdraw", "take the announcement back, before its day")
	setting.PlainSwitch(cmd.Flags(), &show, "show", "tell what is announced")
	remote.AddBy(cmd, o)
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
	return exit.Fail(exit.Usage, "%s: want one account, by its number or its e-mail address, found %d arguments", cmd.CommandPath(), len(args))
}

// adminCommand completes a command that speaks to a running node.
func adminCommand(p *process.Process, cmd *cobra.Command, o *remote.Options, work func(ctx context.Context, node *remote.Node, args []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := setting.Settle(cmd, p.Environ); err != nil {
			return err
		}
		node, err := o.Node(cmd.CommandPath())
		if err != nil {
			return err
		}
		return work(cmd.Context(), node, args)
	}
	setting.AddData(cmd, &o.Data)
	setting.AddAdminSocket(cmd, &o.Socket)
	setting.Mark(cmd.Flags())
	setting.PlainSwitch(cmd.Flags(), &o.JSON, "json", "answer as JSON")
	return cmd
}
