// Package commitlog makes the state changes of a node durable, in one order. The changes come from owners. An owner is
// an actor with state: a currency actor, a shard of the accounts, or the registrar of logins. Each change is an event,
// encoded as a record. A Journal stores the records: in a directory, or in a stream shared by several nodes
// (SharedJournal).
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
// Between two batches the Actor sends a SnapshotRequest to every owner. The owners answer with their immutable states
// after the newest record. Together these form a StateSnapshot. A second worker writes it while commits continue. A
// failed snapshot loses nothing: the journal keeps all records that it would have replaced.
//
// # Several nodes
//
// With a SharedJournal the follower delivers the records of the cluster, including this node's own, in one order. Only
// the node that leads writes; others' writes are rejected with ErrNotLeader. replication.go describes this.
//
// Start with log.go, then journal.go and actor.go.
package commitlog
