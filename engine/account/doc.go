// Package account implements accounts, API keys, login codes and sessions, and the rules for quotas. Like package
// engine it starts no goroutines, writes no files and reads no clock: times are arguments, and changes are returned as
// events.
//
// Package actors owns the state and implements three interfaces. Admitter admits requests. Service lets the owner of an
// account log in and manage keys. Operator lets an operator suspend accounts and set quotas.
//
// An Account consists of keys and two quota windows: the day and the minute. The Registry consists of e-mail addresses,
// login codes and sessions. Both change in three steps. A decision returns an event. The actor writes the event to the
// log. Apply then changes the state. A replay of the log calls Apply too. AnonymousTable counts requests without an API
// key by client address, in memory only. KeyPolicy is the time from which API keys are required.
//
// # Terms
//
//	lease:    requests of a daily quota that one event reserves, to be spent in memory
//	token:    in a cluster, a leased request that this node may still spend
//	shard:    a group of accounts whose events are written together
//	grant:    one event that gives each account of a shard its first lease of a day
//	charge:   to count a request in both quota windows; a refund takes it back
//	pending:  decided, but not in the log yet
//	closed:   a day that accepts no charges, because its grants were dropped
//	network:  a prefix of client addresses, such as an IPv6 /48
//	share:    the part of a common limit that one requester may use
//	newcomer: an e-mail address without an account
//	known browser: the browser of the newest login with an e-mail address
//	seal:     the stored form of a login code, a keyed hash
//
// # Leases
//
// Writing every request to the log would be too slow. An account therefore leases (reserves) a part of its daily quota
// with one event, and spends the lease in memory:
//
//	Admit                                         spends a request of the lease
//	NextLease → Grant → Leased → (log) → Apply    takes the next lease, before the current one is used up
//	Return → Grant → Returned → (log) → Apply     gives unspent requests back, when the node stops
//
// The first lease of a day needs no event of the account if there is a DayGranted event of its shard.
//
// After a crash the newest lease counts as spent. In a cluster every node has its own leases (lease.go): it
// asks the leader, which calls Grant, and Apply applies the events of all nodes.
//
// # Secrets
//
// Keys, session tokens and login codes are never stored, only hashes of them. A Secret prints as [redacted].
//
//	service.go         the interfaces, and when keys are required
//	account.go         accounts
//	quota.go           admission of requests, and the quota windows
//	lease.go           leases, also in a cluster, and grants of days
//	registry.go        logins
//	clients.go         limits by client address
//	secret.go          e-mail addresses and secrets
//
// The tests are named after numbered rules, which docs/decisions.md lists.
package account
