package operator

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/remote"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
)

func newAdminAccounts(p *process.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "accounts",
		Short: "List, show, suspend, restore or limit accounts",
		Long:  "accounts looks after the accounts of a running node. An account is named by its number or by its e-mail address.",
		Example: `  tasard admin accounts list --data ./data
  tasard admin accounts show ana@example.com --data ./data`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAccountsList(p), newAccountsShow(p), newAccountsSuspend(p), newAccountsRestore(p), newAccountsLimit(p))
	return cmd
}

func newAccountsList(p *process.Process) *cobra.Command {
	o := &remote.Options{}
	return adminCommand(p, &cobra.Command{
		Use:   "list",
		Short: "List all accounts",
		Long: `list prints one line for each account, e-mail addresses masked. With --json it prints one JSON object a line, as it comes,
however many there are.`,
		Example: `  tasard admin accounts list --data ./data
  tasard admin accounts list --data ./data --json | jq 'select(.suspended)'`,
		Args: command.NoArguments,
	}, o, func(ctx context.Context, node *remote.Node, _ []string) error {
		return remote.List(ctx, p, o, node, admin.ListAccounts, nil, printAccounts)
	})
}

func newAccountsShow(p *process.Process) *cobra.Command {
	o := &remote.Options{}
	return adminCommand(p, &cobra.Command{
		Use:   "show ACCOUNT",
		Short: "Show an account: its keys, its limits, what is left of them",
		Long:  "show prints all that is known of an account. Keys are told by their last four characters; nobody has the rest.",
		Example: `  tasard admin accounts show 7 --data ./data
  tasard admin accounts show ana@example.com --data ./data --json`,
		Args: oneAccount,
	}, o, func(ctx context.Context, node *remote.Node, args []string) error {
		account, err := remote.Ask(ctx, node, admin.ShowAccount, admin.None{}, args[0])
		if err != nil {
			return err
		}
		return terminal.Present(p.Stdout, o.JSON, account, func() { printAccount(p.Stdout, &account) })
	})
}

func newAccountsSuspend(p *process.Process) *cobra.Command {
	o, reason := &remote.Options{}, ""
	cmd := adminCommand(p, &cobra.Command{
		Use:   "suspend ACCOUNT --reason TEXT",
		Short: "Refuse an account's keys",
		Long: `suspend refuses the keys of an account from the next request on, until it is restored. Before keys are required its
requests count as those of a caller without a key.`,
		Example: "  tasard admin accounts suspend 7 --data ./data --reason 'resells access' --by ana",
		Args:    oneAccount,
	}, o, func(ctx context.Context, node *remote.Node, args []string) error {
		if reason == "" {
			return exit.Fail(exit.Usage, "tasard admin accounts suspend: no reason; give one for the log with --reason TEXT")
		}
		account, err := remote.Ask(ctx, node, admin.SuspendAccount, admin.Suspension{Reason: reason, By: o.By}, args[0])
		return changed(p, o, &account, err, "is suspended")
	})
	cmd.Flags().Var(setting.Line(&reason, "TEXT", admin.ReasonMax), "reason", "why, for the log")
	remote.AddBy(cmd, o)
	return cmd
}

func newAccountsRestore(p *process.Process) *cobra.Command {
	o := &remote.Options{}
	cmd := adminCommand(p, &cobra.Command{
		Use:     "restore ACCOUNT",
		Short:   "End a suspension",
		Long:    "restore takes the keys of a suspended account again, from the next request on. Revoked keys stay revoked.",
		Example: "  tasard admin accounts restore 7 --data ./data --by ana",
		Args:    oneAccount,
	}, o, func(ctx context.Context, node *remote.Node, args []string) error {
		account, err := remote.Ask(ctx, node, admin.RestoreAccount, admin.By{By: o.By}, args[0])
		return changed(p, o, &account, err, "is in good standing")
	})
	remote.AddBy(cmd, o)
	return cmd
}

func newAccountsLimit(p *process.Process) *cobra.Command {
	o := &remote.Options{}
	day, minute := -1, -1
	cmd := adminCommand(p, &cobra.Command{
		Use:   "limit ACCOUNT --day N --minute N",
		Short: "Give an account limits of its own",
		Long: `limit gives an account a number of requests a day, or in any 60 seconds, of its own. What is not named stays; 0 goes back
to the node's. It is in force for the next request.`,
		Example: `  tasard admin accounts limit 7 --data ./data --day 20000
  tasard admin accounts limit 7 --data ./data --day 0 --minute 0`,
		Args: oneAccount,
	}, o, func(ctx context.Context, node *remote.Node, args []string) error {
		body := admin.LimitChange{By: o.By}
		if day >= 0 {
			body.Day = &day
		}
		if minute >= 0 {
			body.Minute = &minute
		}
		if body.Day == nil && body.Minute == nil {
			return exit.Fail(exit.Usage, "tasard admin accounts limit: no limit; give --day N, --minute N or both")
		}
		account, err := remote.Ask(ctx, node, admin.LimitAccount, body, args[0])
		return changed(p, o, &account, err, "has these limits now")
	})
	cmd.Flags().Var(setting.OptionalCount(&day, admin.QuotaDayMax), "day", "requests a day; 0 is the node's number")
	cmd.Flags().Var(setting.OptionalCount(&minute, admin.QuotaMinuteMax), "minute", "requests in any 60 seconds; 0 is the node's number")
	remote.AddBy(cmd, o)
	return cmd
}

// changed prints what an account is after a change.
func changed(p *process.Process, o *remote.Options, account *admin.Account, err error, outcome string) error {
	if err != nil {
		return err
	}
	return terminal.Present(p.Stdout, o.JSON, account, func() {
		terminal.Say(p.Stdout, "Account %d %s.\n\n", account.ID, outcome)
		printAccount(p.Stdout, account)
	})
}
