// Package actors runs the engine's state in actors (package mailbox) and records every change in a journal. System
// implements the interfaces that a server uses: engine.Service, engine.Ingester and engine.Health, account.Admitter,
// account.Service and account.Operator.
//
//	currency    one actor for each currency: holds its state and its waiting commands
//	reader      one actor for each processor: answers all queries from the newest snapshots
//	journal     one actor: orders the records of all changes, and takes snapshots
//	board       not an actor: the newest snapshot of every currency, shared by the readers
//
// The journal actor is in package internal/commitlog. The actors of accounts, logins and anonymous clients are in
// package internal/accounts. Imports go one way: actors, accounts, commitlog, mailbox.
//
// A state needs no lock, because only its actor accesses it. Pages, snapshots and receipts are immutable. An actor
// sends messages and never waits for the disk or for another actor.
//
// # A read
//
//	caller      Ranking asks the reader of this processor
//	reader      takes the newest snapshots from the board
//	            answers from its cache of pages; a page is made once for each state and query
//
// # A change
//
//	caller      Observe splits the refreshes (the rates of each source) by currency, into commands
//	currency    takes all waiting commands as one batch; makes events from them and encodes these as records
//	journal     collects the batches of all actors, and appends them with one sync
//	currency    applies the events, posts the new snapshot to the board, and answers the commands
//
// No change is applied, served or acknowledged before it is durable. Until then reads get the previous state. If the
// decision on a command panics, or its record does not fit into the log, only this command fails.
//
// Sources are fetched at scheduled times (slots). The rates of one slot are written separately for each currency. If
// the node crashes between these writes, the slot is not done and the source is fetched again. Repeated rates change
// nothing.
//
// # Start, snapshots, failure
//
// Open starts a replay: it loads the newest snapshot and applies the later records. A replay uses neither the clock nor
// the validation rules. Until the replay is done, every method returns CodeDataUnavailable. A record of an unknown kind
// ends the replay with ErrUnknownRecord. Accounts reserve their quotas in parts (quota leases). After a crash the
// unused rest of a lease counts as used; Close returns it.
//
// A panic in a read fails only that request. After a panic in a change, or after a failed append or sync, the node
// closes Done and rejects every change as read_only. Reads continue until the process ends. A full disk
// (wal.ErrNoSpace) rejects only the write. If it is unknown whether a change is durable, its caller gets an internal
// error that says so.
//
// # Special cases
//
// Before the first rate, Currencies and Institutions answer from the catalogue. Without a Mailer, RequestCode returns
// mail_unavailable. A login attempt beyond an address's limits is recorded like a wrong code, so that both responses
// take equally long. A suspended account can log in, and list and revoke its keys. The key policy sets the date from
// which API keys are required. While one change of this policy is being written, another one gets overloaded. Without a
// majority of the cluster, a change returns no_majority, and Close abandons a change in progress. If another node adds
// a currency unknown to this node, this node stops; after a restart it knows the currency.
//
// Start with system.go, then reader.go and write.go.
package actors
