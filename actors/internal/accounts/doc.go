// Package accounts runs accounts, logins and anonymous clients in actors. It admits requests, leases quotas, and
// creates keys and sessions. The rules are in package engine/account. Package commitlog makes the events durable.
// Accounts implements account.Admitter, account.Service and account.Operator.
//
//	AccountActor    one for each account: its keys, its quota windows (day and minute), its lease
//	ShardActor      (16) owns a part of the accounts, and sends their events to the journal
//	RegistrarActor  owns the registry (e-mail addresses, login codes, sessions) and the key policy
//	AnonymousActor  (16) counts the requests of clients without a key, by IP address, in memory only
//
// # Terms
//
//	lease         a part of an account's quota, reserved by one record of the log and then spent in memory
//	grant         a record that gives every account of a shard its first lease of a day (account.DayGranted)
//	key policy    the date from which every request needs an API key
//	fingerprint   the first bytes of an API key's digest, by which the node finds the key's account
//	remote event  an event that another node of the cluster has written
//
// # How a request with a key is admitted
//
// Writing every request to the log would be too slow, so accounts lease their quotas.
//
//	Admit          looks up the actor of the key's account
//	AccountActor   spends one request of the lease; after half of it, sends the next lease to its shard
//	ShardActor     sends events to the journal, which writes those of many accounts as one batch
//
// With its first lease of a day a shard also writes a grant. The other accounts of the shard then spend their first
// lease of the day without a record. At a stop the shard writes what they have spent, and ends the grant.
//
// In a cluster the leader decides. On another node the shard sends leases to the leader, many in one call. The leader
// writes a lease unless the account has an event that the other node had not applied, and all nodes get the lease with
// the log (shard.go).
//
// All messages to an account except admissions go through its shard, in order. A snapshot therefore contains the events
// of all accounts up to the same record of the log. It contains both a new account and its first session, or neither.
//
// # Start and stop
//
// Replay rebuilds the state from a snapshot and the newer events. After a replay every lease counts as spent, so a
// crash forfeits at most one lease of each account. Before a normal stop, ReturnLeases returns the unspent part of each
// lease.
//
// All actors use one clock, monotonicClock.
//
// Start with admit.go, account.go and shard.go. Logins begin in registrar.go.
package accounts
