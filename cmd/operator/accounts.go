package operator

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/httpapi/admin"
)

// accountArgument describes the argument that names an account.
const accountArgument = "one account, by its number or its e-mail address"

func (r *invocation) accounts() *cobra.Command {
	return command.Spec{
		Use:   "accounts",
		Short: "List, show, suspend, restore or limit accounts",
		Long:  "accounts looks after the accounts of a running node. An account is named by its number or by its e-mail address.",
		Example: `  tasard admin accounts list --data ./data
  tasard admin accounts show ana@example.com --data ./data`,
		Subcommands: []*cobra.Command{r.listAccounts(), r.showAccount(), r.suspend(), r.restore(), r.limit()},
	}.Command(r.Process)
}

func (r *invocation) listAccounts() *cobra.Command {
	return r.newCommand(command.Spec{
		Use:   "list",
		Short: "List all accounts",
		Long: `list prints one line for each account, e-mail addresses masked. With --json it prints one JSON object a line, as it comes,
however many there are.`,
		Example: `  tasard admin accounts list --data ./data
  tasard admin accounts list --data ./data --json | jq 'select(.suspended)'`,
		Run: func(ctx context.Context, _ []string) error {
			return list(ctx, r, admin.ListAccounts, nil, printAccounts)
		},
	})
}

func (r *invocation) showAccount() *cobra.Command {
	return r.newCommand(command.Spec{
		Use:   "show ACCOUNT",
		Short: "Show an account: its keys, its limits, what is left of them",
		Long:  "show prints all that is known of an account. Keys are told by their last four characters; nobody has the rest.",
		Example: `  tasard admin accounts show 7 --data ./data
  tasard admin accounts show ana@example.com --data ./data --json`,
		Args: command.ExactArgs(1, accountArgument),
		Run: func(ctx context.Context, args []string) error {
			_, err := call(ctx, r, admin.ShowAccount, admin.NoBody{}, printAccount, args[0])
			return err
		},
	})
}

func (r *invocation) suspend() *cobra.Command {
	reason := ""
	return r.newChangeCommand(command.Spec{
		Use:   "suspend ACCOUNT --reason TEXT",
		Short: "Refuse an account's keys",
		Long: `suspend refuses the keys of an account from the next request on, until it is restored. Before keys are required its
requests count as those of a caller without a key.`,
		Example: "  tasard admin accounts suspend 7 --data ./data --reason 'resells access' --by ana",
		Args:    command.ExactArgs(1, accountArgument),
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.Line(&reason, "TEXT", admin.ReasonMax), "reason", "why, for the log")
		},
		Run: func(ctx context.Context, args []string) error {
			if reason == "" {
				return exit.Errorf(exit.Usage, "tasard admin accounts suspend: no reason; give one for the log with --reason TEXT")
			}
			_, err := call(ctx, r, admin.SuspendAccount, admin.Suspension{Reason: reason, Author: r.author}, printChangedAccount("is suspended"), args[0])
			return err
		},
	})
}

func (r *invocation) restore() *cobra.Command {
	return r.newChangeCommand(command.Spec{
		Use:     "restore ACCOUNT",
		Short:   "End a suspension",
		Long:    "restore takes the keys of a suspended account again, from the next request on. Revoked keys stay revoked.",
		Example: "  tasard admin accounts restore 7 --data ./data --by ana",
		Args:    command.ExactArgs(1, accountArgument),
		Run: func(ctx context.Context, args []string) error {
			_, err := call(ctx, r, admin.RestoreAccount, r.author, printChangedAccount("is in good standing"), args[0])
			return err
		},
	})
}

func (r *invocation) limit() *cobra.Command {
	day, minute := -1, -1
	return r.newChangeCommand(command.Spec{
		Use:   "limit ACCOUNT --day N --minute N",
		Short: "Give an account limits of its own",
		Long: `limit gives an account a number of requests a day, or in any 60 seconds, of its own. What is not named stays; 0 goes back
to the node's. It is in force for the next request.`,
		Example: `  tasard admin accounts limit 7 --data ./data --day 20000
  tasard admin accounts limit 7 --data ./data --day 0 --minute 0`,
		Args: command.ExactArgs(1, accountArgument),
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.OptionalCount(&day, admin.QuotaDayMax), "day", "requests a day; 0 is the node's number")
			flags.Var(setting.OptionalCount(&minute, admin.QuotaMinuteMax), "minute", "requests in any 60 seconds; 0 is the node's number")
		},
		Run: func(ctx context.Context, args []string) error {
			body := admin.LimitChange{Author: r.author}
			if day >= 0 {
				body.Day = &day
			}
			if minute >= 0 {
				body.Minute = &minute
			}
			if body.Day == nil && body.Minute == nil {
				return exit.Errorf(exit.Usage, "tasard admin accounts limit: no limit; give --day N, --minute N or both")
			}
			_, err := call(ctx, r, admin.LimitAccount, body, printChangedAccount("has these limits now"), args[0])
			return err
		},
	})
}

func (r *invocation) keysRequired() *cobra.Command {
	var at time.Time
	var withdraw, show bool
	return r.newChangeCommand(command.Spec{
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
			setting.BoolFlag(flags, &withdraw, "withdraw", "take the announcement back, before its day")
			setting.BoolFlag(flags, &show, "show", "tell what is announced")
		},
		Run: func(ctx context.Context, _ []string) (err error) {
			table := func(out io.Writer, t *admin.KeyPolicy) { printKeyPolicy(out, t, r.Clock()) }
			switch {
			case !exactlyOne(!at.IsZero(), withdraw, show):
				return exit.Errorf(exit.Usage, "tasard admin keys-required: want one of --at INSTANT, --withdraw and --show")
			case show:
				_, err = call(ctx, r, admin.ShowKeyPolicy, admin.NoBody{}, table)
			case withdraw:
				_, err = call(ctx, r, admin.WithdrawAnnouncement, r.author, table)
			default:
				_, err = call(ctx, r, admin.Announce, admin.Announcement{At: at, Author: r.author}, table)
			}
			return err
		},
	})
}

func exactlyOne(choices ...bool) bool {
	count := 0
	for _, chosen := range choices {
		if chosen {
			count++
		}
	}
	return count == 1
}

func (r *invocation) cluster() *cobra.Command {
	return command.Spec{
		Use:         "cluster",
		Short:       "Look at the nodes of a cluster",
		Long:        "cluster tells about the other nodes with which the node is one service (tasard serve --cluster).",
		Example:     "  tasard admin cluster status --data ./data",
		Subcommands: []*cobra.Command{r.clusterStatus()},
	}.Command(r.Process)
}

func (r *invocation) clusterStatus() *cobra.Command {
	return r.newCommand(command.Spec{
		Use:   "status",
		Short: "Tell how all nodes are, as this one sees them",
		Long: `status tells of each node whether it is reachable, how far its log is behind the newest record that anybody has told of, and
through which node writes go. A member whose part is not whole counts for no majority: one that has just started gets well within
seconds, one that does not has damaged files: stop it, move the directory stream in its data directory away, start it; never two
nodes at once. Ask another node as well when two of them do not see each other: each tells what it sees itself.`,
		Example: `  tasard admin cluster status --data ./data
  tasard admin cluster status --data ./data --json`,
		Run: func(ctx context.Context, _ []string) error {
			_, err := call(ctx, r, admin.ShowCluster, admin.NoBody{}, printCluster)
			return err
		},
	})
}
