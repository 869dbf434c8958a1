// Package actors is who may touch what, and when: it runs the engine's state in actors and journals every
// change. System implements engine.Service, engine.Intake, account.Gate, account.Service and
// account.Operator; Open starts it, Close ends it.
//
// # Who owns what
//
//	currency    one actor for each currency: its book, the commands that wait for it, the pages cut from it
//	directory   the newest board of every currency, for the questions that span currencies
//	journal     the order of records: the only writer of the journal, takes snapshots
//	account     one actor for each account that somebody asks about: its keys, its two windows, its lease
//	shard       (16) a share of the accounts: all that are idle, as bytes, and the way to the actors of the others
//	registrar   addresses, codes, sessions and the brakes on them; the transition to required keys
//	strangers   (4) a table of callers without a key, by address, in memory only
//
// A resident's fields are touched only by its own methods, which run one at a time. What leaves an actor
// (pages, boards, receipts) is immutable. There are no locks around state.
// One thing is read by everybody: the index from keys to accounts (keyindex.go), without a lock; it is only
// a hint where to ask.
//
// # Goroutines
//
//	relief (at least two)  runs actors that a fact woke up, or whose asker has served others long enough
//	errand                 decides or applies for one currency, then ends; together they leave a processor free
//	writer                 waits for the disk: appends, and lets go of old records; idle, it looks at space and clock
//	keeper                 encodes and writes snapshots
//	sweeper                tells the shards when to put idle accounts aside; in a cluster, when to ask the others for their leases
//	follower               in a cluster: hands the journal actor the records of all nodes
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
//	currency     queues it; all that waits is decided as one batch
//	errand       Decide → events → records
//	journal      gathers the batches of all currencies
//	writer       Append: one sync for all of it
//	journal      committed, in order; the next batch
//	errand       Apply, the next board and its view
//	currency     both at once for its readers, board to the directory, receipts; then what has come meanwhile
//
// Nothing is applied, served or acknowledged before it is durable. Reads go on meanwhile, from the last
// board: a turn of a currency's actor is short whatever is taken in, because nothing of a book is done in
// one. The book is the errand's while one is at work, and an errand takes breath every fraction of a
// millisecond (breath.go), so that on a single processor readers go first as well. A command whose decision
// panics, or makes a record that no log can hold, fails alone.
//
// An answer to a slot of the schedule is one write for each currency that it speaks of. A crash may fall
// between them: Slots calls such a slot undone, and whoever was heard for it answers Repeated when it is
// handed over again.
//
// # Life of an admission
//
//	handler      System.Admit                        index: which account may have this key?
//	  |  question from the pool
//	shard        passes it on; an account without an actor gets one first
//	  |  the same question
//	account      key, suspension, both windows, charge; asks for the next lease when half of one is left
//	  |  reply
//	handler      the grant
//
// Two letters, nothing allocated. When nothing leased is left the question is parked until the lease is
// durable; it is refused when the journal cannot take it. An answer that nobody waits for any more is taken
// back.
//
// What accounts want to be kept they leave in the outbox of their shard, which writes it as one batch and
// passes the outcomes on. So a shard is the only one that ever sends to its accounts. When a mailbox of
// theirs is quiet the actor has done everything, and its state belongs to the shard until the next letter:
// it is put aside, or handed to a snapshot, without a message that could be lost or overtaken.
//
// The record that makes an account is written by the registrar, together with the session that its owner
// got. The journal itself brings the shard the news, between that batch and whatever comes after, so that
// every cut has the account on both sides or on none.
//
// # Several nodes
//
// A Journal that is Shared is written by several nodes, and each of them gets all records in one order. What the journal actor gathers is one
// record there, a bundle (bundle.go), offered for the place behind the last record that was delivered (sharing.go):
//
//	owner        decides, and says how many letters about other nodes' records it had taken in
//	journal      packs what waits into a bundle with a token of its own
//	writer       Append: offers it for one place
//	follower     delivered: the record of that place, of whatever node
//	journal      its own token: committed, in order. Another node's: foreign letters to the owners that it is about; of the offer, what
//	             was decided by these is void (errConflict), the rest is offered again behind the record
//	owner        foreign: applies it; conflict: decides the same commands again on the new state, and nobody hears of it
//
// So every rule that one owner decides holds on all nodes together: two active keys, five tries of a code, one publication of a slot, a day's
// quota. A write has one outcome, and the log alone knows it: what Append returns only frees the writer. Everything is applied in the order
// of the log, own records too, so a cut at a record is the same state on every node. A currency applies between two errands (learn.go);
// of a shard a conflict goes on to those accounts alone that the record was about (foreign.go); the registrar takes back all that is not
// durable and rules it again (registrar_foreign.go).
//
// The follower waits when 64 records are not applied by all owners, so nothing is ever dropped and no mailbox grows. Leases are of one node
// (account.Leased.Node); an account that rests gives them back, so that other nodes get them. Without a majority nothing is decided: changes
// are refused at the door, and by the journal actor for those who wait for a lease; reads and what is leased go on.
//
// # Snapshots
//
// Between two batches the journal sends each currency a share of a cut: behind the commits up to record S
// and before those after it, because letters of one sender stay in order. The currency answers with its
// board, once what was committed before is in it, and goes on, a shard with its accounts, the registrar with a
// cut of the registry, which shares its rows and takes it microseconds. The keeper encodes them; then
// the writer lets go of old records. Export and States are cuts as well, of boards alone.
//
// # Backup
//
// System.Backup is the journal's: the newest snapshot and the records behind it, while everything goes on. No
// actor takes part. Survey reads such a copy back as a replay does and counts what it amounts to.
//
// # Recovery
//
// Open verifies the journal (package wal) and returns. The replay restores the newest snapshot and applies
// the records after it, without clock or rules; then the actors are spawned with the finished books. Until
// then every method answers CodeDataUnavailable with an estimate of the rest (E4). A record of an unknown
// kind or newer version is ErrUnknownRecord, never passed over.
//
// What a start costs is memory more than anything else (F8), so it makes little. Records are decoded into
// batches that are used again when they were applied, and texts that occur again and again are kept once (package
// internal/record, which knows what records and snapshots look like). Accounts stay the bytes that the snapshot
// holds, checked, until an event or a question is about them.
//
// Steady time (account.Moment) goes on at the newest that the log knows. An account counts as spent what it
// had leased. Close has every account give back what it has not spent, so that a clean stop costs nothing.
//
// # How it is
//
// Conditions (health.go) answers from memory: whoever meets a fault notes it. The writer looks twice a second whether the disk would
// take a batch and whether the wall clock goes with the monotonic one (clock.go). A step of more than 5 s is suspect: the days of quotas
// go on as if it had not been, until it is taken back or has lasted a minute. A day that an account has leased from never gives way to
// an earlier one (account.Account), so that a clock that goes back opens no window again. A snapshot that found no space is tried again
// when there is some.
//
// Stats (stats.go) is for metrics: what waits in mailboxes, accounts, leases, how fresh currencies are, the log. It asks no actor either:
// whoever does a thing counts it, and what costs nothing to count is all that is counted.
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
//     In a cluster so is one that had been offered when the majority was lost, for whoever can't wait until it is back.
//   - A4: calls after Close get data_unavailable and Retry-After 2.
//   - A5: without a mailer a request for a code is answered data_unavailable. What the mailer's queue refuses
//     is answered as it says; the pause until the next code passes all the same.
//   - A6: with limits off nothing is counted; keys, once required, are still asked for (L10, K7).
//   - A7: a try beyond the limits against guessing leaves a record like a wrong one: its answer takes as long.
//   - A8: a refund that finds a full mailbox is given up: the request stays charged.
//   - A9: one change of the transition at a time; another one meanwhile is answered overloaded.
//   - A10: a suspended account can log in and see and revoke its keys; they are refused until it is restored.
//   - A11: without a majority a change is answered read_only; Close gives up what was offered and waits for no majority.
//   - A12: a record of another node about a currency that this one lacks stops the node; started again, it has it.
package actors
