// Package accounts runs accounts, logins and anonymous clients in actors: it admits requests, leases quotas, makes keys and sessions.
// Its rules are those of engine/account; what it decides package commitlog makes durable. Accounts is account.Admitter, account.Service and
// account.Operator; package actors starts it with the state of a replay and ends it.
//
//	account     one actor for each account in use: its keys, its two quota windows, its lease
//	shard       (16) a share of the accounts: all that are idle, as bytes, and the way to the actors of the others
//	registrar   addresses, codes, sessions and the limits on them; the announcement of required keys
//	strangers   (4) a table of clients without a key, by address, in memory only
//
// # A request
//
//	Admit        the index of keys says which account to ask; without a key, the table of the client's address
//	shard        passes the question on to the account's actor, which it wakes when it was idle
//	account      admits or refuses; what it spends was leased durably before, the next lease is asked for before this one is used up
//	outbox       where accounts leave what they want kept; the shard writes all of it as one batch
//
// A shard is the only sender to its accounts, so when a mailbox of theirs is idle their state is the shard's: to put aside, or to hand to a
// snapshot (Ref.Evicted). Shards are told of new accounts by the log, so that every cut has an account and its session, or neither.
//
// # A start, and an end
//
// Replay applies events to what a snapshot held, without clock or rules. What an account had leased then counts as spent. ReturnLeases gives
// back what is not spent; a crash forfeits at most one lease of each account.
//
// Time is that of one clock (clock.go): it never goes back, and a wall clock that steps is not believed for a minute.
//
// Start with gate.go, then shard.go and account.go; registrar.go for logins.
package accounts
