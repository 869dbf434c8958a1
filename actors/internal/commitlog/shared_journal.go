package commitlog

import (
	"context"
	"errors"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// SharedJournal is a Journal that several nodes write. All of them get the same records in the same order and come to
// the same state. Each record is a bundle (record.Bundle) of one node.
//
// It differs from other journals: Last and Read describe this node's copy as it was when the journal was opened.
// Append offers one record for the place after expected. It returns nil if the record is there, ErrPosition if
// another one is, and otherwise waits, without a majority of the nodes too, until the journal is closed. Follow
// delivers all records, those of this node before or after their Append returns.
type SharedJournal interface {
	Journal
	// Node is the number of this node.
	Node() engine.NodeID
	// Follow delivers the records after Last, in order and without a gap, as they become durable. It returns nil when
	// ctx ends; after any other error the node must stop. A record is valid only during the call.
	Follow(ctx context.Context, deliver func(sequence uint64, record []byte)) error
	// ClusterHealth is this node's view of its cluster, from memory.
	ClusterHealth() ClusterHealth
}

// ClusterHealth is a node's view of its cluster.
type ClusterHealth struct {
	Majority bool      // writes can become durable
	Since    time.Time // of Majority
	Leader   string    // name of the node that orders writes; "" = unknown
}

// Quorum tells whether changes can be decided. The zero Quorum is that of a single node: they always can.
type Quorum struct{ Shared SharedJournal }

// Lost reports that there is no majority.
func (q Quorum) Lost() bool { return q.Shared != nil && !q.Shared.ClusterHealth().Majority }

// AskChange asks the owner of a state for a change and waits for the answer.
func AskChange[A, Q any](owner *mailbox.Ref, query Q, timeout time.Duration, q Quorum) (A, error) {
	m := mailbox.NewQuestion[Q, A](query)
	owner.Send(m)
	answer, err := m.Wait(timeout)
	return answer, q.TimeoutError(err)
}

// TimeoutError turns the expiry of a change into ErrOutcomeUnknown if there is no majority.
func (q Quorum) TimeoutError(err error) error {
	if errors.Is(err, mailbox.ErrExpired) && q.Lost() {
		return ErrOutcomeUnknown
	}
	return err
}
