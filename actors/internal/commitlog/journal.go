package commitlog

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Journal stores records durably and in order. Append, DropBefore and Read must not run concurrently with each other.
// WriteSnapshot may run concurrently with them.
type Journal interface {
	// Last returns the number (sequence) of the newest durable record, or 0 if there is none. The first record has
	// sequence 1.
	Last() uint64
	// Append makes all records durable, or none, and returns the new Last. ErrPosition means that Last was not
	// expected. After wal.ErrNoSpace and wal.ErrLimit nothing was written, and the journal can still be used. After any
	// other error the journal cannot be used, and only the next open shows whether the records were written.
	Append(expected uint64, records [][]byte) (last uint64, err error)
	// Read calls visit for each record in order, beginning with sequence from. record is valid only during the call.
	Read(from uint64, visit func(sequence uint64, record []byte) error) error
	// Snapshot opens the newest complete snapshot: the state after the record with the returned sequence. ok is false
	// if there is no snapshot. The caller closes r.
	Snapshot() (sequence uint64, r io.ReadCloser, ok bool, err error)
	// WriteSnapshot stores the output of write as a snapshot of the state after the record with the given sequence.
	WriteSnapshot(sequence uint64, write func(io.Writer) error) error
	// DropBefore may delete records before the given sequence. It keeps records that a stored snapshot needs.
	DropBefore(sequence uint64) error
	// Close releases the journal. Appended records are already durable.
	Close() error
}

const (
	// BundleBytesMax is the maximum size of an encoded record.Bundle, which contains all records of one write in a
	// cluster. A bundle is one raft entry, which package wal stores as one record, headers included.
	BundleBytesMax = 1<<20 - 16<<10
	// BundlePayloadMax is the maximum total size of a bundle's records. The rest of a bundle (kind, length, node and
	// token) takes at most 32 bytes.
	BundlePayloadMax = BundleBytesMax - 32
	// RecordOverhead is the maximum number of bytes before each record: its length in a batch, or its tag and length in
	// a bundle.
	RecordOverhead = 4
)

const _ = uint(wal.RecordBytesMax - BundleBytesMax)

// BatchBytesMax returns the limit of BatchBytes for a batch, or for a bundle if bundled is true.
func BatchBytesMax(bundled bool) int {
	if bundled {
		return BundlePayloadMax
	}
	return wal.BatchBytesMax
}

// BatchBytes returns the encoded size of records in a batch.
func BatchBytes(records [][]byte) int {
	total := 0
	for _, record := range records {
		total += RecordOverhead + len(record)
	}
	return total
}

// SharedJournal is a Journal of several nodes, to which one of them writes, the leader. All nodes get the same records
// in the same order and reach the same state. Each record is a bundle of one node (record.Bundle).
//
// Its methods differ from those of a local journal:
//
//	Join        must return before any other method except Close is called
//	Last, Read  cover this node's copy of the records at the return of Join
//	Append      proposes one record and does not wait for its outcome. expected is a term of Leadership. If this node
//	            does not lead in that term, Append does nothing and returns ErrNotLeader. If this node's disk has no
//	            space for the record, it does nothing and returns wal.ErrNoSpace.
//	Follow      delivers all later records, including this node's own, before or after Append returns; and says when this
//	            node no longer leads, so that the outcome of its proposals is unknown
type SharedJournal interface {
	Journal
	// Join blocks until this node may serve its copy of the records. It returns the cluster's secret of 32 bytes for
	// checking login codes.
	Join(ctx context.Context) (loginCodeKey []byte, err error)
	// Node returns the ID of this node.
	Node() engine.NodeID
	// Follow calls deliver for each durable record after Last, in order and without gaps. It returns nil when ctx ends.
	// After an error the node must stop. record is valid only during the call. Another goroutine calls lost at once when
	// a term of Leadership has ended.
	Follow(ctx context.Context, deliver func(sequence uint64, record []byte), lost func(term uint64)) error
	// Leadership returns the term in which this node leads the cluster, or 0, and the sequence of the newest record of
	// earlier terms. Records of the term itself come only from this node. It does not block.
	Leadership() (term, after uint64)
	// Ask sends a request to the node that leads and returns its answer. ErrNotLeader means that no node has received
	// the request. Any other error leaves open what the leader did.
	Ask(ctx context.Context, request []byte) (answer []byte, err error)
	// Serve sets the functions that answer other nodes and write a backup of this node's state for them. An empty answer
	// means that the node did nothing.
	Serve(answer func(request []byte) []byte, backup func(io.Writer) error)
	// ClusterHealth returns this node's view of the cluster. It does not block.
	ClusterHealth() ClusterHealth
}

