// Package actors is who may touch what, and when: it runs the engine's state in actors and journals every
// change. System implements engine.Service and engine.Intake; Open starts it, Close ends it.
//
// # Who owns what
//
//	currency    one actor for each currency: its book, the commands that wait for it, the pages cut from it
//	directory   the newest board of every currency, for the questions that span currencies
//	journal     the order of records: the only writer of the journal, takes snapshots
//
// A resident's fields are touched only by its own methods, which run one at a time. What leaves an actor
// (pages, boards, receipts) is immutable. There are no locks around state.
//
// # Goroutines
//
//	relief (at least two)  runs actors that a fact woke up, or whose asker has served others long enough
//	writer                 waits for the disk: appends, and lets go of old records
//	keeper                 encodes and writes snapshots
//	recover, apply         replay at the start, then end
//
// Close waits for all of them. An actor never waits: not for the disk, not for another actor. Only a
// caller waits (question.wait), and the goroutines above for their work.
//
// # Life of a read
//
//	handler      System.Ranking                      phase, anything published at all?
//	  |  question from the pool
//	mailbox      idle: the asker runs the actor itself, with nothing allocated and no switch;
//	  |          busy: queued; full: answered "overloaded" at once
//	currency     view of this moment (built again after a change or an expiry), cached page
//	  |  reply
//	handler      the page; the question goes back to the pool
//
// A question ends exactly once: reply, overflow, panic (internal error), stop, no such actor, or the
// asker's deadline. Whoever comes second frees it. An abandoned question costs the actor nothing.
//
// # Life of a write
//
//	caller       System.Observe                      split by currency, cut into commands
//	currency     Decide → events → records           all that waits is decided as one batch
//	journal      gathers the batches of all currencies
//	writer       Append: one sync for all of it
//	journal      committed, in order; the next batch
//	currency     Apply, board to the directory, receipts; then decides what has come meanwhile
//
// Nothing is applied, served or acknowledged before it is durable. Reads go on meanwhile, from the last
// board. A command whose decision panics, or makes a record that no log can hold, fails alone.
//
// # Snapshots
//
// Between two batches the journal sends each currency a share of a cut: behind the commits up to record S
// and before those after it, because letters of one sender stay in order. The currency answers with its
// board and goes on. The keeper encodes the boards; then the writer lets go of old records. Export and
// States are cuts as well.
//
// # Recovery
//
// Open verifies the journal (package wal) and returns. The replay restores the newest snapshot and applies
// the records after it, without clock or rules; then the actors are spawned with the finished books. Until
// then every method answers CodeDataUnavailable with an estimate of the rest (E4). A record of an unknown
// kind or newer version is ErrUnknownRecord, never passed over.
//
// # When something fails
//
//   - A panic while reading: that question gets an internal error; the actor keeps its state.
//   - A panic while changing, a failed append or sync: fail-stop. Done is closed, Err says why, everything
//     that waits and every later write is answered with an error, nothing more is written; reads go on from
//     the last durable state until the process ends. No actor is ever started again with empty state.
//   - No space (wal.ErrNoSpace): that write is answered CodeReadOnly; the next one tries again.
//   - A snapshot that fails is logged and tried again later; the log has everything.
//
// # The library
//
// protoactor gives addresses, lifecycle and supervision. Not used, each for a reason: futures (twice the
// cost, a race near the timeout), its mailboxes (unbounded, or silently dropping), restarts (they forget
// the state), receive timeouts (they lose messages), its logger (colour on the standard error output). Stop
// drops what is queued without a word, so the mailbox settles it.
//
// # Decided here
//
//   - A1: while the log replays, institutions and currencies answer 503 as well; from the catalogue only
//     when it is known that nothing was ever published (E4).
//   - A2: after fail-stop reads go on; every write is answered read_only.
//   - A3: a write whose outcome a failure left open is an internal error that says so.
//   - A4: calls after Close get data_unavailable and Retry-After 2.
package actors
