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

func printAccounts(out io.Writer, accounts []admin.ListedAccount) {
	if len(accounts) == 0 {
		terminal.Fprintf(out, "There are no accounts yet.\n")
		return
	}
	table := terminal.NewTable(out, "ACCOUNT\tE-MAIL\tSINCE\tACTIVE KEYS\tTODAY\tA MINUTE\tSTATE\n")
	for i := range accounts {
		a := &accounts[i]
		state := "good"
		if a.Suspended {
			state = "suspended"
		}
		if a.Limits.Own {
			state += ", own limits"
		}
		terminal.Fprintf(table, "%d\t%s\t%s\t%d\t%s of %s\t%s\t%s\n", a.ID, terminal.Sanitize(a.Email), terminal.FormatInstant(a.CreatedAt), a.ActiveKeys,
			terminal.Thousands(a.SpentToday), terminal.Thousands(a.Limits.Day), terminal.Thousands(a.Limits.Minute), state)
	}
	_ = table.Flush() // out is an ErrWriter, which keeps errors
}

func printAccount(out io.Writer, a *admin.Account) {
	terminal.Fprintf(out, "account    %d\n", a.ID)
	terminal.Fprintf(out, "e-mail     %s\n", terminal.Sanitize(a.Email))
	terminal.Fprintf(out, "since      %s\n", terminal.FormatInstant(a.CreatedAt))
	state := "good"
	if !a.SuspendedAt.IsZero() {
		state = fmt.Sprintf("suspended since %s: %s", terminal.FormatInstant(a.SuspendedAt), terminal.Sanitize(a.Reason))
	}
	terminal.Fprintf(out, "state      %s\n", state)
	owner := "the node's"
	if a.Limits.Own {
		owner = "its own"
	}
	terminal.Fprintf(out, "limits     %s a day, %s in 60 seconds (%s)\n", terminal.Thousands(a.Limits.Day), terminal.Thousands(a.Limits.Minute), owner)
	terminal.Fprintf(out, "day        %s left, until %s\n", terminal.Thousands(a.Day.Remaining), terminal.FormatInstant(a.Day.ResetAt))
	terminal.Fprintf(out, "minute     %s left\n", terminal.Thousands(a.Minute.Remaining))
	if len(a.Keys) == 0 {
		terminal.Fprintf(out, "keys       none\n")
		return
	}
	terminal.Fprintf(out, "\n")
	table := terminal.NewTable(out, "KEY\tNAME\tENDS IN\tCREATED\tLAST USED\tSTATE\n")
	for i := range a.Keys {
		key := &a.Keys[i]
		state := "active"
		if !key.RevokedAt.IsZero() {
			state = "revoked " + terminal.FormatInstant(key.RevokedAt)
		}
		terminal.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", key.ID, terminal.Sanitize(key.Name), key.Hint, terminal.FormatInstant(key.CreatedAt), terminal.FormatInstant(key.LastUsedAt), state)
	}
	_ = table.Flush() // out is an ErrWriter, which keeps errors
}

func printKeyPolicy(out io.Writer, policy *admin.KeyPolicy, now time.Time) {
	switch policy.State {
	case admin.KeysRequired:
		terminal.Fprintf(out, "Keys are required since %s (announced %s by %s).\n", terminal.FormatInstant(policy.RequiredAt), terminal.FormatInstant(policy.AnnouncedAt), terminal.Sanitize(policy.By))
	case admin.KeysAnnounced:
		terminal.Fprintf(out, "Keys are required from %s on, in %s (announced %s by %s).\n",
			terminal.FormatInstant(policy.RequiredAt), terminal.FormatDays(policy.RequiredAt.Sub(now)), terminal.FormatInstant(policy.AnnouncedAt), terminal.Sanitize(policy.By))
		terminal.Fprintf(out, "Until then every answer carries Deprecation, Sunset and Link.\n")
	default:
		terminal.Fprintf(out, "Keys are optional; nothing is announced.\n")
	}
	if policy.State != admin.KeysOptional && policy.Mail == admin.MailOff {
		terminal.Fprintf(out, "Note: users can't get keys, because the node sends no e-mail; start it with --smtp-addr.\n")
	}
}

// printChangedAccount returns a function that prints what was changed, and the account.
func printChangedAccount(outcome string) func(io.Writer, *admin.Account) {
	return func(out io.Writer, account *admin.Account) {
		terminal.Fprintf(out, "Account %d %s.\n\n", account.ID, outcome)
		printAccount(out, account)
	}
}

func printUnlocked(out io.Writer, unlocked *admin.Unlocked) {
	terminal.Fprintf(out, "%s can ask for a login code again.\n", unlocked.Email)
}

// digestCharacters is how many characters of a document's digest a table shows.
const digestCharacters = 12

