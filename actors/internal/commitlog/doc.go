// Package commitlog makes the events of all owners of state durable, in one order. Owners are actors: currencies,
// accounts and the registry of logins. A Journal stores the log in a directory, or in a stream to which several nodes
// write (SharedJournal).
//
//	owner      makes a decision, encodes its events and sends a Write
//	Actor      collects waiting writes in one batch; it never waits for the disk
//	worker     appends the batch with one sync
//	Actor      sends Committed to each owner, in order; then the next batch
//	owner      applies its events; before this they are not visible, and callers get no reply
//
// An owner has at most one Write in flight. After the errors ReadOnly and TooLarge the log can still be used; any other
// error stops the node. Health reports slow and full disks without a message to an actor.
//
// # Snapshots
//
// Between two batches the Actor sends a SnapshotRequest to every owner. Their states after the last record form a
// StateSnapshot. The states are immutable, so another worker writes them while commits continue. After a failed
// snapshot the log only needs more space.
//
// # Several nodes
//
// With a SharedJournal the follower delivers the records of all nodes in one order, including its own. replication.go
// describes how a write that was decided on an outdated state is rejected (ErrConflict) and decided again.
//
// Start with log.go, then journal.go and actor.go.
package commitlog
