// Package account has accounts, API keys, login codes and sessions, and the rules for quotas. Like package engine it
// starts no goroutines, writes no files and reads no clock: times are arguments, and changes are returned as events.
//
// Package actors owns the state and implements three interfaces. Admitter admits requests. Service lets the owner of an
// account log in and manage keys. Operator lets an operator suspend accounts and set quotas.
//
// An Account has keys and two quota windows: the day and the minute. The Registry has e-mail addresses, login codes and
// sessions. Both change in three steps. A decision returns an event. The actor writes the event to the log. Apply then
// changes the state, and in a replay of the log changes it in the same way. AnonymousTable counts requests without an
// API key by client address, in memory only. KeyPolicy has the time from which API keys are required.
//
// # Leases
//
// It would be too slow to write every request to the log. An account therefore leases a part of its daily quota with
// one event, and spends the lease in memory:
//
//	Admit                                    spends a request of the lease
//	NextLease → Leased → (log) → Apply       takes the next lease, before the current one is used up
//	Return → Returned → (log) → Apply        gives unspent requests back, when the node stops
//
// The first lease of a day needs no event of the account if its shard has a DayGranted in the log (grants.go).
//
// After a crash the newest lease counts as spent. In a cluster every node has its own leases (cluster_leases.go), and
// ApplyRemote applies events of other nodes. When such an event arrives, some decisions of this node may not be in the
// log yet. They were made without the event, so the actor reverts them (AbortLease, Rollback) and decides again.
//
// # Secrets
//
// Keys, session tokens and login codes are never stored, only hashes of them. A Secret prints as [redacted].
//
//	service.go                                   the interfaces
//	account.go, state.go                         accounts
//	admission.go, quota.go, counters.go          admission of requests, and the quota windows
//	lease.go, grants.go                          leases, grants of days
//	token_lease.go, cluster_leases.go            leases in a cluster
//	registry.go, registry_*.go                   logins
//	anonymous.go, login_clients.go               limits by client address
//	email.go, secret.go                          e-mail addresses and secrets
//	key_policy.go                                when keys are required
//
// The tests are named after numbered rules, which docs/decisions.md lists.
package account
