package commitlog

import (
	"context"
	"errors"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// SharedJournal is a Journal that several nodes write. All of them get the same records in the same order, so that all come to the same state;
// each record is a bundle (record.Bundle) of what one node wrote at once, and tells which.
//
// What differs from a Journal of one's own: Last and Read speak of the copy that this node has, as it was when the journal was opened.
// Append offers one record for the place behind expected. It returns without an error when the record stands there, with ErrPosition when
// another one does, and otherwise only when the journal is closed: while no majority of the nodes can be reached it waits, because until
// then nobody knows. Follow hands over what stands, one's own records too; whether before or after Append returns is left open.
type SharedJournal interface {
	Journal
	// Node is which node this is.
	Node() engine.NodeID
	// Follow hands over the records behind Last, in order and without a gap, as they become durable, until ctx ends: then it
	// returns nil. An error is why it can't go on; the node must stop then. A record is valid only during the call.
	Follow(ctx context.Context, deliver func(sequence uint64, record []byte)) error
	// ClusterHealth is how this node stands with the others; from memory.
	ClusterHealth() ClusterHealth
}

// ClusterHealth is how a node stands with the others of its cluster.
type ClusterHealth struct {
	Majority bool      // writes can be made durable
	Since    time.Time // of Majority, as it is
	Leader   string    // name of the node through which writes go; "" = unknown
}

// Quorum is what a node may count on; the zero one is of a node that is alone.
type Quorum struct{ Shared SharedJournal }

// UncoveredBytes reports that nothing can be made durable for want of a majority.
func (q Quorum) Lost() bool { return q.Shared != nil && !q.Shared.ClusterHealth().Majority }

// AskChange asks the owner of a state for a change and waits so long for it.
func AskChange[A, Q any](owner *mailbox.Ref, query Q, timeout time.Duration, q Quorum) (A, error) {
	m := mailbox.NewQuestion[Q, A](query)
	owner.Send(m)
	answer, err := m.Wait(timeout)
	return answer, q.TimeoutError(err)
}

// TimeoutError is the answer to a change that could not be waited for: without a majority it is unknown whether it is kept.
func (q Quorum) TimeoutError(err error) error {
	if errors.Is(err, mailbox.ErrExpired) && q.Lost() {
		return ErrOutcomeUnknown
	}
	return err
}