func printQuarantine(out io.Writer, values []admin.QuarantineEntry) {
	if len(values) == 0 {
		terminal.Fprintf(out, "The quarantine is empty.\n")
		return
	}
	table := terminal.NewTable(out, "NUMBER\tWHEN\tSOURCE\tINSTITUTION\tCHANNEL\tKIND\tBUY\tSELL\tDATE\tREASON\tDOCUMENT\tDETAIL\n")
	for i := range values {
		value := &values[i]
		terminal.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", value.Number, terminal.FormatInstant(value.ObservedAt), terminal.Sanitize(value.SourceID),
			terminal.Sanitize(value.InstitutionID), value.Channel, value.Kind, terminal.Sanitize(value.Buy), terminal.Sanitize(value.Sell), terminal.Sanitize(value.EffectiveDate), value.Reason,
			terminal.Sanitize(value.Document[:min(digestCharacters, len(value.Document))]), terminal.Sanitize(value.Detail))
	}
	_ = table.Flush() // out is an ErrWriter, which keeps errors
}

func printQuarantineResult(out io.Writer, result *admin.QuarantineResult, outcome string) {
	value := &result.Entry
	terminal.Fprintf(out, "%s %s by %s: %s:%s:%s:%s, %s / %s, of %s.\n", value.Number, outcome, terminal.Sanitize(result.By),
		terminal.Sanitize(value.InstitutionID), value.Currency, value.Channel, value.Kind, terminal.Sanitize(value.Buy), terminal.Sanitize(value.Sell), terminal.Sanitize(value.SourceID))
	printPublished(out, result.Published)
}

func printRateSet(out io.Writer, change *admin.RateChange) {
	if change.Quarantined == nil {
		terminal.Fprintf(out, "%s is set by %s.\n", change.ID, terminal.Sanitize(change.By))
	}
	for _, notice := range change.Notices {
		terminal.Fprintf(out, "Warning: %s\n", terminal.Sanitize(notice))
	}
	printPublished(out, change.Published)
}

func printRateWithdrawn(out io.Writer, change *admin.RateChange) {
	terminal.Fprintf(out, "%s of %s is withdrawn by %s.\n", change.ID, terminal.Sanitize(change.SourceID), terminal.Sanitize(change.By))
	printPublished(out, change.Published)
}

// printPublished prints the rate (buy and sell price) that is published now. offer is nil if none is published.
func printPublished(out io.Writer, offer *admin.Offer) {
	if offer == nil {
		terminal.Fprintf(out, "Nothing is published for it now.\n")
		return
	}
	until := "until " + terminal.FormatInstant(offer.ExpiresAt)
	if offer.Stale {
		until = "stale since " + terminal.FormatInstant(offer.ExpiresAt)
	}
	terminal.Fprintf(out, "Published now: %s / %s of %s, %s.\n", terminal.Sanitize(offer.Buy), terminal.Sanitize(offer.Sell), terminal.Sanitize(offer.SourceID), until)
}

// printCluster prints the state of a cluster and a table of its nodes. Without a majority, a node still answers
// requests from those parts of the quotas that it has reserved (leased) before. LACKS is the number of log records that
// a node does not have yet.
func printCluster(out io.Writer, c *admin.Cluster) {
	state := "a majority of the nodes is there: changes are possible"
	if !c.Majority {
		state = "no majority: reads and leased requests go on, changes are refused"
	}
	terminal.Fprintf(out, "%s: %s, since %s\n\n", terminal.Sanitize(c.Cluster), state, terminal.FormatInstant(c.Since))
	table := terminal.NewTable(out, "NODE\tADDRESS\tSTATE\tRECORD\tLACKS\tVERSION\n")
	for i := range c.Nodes {
		n := &c.Nodes[i]
		terminal.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", terminal.Sanitize(n.Name), terminal.Sanitize(n.Address), clusterNodeState(n, c.Majority), n.Record, n.Lag, terminal.Sanitize(n.Version))
	}
	_ = table.Flush() // out is an ErrWriter, which keeps errors
}

// clusterNodeState describes a node of a cluster in a few words. A guest is a node that only answers requests: it is
// not a member of the cluster. Without a majority no copy of the log is known to be complete.
func clusterNodeState(n *admin.ClusterNode, majority bool) string {
	parts := []string{"unreachable"}
	switch {
	case n.Reachable:
		parts = []string{"reachable"}
	case !n.SeenAt.IsZero():
		parts = []string{fmt.Sprintf("unreachable, last seen at %s", terminal.FormatInstant(n.SeenAt))}
	}
	if n.Self {
		parts[0] = "this one"
	}
	if n.Leader {
		parts = append(parts, "leads")
	}
	switch {
	case !n.Member:
		parts = append(parts, "guest")
	case majority && !n.Current && (n.Self || n.Reachable):
		parts = append(parts, "its copy of the log is incomplete")
	}
	if n.OtherMembers {
		parts = append(parts, "has another list of members")
	}
	return strings.Join(parts, ", ")
}

// readinessSummary describes the readiness of a node: its status, and each condition that is not OK.
func readinessSummary(s *admin.Readiness) string {
	parts := []string{string(s.Status)}
	for _, c := range s.Conditions {
		if c.State != engine.ConditionOK {
			parts = append(parts, c.Name+": "+c.State)
		}
	}
	return strings.Join(parts, ", ")
}
