package operator

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/remote"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
)

// ofAccount is how an account is named.
const ofAccount = "one account, by its number or its e-mail address"

func (r *request) accounts() *cobra.Command {
	return command.Row{
		Use:   "accounts",
		Short: "List, show, suspend, restore or limit accounts",
		Long:  "accounts looks after the accounts of a running node. An account is named by its number or by its e-mail address.",
		Example: `  tasard admin accounts list --data ./data
  tasard admin accounts show ana@example.com --data ./data`,
		Below: []*cobra.Command{r.listAccounts(), r.showAccount(), r.suspend(), r.restore(), r.limit()},
	}.Command(r.Process)
}

func (r *request) listAccounts() *cobra.Command {
	return r.row(command.Row{
		Use:   "list",
		Short: "List all accounts",
		Long: `list prints one line for each account, e-mail addresses masked. With --json it prints one JSON object a line, as it comes,
however many there are.`,
		Example: `  tasard admin accounts list --data ./data
  tasard admin accounts list --data ./data --json | jq 'select(.suspended)'`,
		Run: func(ctx context.Context, _ []string) error {
			return remote.List(ctx, r.Stdout, r.JSON, r.node, admin.ListAccounts, nil, printAccounts)
		},
	})
}

func (r *request) showAccount() *cobra.Command {
	return r.row(command.Row{
		Use:   "show ACCOUNT",
		Short: "Show an account: its keys, its limits, what is left of them",
		Long:  "show prints all that is known of an account. Keys are told by their last four characters; nobody has the rest.",
		Example: `  tasard admin accounts show 7 --data ./data
  tasard admin accounts show ana@example.com --data ./data --json`,
		Args: command.Want(1, ofAccount),
		Run: func(ctx context.Context, args []string) error {
			_, err := ask(ctx, r, admin.ShowAccount, admin.None{}, printAccount, args[0])
			return err
		},
	})
}

func (r *request) suspend() *cobra.Command {
	reason := ""
	return r.change(command.Row{
		Use:   "suspend ACCOUNT --reason TEXT",
		Short: "Refuse an account's keys",
		Long: `suspend refuses the keys of an account from the next request on, until it is restored. Before keys are required its
requests count as those of a caller without a key.`,
		Example: "  tasard admin accounts suspend 7 --data ./data --reason 'resells access' --by ana",
		Args:    command.Want(1, ofAccount),
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.Line(&reason, "TEXT", admin.ReasonMax), "reason", "why, for the log")
		},
		Run: func(ctx context.Context, args []string) error {
			if reason == "" {
				return exit.Fail(exit.Usage, "tasard admin accounts suspend: no reason; give one for the log with --reason TEXT")
			}
			_, err := ask(ctx, r, admin.SuspendAccount, admin.Suspension{Reason: reason, By: r.by}, changed("is suspended"), args[0])
			return err
		},
	})
}

func (r *request) restore() *cobra.Command {
	return r.change(command.Row{
		Use:     "restore ACCOUNT",
		Short:   "End a suspension",
		Long:    "restore takes the keys of a suspended account again, from the next request on. Revoked keys stay revoked.",
		Example: "  tasard admin accounts restore 7 --data ./data --by ana",
		Args:    command.Want(1, ofAccount),
		Run: func(ctx context.Context, args []string) error {
			_, err := ask(ctx, r, admin.RestoreAccount, admin.By{By: r.by}, changed("is in good standing"), args[0])
			return err
		},
	})
}

func (r *request) limit() *cobra.Command {
	day, minute := -1, -1
	return r.change(command.Row{
		Use:   "limit ACCOUNT --day N --minute N",
		Short: "Give an account limits of its own",
		Long: `limit gives an account a number of requests a day, or in any 60 seconds, of its own. What is not named stays; 0 goes back
to the node's. It is in force for the next request.`,
		Example: `  tasard admin accounts limit 7 --data ./data --day 20000
  tasard admin accounts limit 7 --data ./data --day 0 --minute 0`,
		Args: command.Want(1, ofAccount),
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.OptionalCount(&day, admin.QuotaDayMax), "day", "requests a day; 0 is the node's number")
			flags.Var(setting.OptionalCount(&minute, admin.QuotaMinuteMax), "minute", "requests in any 60 seconds; 0 is the node's number")
		},
		Run: func(ctx context.Context, args []string) error {
			body := admin.LimitChange{By: r.by}
			if day >= 0 {
				body.Day = &day
			}
			if minute >= 0 {
				body.Minute = &minute
			}
			if body.Day == nil && body.Minute == nil {
				return exit.Fail(exit.Usage, "tasard admin accounts limit: no limit; give --day N, --minute N or both")
			}
			_, err := ask(ctx, r, admin.LimitAccount, body, changed("has these limits now"), args[0])
			return err
		},
	})
}

// changed prints what an account is after a change.
func changed(outcome string) func(io.Writer, *admin.Account) {
	return func(out io.Writer, account *admin.Account) {
		terminal.Say(out, "Account %d %s.\n\n", account.ID, outcome)
		printAccount(out, account)
	}
}
