// Package actors runs the engine's state in actors (package mailbox) and journals every change. System implements
// engine.Service, engine.Ingester and engine.Health, account.Admitter, account.Service and account.Operator.
//
//	currency    one actor for each currency: its state, and the commands that wait for it
//	directory   the newest snapshot of every currency, for requests that span currencies
//	reader      one actor for each processor: copies of pages, for callers
//	journal     the order of records: the only writer of the log; takes snapshots
//
// Package internal/accounts has the actors of accounts, logins and anonymous clients, package internal/commitlog the
// journal actor. Imports go one way: actors, accounts, commitlog, mailbox.
//
// Only its actor touches a state; there are no locks around it. Pages, snapshots and receipts are immutable. An actor
// never waits, neither for the disk nor for another actor: it sends a message, or passes the request on.
//
// # A read
//
//	caller      Ranking: asks the reader of its processor
//	reader      has the page, or passes the request on to the owner
//	currency    makes the page, once for each state and query; answers the caller and sends the reader the page
//
// # A change
//
//	caller      Observe: splits refreshes by currency, into commands
//	currency    decides all waiting commands as one batch, in a job beside the actor: commands, events, records
//	journal     gathers the batches of all actors; the writer appends them with one sync
//	currency    applies the events in a job, informs the directory and the readers, answers with receipts
//
// Nothing is applied, served or acknowledged before it is durable. Reads go on meanwhile, from the last snapshot. A
// command whose decision panics, or makes a record that does not fit into the log, fails by itself. The answer to a
// scheduled slot is one write for each currency; if a crash falls between them, the slot is not done, and
// observations that were accepted before are repeated.
//
// # Start, snapshots, failure
//
// The replay loads the newest snapshot and applies the records after it, without clock or rules; until then every
// method answers CodeDataUnavailable. A record of an unknown kind is ErrUnknownRecord. Between two batches the
// journal asks every actor for its part of a snapshot. An account's lease counts as spent after a crash; Close
// returns the rest of it.
//
// A panic while reading costs that request. A panic while changing, a failed append or sync stops all changes: Done is
// closed, every later write is answered read_only, and reads go on until the process ends. A full disk (wal.ErrNoSpace)
// refuses that write only. A write whose result is unknown is an internal error that says so.
//
// Also: before the first rate institutions and currencies are answered from the catalogue. Without a mailer a request
// for a code is answered data_unavailable, but counts. A login attempt beyond the limits is recorded like a wrong
// one, so its answer takes as long. A suspended account can log in, list and revoke its keys. A change of the key
// policy while another is being written is answered overloaded. Without a majority a change is answered read_only,
// and Close abandons it. A record of another node about an unknown currency stops the node; after its next start it
// has the currency.
//
// Start with system.go, then currency.go, reader.go and write.go.
package actors
