// Package commitlog makes the state changes of a node durable, in one order. The changes come from actors that keep
// state, called owners: currency actors, shards of accounts, and the registrar of logins. Each change is an event,
// encoded as a record. A Journal stores the records: in a directory, or in a stream to which several nodes write
// (SharedJournal).
//
//	owner      makes events from a command, and sends their records in a Write
//	Actor      collects the waiting writes in one batch; it never waits for the disk
//	writer     appends the batch with one sync
//	Actor      sends WriteResult to each owner of the batch, in order; then it starts the next batch
//	owner      applies its events; only then they are visible, and the caller of the command gets its answer
//
// An owner has at most one Write in flight. After the errors ReadOnly and TooLarge the journal can still be used. Any
// other error stops the node. Health reports a slow or full disk. It can be read without a message to an actor.
//
// # Snapshots
//
// Between two batches the Actor sends a SnapshotRequest to every owner. The owners answer with their states after the
// newest record. Together these form a StateSnapshot. These states are immutable. Therefore another worker can write
// them while commits continue. A failed snapshot loses nothing: the journal keeps all records that the snapshot would
// have replaced.
//
// # Several nodes
//
// With a SharedJournal the follower delivers the records of all nodes, including its own, in one order. A write is
// rejected with ErrConflict if another node has changed the state from which its owner made the records.
// replication.go describes this.
//
// Start with log.go, then journal.go and actor.go.
package commitlog
