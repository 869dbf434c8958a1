// Package accounts runs accounts, logins and anonymous clients in actors: it admits requests, leases quotas and makes
// keys and sessions. The rules are those of engine/account; package commitlog makes what they decide durable.
// Accounts implements account.Admitter, account.Service and account.Operator. Package actors starts it with the state
// of a replay, and stops it.
//
//	account     one actor for each account in use: its keys, its two quota windows, its lease
//	shard       (16) a share of the accounts: the evicted ones, as bytes, and the actors of the loaded ones
//	registrar   addresses, codes, sessions and their limits; the policy of required keys
//	anonymous   (16) a table of clients without a key, by address, in memory only
//
// # A request
//
//	Admit       the index of keys knows the account of a key and, while it is loaded, its actor
//	account     admits or refuses; admitted requests were leased durably before, and the next lease is asked for before
//	            this one is used up
//	shard       only for an account that is not loaded: makes its actor and passes the question on
//	outbox      where accounts leave events to be written; the shard writes all of them as one batch
//
// An idle account is evicted: its shard takes the state back while the mailbox is closed, so no message reaches an
// actor without state, and a caller whose message the closed mailbox refuses asks the shard. All messages but
// admissions reach an account through its shard, in order; so a snapshot has the same records of every account, and
// an account created by a record together with its session, or neither.
//
// # Start and stop
//
// A replay applies events to a snapshot, without clock or rules. An account's lease then counts as spent. ReturnLeases
// returns what is left; a crash forfeits at most one lease of each account.
//
// There is one clock (clock.go). It never goes back, and a step of the wall clock does not change the day for a minute.
//
// Start with admit.go, then account.go and shard.go; registrar.go for logins.
package accounts
