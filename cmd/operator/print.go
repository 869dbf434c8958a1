package operator

import (
	"fmt"
	"io"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
)

// printAccounts writes a table of accounts.
func printAccounts(out io.Writer, accounts []admin.ListedAccount) error {
	if len(accounts) == 0 {
		terminal.Say(out, "There are no accounts yet.\n")
		return nil
	}
	table := terminal.Table(out, "ACCOUNT\tE-MAIL\tSINCE\tACTIVE KEYS\tTODAY\tA MINUTE\tSTATE\n")
	for i := range accounts {
		a := &accounts[i]
		state := "good"
		if a.Suspended {
			state = "suspended"
		}
		if a.Limits.Own {
			state += ", own limits"
		}
		terminal.Say(table, "%d\t%s\t%s\t%d\t%s of %s\t%s\t%s\n", a.ID, terminal.Printable(a.Email), terminal.Instant(a.CreatedAt), a.ActiveKeys,
			terminal.Grouped(a.SpentToday), terminal.Grouped(a.Limits.Day), terminal.Grouped(a.Limits.Minute), state)
	}
	if err := table.Flush(); err != nil {
		return exit.Fail(exit.Broken, "write the list: %w", err)
	}
	return nil
}

// printAccount writes all that is known of an account.
func printAccount(out io.Writer, a *admin.Account) {
	terminal.Say(out, "account    %d\n", a.ID)
	terminal.Say(out, "e-mail     %s\n", terminal.Printable(a.Email))
	terminal.Say(out, "since      %s\n", terminal.Instant(a.CreatedAt))
	state := "good"
	if !a.SuspendedAt.IsZero() {
		state = fmt.Sprintf("suspended since %s: %s", terminal.Instant(a.SuspendedAt), terminal.Printable(a.Reason))
	}
	terminal.Say(out, "state      %s\n", state)
	whose := "the node's"
	if a.Limits.Own {
		whose = "its own"
	}
	terminal.Say(out, "limits     %s a day, %s in 60 seconds (%s)\n", terminal.Grouped(a.Limits.Day), terminal.Grouped(a.Limits.Minute), whose)
	terminal.Say(out, "day        %s left, until %s\n", terminal.Grouped(a.Day.Remaining), terminal.Instant(a.Day.ResetAt))
	terminal.Say(out, "minute     %s left\n", terminal.Grouped(a.Minute.Remaining))
	if len(a.Keys) == 0 {
		terminal.Say(out, "keys       none\n")
		return
	}
	terminal.Say(out, "\n")
	table := terminal.Table(out, "KEY\tNAME\tENDS IN\tCREATED\tLAST USED\tSTATE\n")
	for i := range a.Keys {
		key := &a.Keys[i]
		state := "active"
		if !key.RevokedAt.IsZero() {
			state = "revoked " + terminal.Instant(key.RevokedAt)
		}
		terminal.Say(table, "%s\t%s\t%s\t%s\t%s\t%s\n", key.ID, terminal.Printable(key.Name), key.Hint, terminal.Instant(key.CreatedAt), terminal.Instant(key.LastUsedAt), state)
	}
	_ = table.Flush() // out remembers a failure
}

// printTransition says where the node stands on the way to required keys.
func printTransition(out io.Writer, t *admin.Transition, now time.Time) {
	switch t.State {
	case admin.KeysRequired:
		terminal.Say(out, "Keys are required since %s (announced %s by %s).\n", terminal.Instant(t.RequiredAt), terminal.Instant(t.AnnouncedAt), terminal.Printable(t.By))
	case admin.KeysAnnounced:
		terminal.Say(out, "Keys are required from %s on, in %s (announced %s by %s).\n",
			terminal.Instant(t.RequiredAt), terminal.InDays(t.RequiredAt.Sub(now)), terminal.Instant(t.AnnouncedAt), terminal.Printable(t.By))
		terminal.Say(out, "Until then every answer carries Deprecation, Sunset and Link.\n")
	default:
		terminal.Say(out, "Keys are optional; nothing is announced.\n")
	}
	if t.State != admin.KeysOptional && t.Mail == admin.MailOff {
		terminal.Say(out, "Note: nobody can get a key, because the node sends no letters; start it with --smtp-addr.\n")
	}
}
