// Package account has the rules about callers: accounts, their keys, login codes and sessions, and how many requests
// each may make. Like package engine it starts nothing, stores nothing and reads no clock: times come in as arguments,
// changes go out as events.
//
// Admitter, Service and Operator are the contract between the actors, which own the state, and their callers: a front
// end admits requests, the owner of an account makes and revokes keys, an operator suspends accounts and sets quotas.
//
// An Account has keys and two quota windows, the day and the minute. Registry has e-mail addresses, login codes and
// sessions. Both change as an engine.CurrencyState does: a decision returns an event, the owner writes it to the log,
// Apply changes the state, and does the same in a replay. AnonymousTable counts requests without a key by client
// address, in memory only. KeyPolicy is the announcement that keys will be required.
//
// # Leases
//
// To write every request to the log would be too slow. An account takes a lease, a part of its daily quota, in the log
// and spends it in memory:
//
//	Admit → spend a request of the lease
//	NextLease → Leased → (log) → Apply: before the lease is used up
//	Return → Returned → (log) → Apply: at a stop
//
// After a crash the last lease counts as spent. In a cluster every node leases for itself (cluster_leases.go), and
// ApplyRemote applies what other nodes have decided. A decision that is not yet in the log at that time was made
// without it: its owner takes it back (AbortLease, Rollback) and decides again.
//
// # Secrets
//
// Keys, tokens and codes are never stored: a Digest of them is, or a keyed hash. A Secret prints as [redacted].
//
//	service.go                                   the contract
//	account.go, state.go, evicted.go             accounts
//	admission.go, quota.go, counters.go          admission and its windows
//	lease.go, token_lease.go, cluster_leases.go  leases
//	registry.go, registry_*.go                   logins
//	anonymous.go, login_clients.go               limits by client address
//	email.go, secret.go                          addresses and secrets
//	key_policy.go                                when keys are required
//
// The numbered rules that tests are named after are in docs/decisions.md.
package account
