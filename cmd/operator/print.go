package operator

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// printAccounts writes a table of accounts.
func printAccounts(out io.Writer, accounts []admin.ListedAccount) {
	if len(accounts) == 0 {
		terminal.Say(out, "There are no accounts yet.\n")
		return
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
	_ = table.Flush() // out remembers a failure
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

// changed prints what an account is after a change.
func changed(outcome string) func(io.Writer, *admin.Account) {
	return func(out io.Writer, account *admin.Account) {
		terminal.Say(out, "Account %d %s.\n\n", account.ID, outcome)
		printAccount(out, account)
	}
}

// digestShown is how many digits of a document's digest tell it from the others in a table.
const digestShown = 12

func printHeld(out io.Writer, held []admin.Held) {
	if len(held) == 0 {
		terminal.Say(out, "Nothing is held back.\n")
		return
	}
	table := terminal.Table(out, "NUMBER\tWHEN\tSOURCE\tINSTITUTION\tCHANNEL\tKIND\tBUY\tSELL\tDATE\tREASON\tDOCUMENT\tDETAIL\n")
	for i := range held {
		h := &held[i]
		terminal.Say(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Number, terminal.Instant(h.ObservedAt), terminal.Printable(h.SourceID),
			terminal.Printable(h.InstitutionID), h.Channel, h.Kind, terminal.Printable(h.Buy), terminal.Printable(h.Sell), terminal.Printable(h.EffectiveDate), h.Reason,
			terminal.Printable(h.Document[:min(digestShown, len(h.Document))]), terminal.Printable(h.Detail))
	}
	_ = table.Flush() // out remembers a failure
}

func printVerdict(out io.Writer, v *admin.Verdict, outcome string) {
	h := &v.Held
	terminal.Say(out, "%s %s by %s: %s:%s:%s:%s, %s / %s, of %s.\n", h.Number, outcome, terminal.Printable(v.By),
		terminal.Printable(h.InstitutionID), h.Currency, h.Channel, h.Kind, terminal.Printable(h.Buy), terminal.Printable(h.Sell), terminal.Printable(h.SourceID))
	printOffering(out, v.Published)
}

func printSet(out io.Writer, s *admin.RateChange) {
	if s.Held == nil {
		terminal.Say(out, "%s is set by %s.\n", s.ID, terminal.Printable(s.By))
	}
	printOffering(out, s.Published)
}

func printWithdrawn(out io.Writer, w *admin.RateChange) {
	terminal.Say(out, "%s of %s is withdrawn by %s.\n", w.ID, terminal.Printable(w.SourceID), terminal.Printable(w.By))
	printOffering(out, w.Published)
}

// printOffering says what is published.
func printOffering(out io.Writer, o *admin.Offer) {
	if o == nil {
		terminal.Say(out, "Nothing is published for it now.\n")
		return
	}
	until := "until " + terminal.Instant(o.ExpiresAt)
	if o.Stale {
		until = "stale since " + terminal.Instant(o.ExpiresAt)
	}
	terminal.Say(out, "Published now: %s / %s of %s, %s.\n", terminal.Printable(o.Buy), terminal.Printable(o.Sell), terminal.Printable(o.SourceID), until)
}

// printCluster writes what stands, then a table of the nodes.
func printCluster(out io.Writer, c *admin.Cluster) {
	state := "a majority of the nodes is there: changes are possible"
	if !c.Majority {
		state = "no majority: reads and leased requests go on, changes are refused"
	}
	terminal.Say(out, "%s: %s, since %s\n\n", terminal.Printable(c.Cluster), state, terminal.Instant(c.Since))
	table := terminal.Table(out, "NODE\tADDRESS\tSTATE\tRECORD\tLACKS\tVERSION\n")
	for i := range c.Nodes {
		n := &c.Nodes[i]
		terminal.Say(table, "%s\t%s\t%s\t%d\t%d\t%s\n", terminal.Printable(n.Name), terminal.Printable(n.Address), stateOf(n), n.Record, n.Lag, terminal.Printable(n.Version))
	}
	_ = table.Flush() // as say
}

// stateOf is a node in words.
func stateOf(n *admin.ClusterNode) string {
	words := []string{"unreachable"}
	switch {
	case n.Reachable:
		words = []string{"reachable"}
	case !n.SeenAt.IsZero():
		words = []string{fmt.Sprintf("unreachable, last heard at %s", terminal.Instant(n.SeenAt))}
	}
	if n.Self {
		words[0] = "this one"
	}
	if n.Leader {
		words = append(words, "leads")
	}
	switch {
	case !n.Member:
		words = append(words, "guest")
	case !n.Current && (n.Self || n.Reachable):
		words = append(words, "its part is not whole")
	}
	return strings.Join(words, ", ")
}

// summary is the status, and each condition that is not well.
func summary(s *admin.Readiness) string {
	words := []string{string(s.Status)}
	for _, c := range s.Conditions {
		if c.State != engine.ConditionOK {
			words = append(words, c.Name+": "+c.State)
		}
	}
	return strings.Join(words, ", ")
}
