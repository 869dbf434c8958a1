package commitlog

import (
	"context"
	"errors"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// SharedJournal is a Journal to which several nodes write. All nodes get the same records in the same order and reach
// the same state. Each record is a bundle (record.Bundle) of one node.
//
// It differs from other journals: Last and Read describe this node's copy when the journal was opened. Append proposes
// one record for the sequence after expected. It returns nil if the record got the sequence, and ErrPosition if
// another record did. Until one of them is known or the journal is closed, it waits, even without a majority. Follow
// delivers all records. It delivers those of this node before or after their Append returns.
type SharedJournal interface {
	Journal
	// Node returns the ID of this node.
	Node() engine.NodeID
	// Follow calls deliver for each record after Last, in order and without gaps, when it is durable. It returns nil
	// when ctx ends. After an error the node must stop. record is valid only during the call.
	Follow(ctx context.Context, deliver func(sequence uint64, record []byte)) error
	// ClusterHealth returns this node's view of the cluster. It does not block.
	ClusterHealth() ClusterHealth
}

// ClusterHealth is a node's view of its cluster.
type ClusterHealth struct {
	Majority bool      // writes can become durable
	Since    time.Time // of Majority
	Leader   string    // name of the node that orders writes; "" = unknown
}

// Quorum reports whether the cluster has a majority. The zero Quorum is that of a single node, which always has.
type Quorum struct{ Shared SharedJournal }

// Lost reports whether there is no majority.
func (q Quorum) Lost() bool { return q.Shared != nil && !q.Shared.ClusterHealth().Majority }

// AskChange asks an owner for a change and waits for the reply.
func AskChange[A, Q any](owner *mailbox.Ref, query Q, timeout time.Duration, q Quorum) (A, error) {
	m := mailbox.NewRequest[Q, A](query)
	owner.Send(m)
	answer, err := m.Wait(timeout)
	return answer, q.TimeoutError(err)
}

// TimeoutError returns ErrOutcomeUnknown if err is the timeout of a change and there is no majority. Otherwise it
// returns err.
func (q Quorum) TimeoutError(err error) error {
	if errors.Is(err, mailbox.ErrExpired) && q.Lost() {
		return ErrOutcomeUnknown
	}
	return err
}
