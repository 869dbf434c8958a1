package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/httpapi/admin"
)

func (p *process) newAdminAccounts() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "accounts",
		Short: "List, show, suspend, restore or limit accounts",
		Long:  "accounts looks after the accounts of a running node. An account is named by its number or by its e-mail address.",
		Example: `  tasard admin accounts list --data ./data
  tasard admin accounts show ana@example.com --data ./data`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.newAccountsList(), p.newAccountsShow(), p.newAccountsSuspend(), p.newAccountsRestore(), p.newAccountsLimit())
	return cmd
}

func (p *process) newAccountsList() *cobra.Command {
	o := &adminOptions{}
	return p.adminCommand(&cobra.Command{
		Use:   "list",
		Short: "List all accounts",
		Long: `list prints one line for each account, e-mail addresses masked. With --json it prints one JSON object a line, as it comes,
however many there are.`,
		Example: `  tasard admin accounts list --data ./data
  tasard admin accounts list --data ./data --json | jq 'select(.suspended)'`,
		Args: noArguments,
	}, o, func(ctx context.Context, node *remote, _ []string) error {
		return list(ctx, p, o, node, admin.ListAccounts, nil, printAccounts)
	})
}

func (p *process) newAccountsShow() *cobra.Command {
	o := &adminOptions{}
	return p.adminCommand(&cobra.Command{
		Use:   "show ACCOUNT",
		Short: "Show an account: its keys, its limits, what is left of them",
		Long:  "show prints all that is known of an account. Keys are told by their last four characters; nobody has the rest.",
		Example: `  tasard admin accounts show 7 --data ./data
  tasard admin accounts show ana@example.com --data ./data --json`,
		Args: oneAccount,
	}, o, func(ctx context.Context, node *remote, args []string) error {
		account, err := ask(ctx, node, admin.ShowAccount, admin.None{}, args[0])
		if err != nil {
			return err
		}
		return present(p.stdout, o.json, account, func() { printAccount(p.stdout, &account) })
	})
}

func (p *process) newAccountsSuspend() *cobra.Command {
	o, reason := &adminOptions{}, ""
	cmd := p.adminCommand(&cobra.Command{
		Use:   "suspend ACCOUNT --reason TEXT",
		Short: "Refuse an account's keys",
		Long: `suspend refuses the keys of an account from the next request on, until it is restored. Before keys are required its
requests count as those of a caller without a key.`,
		Example: "  tasard admin accounts suspend 7 --data ./data --reason 'resells access' --by ana",
		Args:    oneAccount,
	}, o, func(ctx context.Context, node *remote, args []string) error {
		if reason == "" {
			return fail(exitUsage, "tasard admin accounts suspend: no reason; give one for the log with --reason TEXT")
		}
		account, err := ask(ctx, node, admin.SuspendAccount, admin.Suspension{Reason: reason, By: o.by}, args[0])
		return p.changed(o, &account, err, "is suspended")
	})
	cmd.Flags().Var(lineValue(&reason, "TEXT", admin.ReasonMax), "reason", "why, for the log")
	addBy(cmd, o)
	return cmd
}

func (p *process) newAccountsRestore() *cobra.Command {
	o := &adminOptions{}
	cmd := p.adminCommand(&cobra.Command{
		Use:     "restore ACCOUNT",
		Short:   "End a suspension",
		Long:    "restore takes the keys of a suspended account again, from the next request on. Revoked keys stay revoked.",
		Example: "  tasard admin accounts restore 7 --data ./data --by ana",
		Args:    oneAccount,
	}, o, func(ctx context.Context, node *remote, args []string) error {
		account, err := ask(ctx, node, admin.RestoreAccount, admin.By{By: o.by}, args[0])
		return p.changed(o, &account, err, "is in good standing")
	})
	addBy(cmd, o)
	return cmd
}

func (p *process) newAccountsLimit() *cobra.Command {
	o := &adminOptions{}
	day, minute := -1, -1
	cmd := p.adminCommand(&cobra.Command{
		Use:   "limit ACCOUNT --day N --minute N",
		Short: "Give an account limits of its own",
		Long: `limit gives an account a number of requests a day, or in any 60 seconds, of its own. What is not named stays; 0 goes back
to the node's. It is in force for the next request.`,
		Example: `  tasard admin accounts limit 7 --data ./data --day 20000
  tasard admin accounts limit 7 --data ./data --day 0 --minute 0`,
		Args: oneAccount,
	}, o, func(ctx context.Context, node *remote, args []string) error {
		body := admin.LimitChange{By: o.by}
		if day >= 0 {
			body.Day = &day
		}
		if minute >= 0 {
			body.Minute = &minute
		}
		if body.Day == nil && body.Minute == nil {
			return fail(exitUsage, "tasard admin accounts limit: no limit; give --day N, --minute N or both")
		}
		account, err := ask(ctx, node, admin.LimitAccount, body, args[0])
		return p.changed(o, &account, err, "has these limits now")
	})
	cmd.Flags().Var(optionalCount(&day, admin.QuotaDayMax), "day", "requests a day; 0 is the node's number")
	cmd.Flags().Var(optionalCount(&minute, admin.QuotaMinuteMax), "minute", "requests in any 60 seconds; 0 is the node's number")
	addBy(cmd, o)
	return cmd
}

// changed prints what an account is after a change.
func (p *process) changed(o *adminOptions, account *admin.Account, err error, outcome string) error {
	if err != nil {
		return err
	}
	return present(p.stdout, o.json, account, func() {
		say(p.stdout, "Account %d %s.\n\n", account.ID, outcome)
		printAccount(p.stdout, account)
	})
}
