// Package actors runs the engine's state in actors (package mailbox) and records every change in a journal. System
// implements what a server needs: engine.Service, engine.Ingester and engine.Health, account.Admitter, account.Service
// and account.Operator.
//
//	currency    one actor for each currency: has its state and the commands that change it
//	reader      one actor for each processor: answers every question about data, from the newest snapshots
//	journal     one actor: orders the records of all changes, and takes snapshots
//
// The journal actor is in package internal/commitlog. The actors of accounts, logins and anonymous clients are in
// package internal/accounts. Imports go one way: actors, accounts, commitlog, mailbox.
//
// A state has no lock, because only its actor accesses it. Pages, snapshots and receipts are immutable. An actor never
// waits for the disk or for another actor. It sends a message.
//
// # A read
//
//	caller      Ranking asks the reader of this processor
//	reader      looks at the board, which has the newest snapshot of every currency
//	            answers from its cache of pages, which it makes once for each state and query
//
// # A change
//
//	caller      Observe splits the refreshes (the rates of each source) by currency, into commands
//	currency    takes all waiting commands as one batch; makes events from them and encodes these as records
//	journal     collects the batches of all actors, and appends them with one sync
//	currency    applies the events, posts the new snapshot to the board, and answers the commands
//
// No change is applied, served or acknowledged before it is durable. Meanwhile reads get the state before the change.
// If the decision on a command panics, or makes a record that does not fit into the log, only this command fails.
//
// The observations of one scheduled time (slot) are written separately for each currency. If the node crashes between
// these writes, the slot does not count as done. The source is then fetched again. Repeated observations change
// nothing.
//
// # Start, snapshots, failure
//
// Open starts a replay, which loads the newest snapshot and applies the records after it. It needs neither the time nor
// the rules of validation. Until the replay is done, every method returns CodeDataUnavailable. A record of an unknown
// kind ends the replay with ErrUnknownRecord. An account reserves its quota in parts, called quota leases. After a
// crash the unused rest of a lease counts as used; Close returns it.
//
// A panic in a read fails only that request. After a panic in a change, or a failed append or sync, the node closes
// Done and rejects every change as read_only. Reads go on until the process ends. A full disk (wal.ErrNoSpace) only
// rejects the write. A caller whose change may or may not be durable gets an internal error that says so.
//
// # Special cases
//
// Before the first rate, Currencies and Institutions answer from the catalogue. Without a Mailer, RequestCode returns
// data_unavailable, but still counts the request. A login attempt beyond the limits is recorded like a wrong code, so
// that its response takes as long. A suspended account can log in, and list and revoke its keys. While one change of
// the key policy (from when on API keys are required) is being written, another one returns overloaded. Without a
// majority of the cluster, a change returns no_majority, and Close abandons a change in progress. If another node adds
// a currency that this node does not know, this node stops. It knows the currency after its next start.
//
// Start with system.go, then currency.go, reader.go and write.go.
package actors