// ClusterHealth is a node's view of its cluster.
type ClusterHealth struct {
	Majority bool      // the node reaches a majority: writes can become durable
	Since    time.Time // last change of Majority
	Leader   string    // name of the node that orders writes; "" = unknown

	// DiskFull: the write to this node's own copy waits for disk space.
	DiskFull bool
	// DiskSince is the start of the disk write in progress to this node's own copy; zero if none.
	DiskSince time.Time
}

// Majority reports whether the cluster has a majority. The zero value is for a node without a cluster.
type Majority struct{ Shared SharedJournal }

// Lost reports whether the cluster has no majority. Without a cluster it returns false.
func (q Majority) Lost() bool { return q.Shared != nil && !q.Shared.ClusterHealth().Majority }

// writeProblem returns why this node's changes cannot become durable now: ErrNoMajority, wal.ErrNoSpace, or nil.
func (q Majority) writeProblem() error {
	if q.Shared == nil {
		return nil
	}
	switch h := q.Shared.ClusterHealth(); {
	case !h.Majority:
		return ErrNoMajority
	case h.DiskFull:
		return wal.ErrNoSpace
	}
	return nil
}

// AskChange asks an owner for a change and returns the answer. It converts the error with ChangeError.
func AskChange[A, Q any](owner *mailbox.Ref, query Q, timeout time.Duration, q Majority) (A, error) {
	m := mailbox.NewRequest[Q, A](query)
	owner.Send(m)
	answer, err := m.Wait(timeout)
	return answer, q.ChangeError(err)
}

// ChangeError converts the error of a change: after a timeout without a majority to ErrOutcomeUnknown.
func (q Majority) ChangeError(err error) error {
	if errors.Is(err, mailbox.ErrExpired) && q.Lost() {
		return ErrOutcomeUnknown
	}
	return err
}

const (
	retryReadOnly   = 30 * time.Second
	retryNoMajority = 2 * time.Second // an election takes about as long
)

// ErrPosition means that the newest record of the journal has an unexpected number (sequence), because another process
// has written to the journal.
var ErrPosition = errors.New("the journal does not end with the expected record")

// ErrNoMajority is the cause of write errors while this node cannot reach a majority of the cluster.
var ErrNoMajority = errors.New("no majority of the cluster's members is reachable")

// ErrNotLeader means that the node that was asked for a change does not lead the cluster. Nothing was changed.
var ErrNotLeader = &engine.Error{
	Code: engine.CodeNoMajority, Message: "the nodes of the service are choosing their leader, so changes must wait; try again later", RetryAfter: retryNoMajority,
	Cause: errors.New("the node that was asked does not lead the cluster"),
}

// ErrOutcomeUnknown is returned for a change in progress when the cluster loses its leader or its majority.
var ErrOutcomeUnknown = engine.ErrOutcomeUnknown

// ReadOnly returns the error for a write while the journal accepts none. cause is ErrNoMajority, wal.ErrNoSpace, or the
// error that has stopped the journal.
func ReadOnly(cause error) *engine.Error {
	e := &engine.Error{Code: engine.CodeReadOnly, RetryAfter: retryReadOnly, Cause: cause}
	reason := "the node cannot write its log"
	switch {
	case errors.Is(cause, ErrNoMajority):
		e.Code, e.RetryAfter, reason = engine.CodeNoMajority, retryNoMajority, ErrNoMajority.Error()
	case errors.Is(cause, wal.ErrNoSpace):
		reason = "the disk of the node is nearly full"
	}
	e.Message = reason + ", so changes and new quota leases must wait; try again later"
	return e
}

// TooLarge returns the error for a write that does not fit into one batch of the journal.
func TooLarge(cause error) *engine.Error {
	return &engine.Error{
		Code: engine.CodePayloadTooLarge, Message: "the refresh is larger than a record can be; split it", Cause: cause,
	}
}

// writeError converts an error of Journal.Append into an error for callers of the API.
func writeError(err error) *engine.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wal.ErrNoSpace):
		return ReadOnly(err)
	case errors.Is(err, wal.ErrLimit):
		return TooLarge(err)
	}
	return &engine.Error{
		Code: engine.CodeInternalError, Message: "the change may or may not have been kept; check it after the next start of the node", Cause: err,
	}
}
