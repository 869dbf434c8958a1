// Package commitlog makes the state changes of a node durable, in one order. Each change is an event, encoded as a
// record. A Journal stores the records: in a directory, or in a stream shared by several nodes (SharedJournal).
//
// # Terms
//
//	owner     an actor with state: a currency actor, a shard of the accounts, or the registrar of logins
//	sequence  the number of a record in the journal; the first record has number 1
//	batch     the writes that one call of Journal.Append makes durable
//	bundle    one record of a SharedJournal: all records of one batch of one node
//	window    the records of a SharedJournal that are delivered to the owners but not yet applied
//
// # A change
//
//	owner      makes events from a command, and sends their records in a Write
//	Actor      collects the waiting writes in one batch; it never waits for the disk
//	writer     appends the batch with one sync
//	Actor      sends WriteResult to each owner of the batch, in order; then it starts the next batch
//	owner      applies its events, which makes them visible, and answers the caller of the command
//
// After the errors ReadOnly and TooLarge the journal can still be used. Any other error stops the node. Health reports
// a slow or full disk; reading it needs no message to an actor.
//
// # Snapshots
//
// The Actor sends a SnapshotRequest to every owner. The owners answer with their immutable states after the newest
// record. Together these form a StateSnapshot, which a separate goroutine writes while commits continue. A failed
// snapshot loses nothing: the journal keeps all records that the snapshot would have replaced.
//
// # Several nodes
//
// With a SharedJournal the follower delivers the records of the cluster, including this node's own, in one order. Only
// the node that leads writes; others' writes are rejected with ErrNotLeader. follower.go describes this.
//
// Start with log.go, then journal.go and actor.go.
package commitlog
