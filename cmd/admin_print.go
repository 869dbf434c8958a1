package cmd

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/tasard/tasard/httpapi/admin"
)

// printAccounts writes a table of accounts.
func printAccounts(out io.Writer, accounts []admin.ListedAccount) error {
	if len(accounts) == 0 {
		say(out, "There are no accounts yet.\n")
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say(table, "ACCOUNT\tE-MAIL\tSINCE\tACTIVE KEYS\tTODAY\tA MINUTE\tSTATE\n")
	for i := range accounts {
		a := &accounts[i]
		state := "good"
		if a.Suspended {
			state = "suspended"
		}
		if a.Limits.Own {
			state += ", own limits"
		}
		say(table, "%d\t%s\t%s\t%d\t%s of %s\t%s\t%s\n", a.ID, printable(a.Email), instant(a.CreatedAt), a.ActiveKeys,
			grouped(a.SpentToday), grouped(a.Limits.Day), grouped(a.Limits.Minute), state)
	}
	if err := table.Flush(); err != nil {
		return fail(exitBroken, "write the list: %w", err)
	}
	return nil
}

// printAccount writes all that is known of an account.
func printAccount(out io.Writer, a *admin.Account) {
	say(out, "account    %d\n", a.ID)
	say(out, "e-mail     %s\n", printable(a.Email))
	say(out, "since      %s\n", instant(a.CreatedAt))
	state := "good"
	if !a.SuspendedAt.IsZero() {
		state = fmt.Sprintf("suspended since %s: %s", instant(a.SuspendedAt), printable(a.Reason))
	}
	say(out, "state      %s\n", state)
	whose := "the node's"
	if a.Limits.Own {
		whose = "its own"
	}
	say(out, "limits     %s a day, %s in 60 seconds (%s)\n", grouped(a.Limits.Day), grouped(a.Limits.Minute), whose)
	say(out, "day        %s left, until %s\n", grouped(a.Day.Remaining), instant(a.Day.ResetAt))
	say(out, "minute     %s left\n", grouped(a.Minute.Remaining))
	if len(a.Keys) == 0 {
		say(out, "keys       none\n")
		return
	}
	say(out, "\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say(table, "KEY\tNAME\tENDS IN\tCREATED\tLAST USED\tSTATE\n")
	for i := range a.Keys {
		key := &a.Keys[i]
		state := "active"
		if !key.RevokedAt.IsZero() {
			state = "revoked " + instant(key.RevokedAt)
		}
		say(table, "%s\t%s\t%s\t%s\t%s\t%s\n", key.ID, printable(key.Name), key.Hint, instant(key.CreatedAt), instant(key.LastUsedAt), state)
	}
	_ = table.Flush() // out remembers a failure
}

// printTransition says where the node stands on the way to required keys.
func printTransition(out io.Writer, t admin.Transition, now time.Time) {
	switch t.State {
	case admin.KeysRequired:
		say(out, "Keys are required since %s (announced %s by %s).\n", instant(t.RequiredAt), instant(t.AnnouncedAt), printable(t.By))
	case admin.KeysAnnounced:
		say(out, "Keys are required from %s on, in %s (announced %s by %s).\n",
			instant(t.RequiredAt), inDays(t.RequiredAt.Sub(now)), instant(t.AnnouncedAt), printable(t.By))
		say(out, "Until then every answer carries Deprecation, Sunset and Link.\n")
	default:
		say(out, "Keys are optional; nothing is announced.\n")
	}
	if t.State != admin.KeysOptional && t.Mail == admin.MailOff {
		say(out, "Note: nobody can get a key, because the node sends no letters; start it with --smtp-addr.\n")
	}
}
