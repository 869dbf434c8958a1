// Package accounts runs accounts, logins and anonymous clients in actors. It admits requests, leases quotas, and
// creates keys and sessions. The rules are in package engine/account. Package commitlog makes the events durable.
// Accounts implements account.Admitter, account.Service and account.Operator.
//
//	AccountActor    one for each account, from start to stop: its keys, its quota windows (day and minute), its lease
//	ShardActor      (16) has a part of the accounts, and gathers what they write
//	RegistrarActor  e-mail addresses, login codes and sessions; the date from which keys are required
//	AnonymousActor  (16) counts the requests of clients without a key, by IP address, in memory only
//
// # How a request with a key is admitted
//
// To write every request to the log would be too slow. An account leases a part of its quota in the log, and spends the
// lease in memory.
//
//	Admit          looks up the actor of the key's account
//	AccountActor   spends one request of the lease; when half of it is spent, sends the next lease to its shard
//	ShardActor     gathers events of many accounts, and writes them as one batch
//
// With the first lease of a day the shard writes a grant of that day (account.DayGranted). Its other accounts spend
// their first lease of the day without a record. A stop writes what they have spent, and takes the grant back.
//
// All messages except admissions reach an account through its shard, in order. Therefore a snapshot of the state
// contains the events of all accounts up to the same record of the log. It contains both a new account and its first
// session, or neither of them.
//
// # Start and stop
//
// Replay rebuilds the state from a snapshot and the newer events. After a replay every lease counts as spent. Therefore
// ReturnLeases, before a stop, returns the unspent part of each lease. A crash forfeits at most one lease of each
// account.
//
// All actors use one clock, monotonicClock.
//
// Start with admit.go, account.go and shard.go. Logins begin in registrar.go.
package accounts
