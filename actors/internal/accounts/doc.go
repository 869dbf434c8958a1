// Package accounts runs accounts, logins and anonymous clients in actors. It admits requests, leases quotas and creates
// keys and sessions. The rules are in engine/account; package commitlog makes events durable. Accounts implements
// account.Admitter, account.Service and account.Operator. Package actors starts it after a replay, and stops it.
//
//	account     one actor for each account in use: its keys, its two quota windows, its lease
//	shard       (16) a share of the accounts: the encoded evicted accounts, and the actors of the loaded accounts
//	registrar   addresses, login codes, sessions and their limits; the key policy
//	anonymous   (16) a table of clients without a key, by address, in memory only
//
// # A request
//
//	Admit       finds the account of the key in the index of keys and, if the account is loaded, its actor
//	account     admits or refuses requests from its durable lease; asks for the next lease before this one is used up
//	shard       only if the account is not loaded: loads it and passes the request on
//	outbox      holds events of accounts until the shard writes all of them as one batch
//
// An idle account is evicted: its mailbox is closed, and its shard encodes the state. A caller whose message the closed
// mailbox rejects sends it to the shard, so no message reaches an actor without state.
//
// All messages except admissions reach an account through its shard, in order. So a snapshot contains the same records
// for every account, and either both an account and its first session, or neither.
//
// # Start and stop
//
// A replay applies events to a snapshot, without clock or rules. Leases then count as spent. ReturnLeases returns the
// unused part of each lease. A crash forfeits at most one lease of each account.
//
// There is one clock (clock.go). It never goes back. For a minute a step of the wall clock does not change the day.
//
// Start with admit.go, then account.go and shard.go; registrar.go for logins.
package accounts
