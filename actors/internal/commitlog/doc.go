// Package commitlog makes the decisions of all owners of state durable, in one order. Owners are actors: currencies,
// accounts and the registry of logins. Journal hides where the log is: in a directory, or in a stream that several
// nodes write (SharedJournal).
//
//	owner      decides, encodes its events and sends a Write
//	Actor      gathers waiting writes into one batch; it never waits for the disk
//	worker     appends the batch with one sync
//	Actor      sends Committed to each owner, in order; then the next batch
//	owner      applies its events: nothing is applied, served or acknowledged before
//
// An owner has at most one Write in flight. After errors of space and size (ReadOnly, TooLarge) the log stays usable;
// any other error stops the node. Health reports slow and full disks without asking an actor.
//
// # Snapshots
//
// Between two batches the Actor sends a SnapshotRequest to every owner: their states after record S form a
// StateSnapshot. The states are immutable, so a second worker writes them while commits continue. A failed snapshot
// costs only space.
//
// # Several nodes
//
// With a SharedJournal the follower delivers the records of all nodes in one order, including its own. replication.go
// describes how a write that was decided on an outdated state is rejected (ErrConflict) and decided again.
//
// Start with log.go, then journal.go and actor.go.
package commitlog
