package operator

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/admin"
)

func printAccounts(out io.Writer, accounts []admin.ListedAccount) {
	if len(accounts) == 0 {
		terminal.Say(out, "There are no accounts yet.\n")
		return
	}
	terminal.Table(out, "ACCOUNT\tE-MAIL\tSINCE\tACTIVE KEYS\tTODAY\tA MINUTE\tSTATE", accounts, func(a *admin.ListedAccount) []any {
		state := "good"
		if a.Suspended {
			state = "suspended"
		}
		if a.Limits.Own {
			state += ", own limits"
		}
		today := terminal.Thousands(a.SpentToday) + " of " + terminal.Thousands(a.Limits.Day)
		return []any{a.ID, a.Email, a.CreatedAt, a.ActiveKeys, today, terminal.Thousands(a.Limits.Minute), state}
	})
}

func printAccount(out io.Writer, a *admin.Account) {
	state, owner := "good", "the node's"
	if !a.SuspendedAt.IsZero() {
		state = fmt.Sprintf("suspended since %s: %s", terminal.Text(a.SuspendedAt), a.Reason)
	}
	if a.Limits.Own {
		owner = "its own"
	}
	terminal.Say(out, "account    %s\ne-mail     %s\nsince      %s\nstate      %s\n", a.ID, a.Email, a.CreatedAt, state)
	terminal.Say(out, "limits     %s a day, %s in 60 seconds (%s)\n", terminal.Thousands(a.Limits.Day), terminal.Thousands(a.Limits.Minute), owner)
	terminal.Say(out, "day        %s left, until %s\nminute     %s left\n", terminal.Thousands(a.Day.Remaining), a.Day.Reset, terminal.Thousands(a.Minute.Remaining))
	if len(a.Keys) == 0 {
		terminal.Say(out, "keys       none\n")
		return
	}
	terminal.Say(out, "\n")
	terminal.Table(out, "KEY\tNAME\tENDS IN\tCREATED\tLAST USED\tSTATE", a.Keys, func(key *account.KeyRecord) []any {
		state := "active"
		if !key.RevokedAt.IsZero() {
			state = "revoked " + terminal.Text(key.RevokedAt)
		}
		return []any{key.ID, key.Name, key.Hint, key.CreatedAt, key.LastUsed, state}
	})
}

func printKeyPolicy(out io.Writer, policy *admin.KeyPolicy, now time.Time) {
	switch policy.State {
	case admin.KeysRequired:
		terminal.Say(out, "Keys are required since %s (announced %s by %s).\n", policy.RequiredAt, policy.AnnouncedAt, policy.By)
	case admin.KeysAnnounced:
		terminal.Say(out, "Keys are required from %s on, in %s (announced %s by %s).\nUntil then every answer carries Deprecation, Sunset and Link.\n",
			policy.RequiredAt, terminal.FormatDays(policy.RequiredAt.Sub(now)), policy.AnnouncedAt, policy.By)
	default:
		terminal.Say(out, "Keys are optional; nothing is announced.\n")
	}
	if policy.State != admin.KeysOptional && policy.Mail == admin.MailOff {
		terminal.Say(out, "Note: users can't get keys, because the node sends no e-mail; start it with --smtp-addr.\n")
	}
}

// printChangedAccount returns a function that prints the change and the account.
func printChangedAccount(outcome string) func(io.Writer, *admin.Account) {
	return func(out io.Writer, account *admin.Account) {
		terminal.Say(out, "Account %s %s.\n\n", account.ID, outcome)
		printAccount(out, account)
	}
}

// digestCharacters is the number of characters shown of a document's digest.
const digestCharacters = 12

func printQuarantine(out io.Writer, values []admin.QuarantineEntry) {
	if len(values) == 0 {
		terminal.Say(out, "The quarantine is empty.\n")
		return
	}
	terminal.Table(out, "NUMBER\tWHEN\tSOURCE\tINSTITUTION\tCHANNEL\tKIND\tBUY\tSELL\tDATE\tREASON\tDOCUMENT\tDETAIL", values, func(v *admin.QuarantineEntry) []any {
		digest := v.Document[:min(digestCharacters, len(v.Document))]
		return []any{v.Number, v.ObservedAt, v.SourceID, v.InstitutionID, v.Channel, v.Kind, v.Buy, v.Sell, v.EffectiveDate, v.Reason, digest, v.Detail}
	})
}

func printQuarantineResult(out io.Writer, result *admin.QuarantineResult, outcome string) {
	v := &result.Entry
	terminal.Say(out, "%s %s by %s: %s:%s:%s:%s, %s / %s, of %s.\n", v.Number, outcome, result.By, v.InstitutionID, v.Currency, v.Channel, v.Kind, v.Buy, v.Sell, v.SourceID)
	printPublished(out, result.Published)
}

func printRateSet(out io.Writer, change *admin.RateChange) {
	if change.Quarantined == nil {
		terminal.Say(out, "%s is set by %s.\n", change.ID, change.By)
	}
	for _, notice := range change.Notices {
		terminal.Say(out, "Warning: %s\n", notice)
	}
	printPublished(out, change.Published)
}

// printPublished prints the published rate (buy and sell price). offer is nil if there is none.
func printPublished(out io.Writer, offer *admin.Offer) {
	if offer == nil {
		terminal.Say(out, "Nothing is published for it now.\n")
		return
	}
	until := "until"
	if offer.Stale {
		until = "stale since"
	}
	terminal.Say(out, "Published now: %s / %s of %s, %s %s.\n", offer.Buy, offer.Sell, offer.SourceID, until, offer.ExpiresAt)
}

// printCluster prints the state of a cluster and a table of its nodes. Without a majority, a node still answers
// requests from its reserved (leased) parts of quotas. LACKS is the number of log records missing on a node.
func printCluster(out io.Writer, c *engine.Cluster) {
	state := "a majority of the nodes is there: changes are possible"
	if !c.Majority {
		state = "no majority: reads and leased requests go on, changes are refused"
	}
	terminal.Say(out, "%s: %s, since %s\n\n", c.Cluster, state, c.Since)
	terminal.Table(out, "NODE\tADDRESS\tSTATE\tRECORD\tLACKS\tVERSION", c.Nodes, func(n *engine.ClusterNode) []any {
		return []any{n.Name, n.Address, clusterNodeState(n, c.Majority), n.Record, n.Lag, n.Version}
	})
}

// clusterNodeState describes a node of a cluster in a few words. Without a majority no copy of the log is known to be
// complete.
func clusterNodeState(n *engine.ClusterNode, majority bool) string {
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
		parts = append(parts, "not a member")
	case majority && !n.Current && (n.Self || n.Reachable):
		parts = append(parts, "its copy of the log is incomplete")
	}
	if n.OtherMembers {
		parts = append(parts, "has another list of members")
	}
	return strings.Join(parts, ", ")
}

// readinessSummary describes the readiness of a node: its status, and each condition except OK ones.
func readinessSummary(s *admin.Readiness) string {
	parts := []string{string(s.Status)}
	for _, c := range s.Conditions {
		if c.State != engine.ConditionOK {
			parts = append(parts, c.Name+": "+c.State)
		}
	}
	return strings.Join(parts, ", ")
}
