package operator

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

// accountArgument describes the argument that names an account, for errors.
const accountArgument = "one account, by its number or its e-mail address"

func (r *invocation) accounts() *cobra.Command {
	return command.Spec{
		Use:   "accounts",
		Short: "List, show, suspend, restore, limit or unlock accounts",
		Long:  "accounts manages the accounts of a running node. An account is named by its number or its e-mail address.",
		Example: `  tasard admin accounts list --data ./data
  tasard admin accounts show ana@example.com --data ./data`,
		Subcommands: []*cobra.Command{r.listAccounts(), r.showAccount(), r.suspend(), r.restore(), r.limit(), r.unlock()},
	}.Command(r.Process)
}

func (r *invocation) listAccounts() *cobra.Command {
	return r.newCommand(command.Spec{
		Use:   "list",
		Short: "List all accounts",
		Long:  "list prints one line for each account, with masked e-mail addresses. With --json it prints one JSON object a line.",
		Example: `  tasard admin accounts list --data ./data
  tasard admin accounts list --data ./data --json | jq 'select(.suspended)'`,
		Run: func(ctx context.Context, _ []string) error {
			return list(ctx, r, admin.ListAccounts, printAccounts)
		},
	})
}

func (r *invocation) showAccount() *cobra.Command {
	return r.newCommand(command.Spec{
		Use:   "show ACCOUNT",
		Short: "Show an account with its keys and limits",
		Long:  "show prints everything known about an account. Of a key it shows the last four characters; the rest is not stored.",
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
		Short: "Suspend an account",
		Long: `suspend refuses the keys of an account from the next request on, until it is restored. While keys are optional its
requests count as anonymous ones.`,
		Example: `  tasard admin accounts suspend 7 --data ./data --reason 'resells access' --by ana
  tasard admin accounts suspend ana@example.com --data ./data --reason 'asked for it'`,
		Args: command.ExactArgs(1, accountArgument),
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(command.Line(&reason, "TEXT", admin.ReasonMax), "reason", "reason for the log")
		},
		Run: func(ctx context.Context, args []string) error {
			if reason == "" {
				return exit.Errorf(exit.Usage, "no reason; give one for the log with --reason TEXT")
			}
			_, err := call(ctx, r, admin.SuspendAccount, admin.Suspension{Reason: reason, Author: r.author}, printChangedAccount("is suspended"), args[0])
			return err
		},
	})
}

func (r *invocation) restore() *cobra.Command {
	return newOperation(r, command.Spec{
		Use:   "restore ACCOUNT",
		Short: "End a suspension",
		Long:  "restore accepts the keys of a suspended account again, from the next request on. Revoked keys stay revoked.",
		Example: `  tasard admin accounts restore 7 --data ./data --by ana
  tasard admin accounts restore ana@example.com --data ./data --json`,
		Args: command.ExactArgs(1, accountArgument),
	}, admin.RestoreAccount, printChangedAccount("is in good standing"))
}

func (r *invocation) limit() *cobra.Command {
	day, minute := -1, -1
	return r.newChangeCommand(command.Spec{
		Use:   "limit ACCOUNT --day N --minute N",
		Short: "Give an account its own limits",
		Long: `limit sets the number of requests of an account a day, or in any 60 seconds. A limit without a flag stays; 0 restores
the node's. It takes effect with the next request.`,
		Example: `  tasard admin accounts limit 7 --data ./data --day 20000
  tasard admin accounts limit 7 --data ./data --day 0 --minute 0`,
		Args: command.ExactArgs(1, accountArgument),
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(command.Count(&day, 0, admin.QuotaDayMax), "day", "requests a day; 0 is the node's number")
			flags.Var(command.Count(&minute, 0, admin.QuotaMinuteMax), "minute", "requests in any 60 seconds; 0 is the node's number")
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
				return exit.Errorf(exit.Usage, "no limit; give --day N, --minute N or both")
			}
			_, err := call(ctx, r, admin.LimitAccount, body, printChangedAccount("has these limits now"), args[0])
			return err
		},
	})
}

func (r *invocation) unlock() *cobra.Command {
	return newOperation(r, command.Spec{
		Use:   "unlock ACCOUNT",
		Short: "Let an owner log in again after wrong codes of others",
		Long: `unlock forgets today's wrong login codes and mails of an e-mail address, and the wrong codes of all addresses in the
last hour. The owner can ask for a code at once. The address need not have an account yet.`,
		Example: `  tasard admin accounts unlock ana@example.com --data ./data --by luis
  tasard admin accounts unlock 7 --data ./data`,
		Args: command.ExactArgs(1, accountArgument),
	}, admin.UnlockLogin, func(out io.Writer, unlocked *admin.Unlocked) {
		terminal.Say(out, "%s can ask for a login code again.\n", unlocked.Email)
	})
}

