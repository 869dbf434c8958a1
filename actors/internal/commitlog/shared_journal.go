package commitlog

import (
	"context"
	"errors"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// SharedJournal is a Journal of several nodes, to which one of them writes, the leader. All nodes get the same records
// in the same order and reach the same state. Each record is a bundle of one node (record.Bundle).
//
// Its methods differ from those of a local journal:
//
//	Join        must return before any other method except Close is called
//	Last, Read  cover this node's copy of the records at the return of Join
//	Append      appends one record. expected is a term of Leadership. If this node does not lead in that term any more,
//	            Append does nothing and returns ErrNotLeader; if it ceases to lead meanwhile, ErrOutcomeUnknown. If this
//	            node's disk has no space for the record, it does nothing and returns wal.ErrNoSpace.
//	Follow      delivers all later records, including this node's own, before or after Append returns
type SharedJournal interface {
	Journal
	// Join blocks until this node may serve its copy of the records. It returns the cluster's secret of 32 bytes for
	// checking login codes.
	Join(ctx context.Context) (loginCodeKey []byte, err error)
	// Node returns the ID of this node.
	Node() engine.NodeID
	// Follow calls deliver for each durable record after Last, in order and without gaps. It returns nil when ctx ends.
	// After an error the node must stop. record is valid only during the call.
	Follow(ctx context.Context, deliver func(sequence uint64, record []byte)) error
	// Leadership returns the term in which this node leads the cluster, or 0, and the sequence of the newest record of
	// earlier terms. Records of the term itself come only from this node. It does not block.
	Leadership() (term, after uint64)
	// Ask sends a request to the node that leads and returns its answer. ErrNotLeader means that no node has received
	// the request. Any other error leaves open what the leader did.
	Ask(ctx context.Context, request []byte) (answer []byte, err error)
	// Serve sets the function that answers other nodes. An empty answer means that it did nothing.
	Serve(answer func(request []byte) []byte)
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
