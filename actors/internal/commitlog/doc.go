// Package commitlog makes the decisions of all actors durable, in one order. It is the one package that knows how a log is written: where
// the log lives is behind Journal, so a log in a directory and one that several nodes write (SharedJournal) are the same to everything above.
//
//	owner      decides, encodes, sends a Write: records, and what other owners must be told of them (Notification)
//	Actor      gathers what waits into one batch; it never touches the disk itself
//	Writer     appends the batch with one sync
//	Actor      sends each owner Committed, in order; then the next batch
//	owner      applies its events; nothing is applied, served or acknowledged before
//
// An owner has at most one Write under way. Of errors only those of space and size leave the log usable (ReadOnly, TooLarge); any other one
// stops the node. Health tells how the disk does, without asking an actor.
//
// # Snapshots
//
// Between two batches the Actor sends every owner its SnapshotRequest of a StateSnapshot: behind all commits up to record S and before those after it. What
// owners hand over is immutable, so the Writer writes it as a snapshot while everything goes on. A snapshot that fails costs only room.
//
// # Several nodes
//
// With a SharedJournal journal the Follower hands over the records of all nodes in one order, this one's own too; sharing.go tells how a write
// that was decided on an older state comes back (ErrConflict) and is decided again, and how few records are under way at once (Window).
//
// Start with journal.go; then snapshot.go, follower.go, sharing.go.
package commitlog
