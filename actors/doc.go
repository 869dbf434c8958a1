// Package actors is who may touch what, and when: it runs the engine's state in actors (package mailbox) and journals every change.
// System implements engine.Service, Intake and Health, account.Admitter, Service and Operator; Open starts it, Close ends it and waits for its goroutines.
//
// # Who owns what
//
//	currency    one actor for each currency: its book, the commands that wait for it, the pages cut from it
//	directory   the newest board of every currency, for the questions that span currencies
//	journal     the order of records: the only writer of the log, takes snapshots
//
// Accounts, logins and anonymous clients have actors of their own (internal/accounts). The journal actor, its goroutines and the cuts of
// snapshots are package internal/commitlog. The arrow runs one way: actors → accounts → commitlog → mailbox.
//
// State is touched only by its actor; there are no locks around it. What leaves an actor (pages, boards, receipts) is immutable. An actor
// never waits, neither for the disk nor for another actor: it sends a message, or passes the question on.
//
// # A change
//
//	caller      Observe: split by currency, cut into commands
//	currency    queues them; all that wait are decided as one batch, by a job beside the actor: Decide → events → records
//	journal     gathers the batches of all owners of state; the writer appends them with one sync
//	journal     committed, in order; the next batch
//	currency    a job applies: Apply, the next board and its view; the actor takes both, tells the directory, answers with receipts
//
// Nothing is applied, served or acknowledged before it is durable. Reads go on meanwhile, from the last board. A command whose decision
// panics, or makes a record that no log can hold, fails alone. An answer to a slot of the schedule is one write for each of its currencies;
// when a crash falls between them, Slots calls the slot undone, and observations that were taken in answer Repeated.
//
// Start with system.go, then currency.go and write.go.
//
// # Start, snapshots, failure
//
// The replay restores the newest snapshot and applies the records after it, without clock or rules; until then every method answers
// CodeDataUnavailable (decision E4). A record of an unknown kind is ErrUnknownRecord, never passed over. Between two batches the journal
// sends every owner its share of a snapshot: after the commits up to record S, before those after it. What an account had leased counts as
// spent; Close gives back what is unspent.
//
// A panic while reading costs that question. A panic while changing, a failed append or sync is fail-stop: Done is closed, every later
// write is refused, reads go on from the last durable state until the process ends. No space (wal.ErrNoSpace) refuses that write only.
//
// # Decided here
//
//   - A1: while the log replays, institutions and currencies answer 503 as well; from the catalogue only when nothing was ever published.
//   - A2: after fail-stop reads go on; every write is answered read_only.
//   - A3: a write whose outcome a failure (or a lost majority, when its caller cannot wait) left open is an internal error that says so.
//   - A4: calls after Close get data_unavailable and Retry-After 2.
//   - A5: without a mailer a request for a code is answered data_unavailable; the pause until the next code passes all the same.
//   - A6: with limits off nothing is counted; keys, once required, are still asked for (decisions L10, K7).
//   - A7: a try beyond the limits against guessing leaves a record like a wrong one: its answer takes as long.
//   - A8: a refund that finds a full mailbox is given up: the request stays charged.
//   - A9: one change of the transition at a time; another one meanwhile is answered overloaded.
//   - A10: a suspended account can log in and see and revoke its keys; they are refused until it is restored.
//   - A11: without a majority a change is answered read_only; Close gives up what was offered and waits for no majority.
//   - A12: a record of another node about a currency that this one lacks stops the node; started again, it has it.
package actors