func (r *invocation) keysRequired() *cobra.Command {
	var requiredAt time.Time
	var withdraw, show bool
	return r.newChangeCommand(command.Spec{
		Use:   "keys-required --at INSTANT | --withdraw | --show",
		Short: "Announce the instant from which keys are required",
		Long: `keys-required announces the end of anonymous access, at least 14 days ahead. Until then every answer carries
Deprecation, Sunset and Link. From that instant on a request without a valid key is answered 401, without a restart.
Before it the announcement can be withdrawn, or replaced.`,
		Example: `  tasard admin keys-required --data ./data --at 2027-03-01T00:00:00-04:00
  tasard admin keys-required --data ./data --show
  tasard admin keys-required --data ./data --withdraw --by ana`,
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(command.Instant(&requiredAt), "at", "announce this `INSTANT`, RFC 3339, at least 14 days ahead")
			command.BoolFlag(flags, &withdraw, "withdraw", "withdraw the announcement")
			command.BoolFlag(flags, &show, "show", "show the announcement")
		},
		Run: func(ctx context.Context, _ []string) (err error) {
			table := func(out io.Writer, t *admin.KeyPolicy) { printKeyPolicy(out, t, r.Clock()) }
			given := map[bool]int{!requiredAt.IsZero(): 1}
			for _, flag := range []bool{withdraw, show} {
				given[flag]++
			}
			switch {
			case given[true] != 1:
				return exit.Errorf(exit.Usage, "give one of --at INSTANT, --withdraw and --show")
			case show:
				_, err = call(ctx, r, admin.ShowKeyPolicy, admin.NoBody{}, table)
			case withdraw:
				_, err = call(ctx, r, admin.WithdrawAnnouncement, r.author, table)
			default:
				_, err = call(ctx, r, admin.Announce, admin.Announcement{At: requiredAt, Author: r.author}, table)
			}
			return err
		},
	})
}

func (r *invocation) cluster() *cobra.Command {
	return command.Spec{
		Use:   "cluster",
		Short: "Show the nodes of a cluster, leave the cluster",
		Long: `cluster shows the nodes of the cluster to which a running node belongs (tasard serve --cluster). leave works on the
data directory of a stopped node. Members are added, removed and moved by --cluster-members: see docs/cluster.md.`,
		Example: `  tasard admin cluster status --data ./data
  tasard admin cluster leave --data ./data`,
		Subcommands: []*cobra.Command{r.clusterStatus(), r.clusterLeave()},
	}.Command(r.Process)
}

func (r *invocation) clusterLeave() *cobra.Command {
	o := &command.Serve{}
	return command.Spec{
		Use:   "leave --data DIR",
		Short: "Make the directory of a stopped node that of a single node, for good",
		Long: `leave changes the data directory of a stopped node of a cluster, so that it starts as a single node. Its records stay.
The cluster never takes the directory back.`,
		Example: `  tasard admin cluster leave --data ./data
  TASARD_DATA=/var/lib/tasard tasard admin cluster leave`,
		Settings: func(flags *pflag.FlagSet) { command.Add(flags, o, "data") },
		Run: func(context.Context, []string) error {
			name, clusterName, err := node.LeaveCluster(o.Config.Dir)
			if err == nil {
				terminal.Say(r.Stdout, "%s has left the cluster %s: %s is the directory of a single node now\n", name, clusterName, o.Config.Dir)
			}
			return err
		},
	}.Command(r.Process)
}

func (r *invocation) clusterStatus() *cobra.Command {
	return r.newCommand(command.Spec{
		Use:   "status",
		Short: "Show all nodes as this one sees them",
		Long: `status shows for each node whether it is reachable, how many records of the log it lacks, and which node leads. A
member whose copy of the log is incomplete does not count for a majority. After a start it catches up within seconds;
if it does not, its files are damaged: stop it, keep a copy of its data directory, empty it, and start it; never two
nodes at once. When nodes do not see each other, ask each of them. Without a majority status exits with 69.`,
		Example: `  tasard admin cluster status --data ./data
  tasard admin cluster status --data ./data --json`,
		Run: func(ctx context.Context, _ []string) error {
			state, err := call(ctx, r, admin.ShowCluster, admin.NoBody{}, printCluster)
			if err == nil && !state.Majority {
				err = exit.Errorf(exit.Unavailable, "no majority of the cluster's members is reachable; look at the other nodes and at the network between them")
			}
			return err
		},
	})
}
