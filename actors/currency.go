package actors

import (
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// currencyActor holds the state of one currency, and decides and applies all changes of it. Reads do not reach this
// actor: readers answer from the snapshots on the board.
type currencyActor struct {
	self   *mailbox.Ref
	clock  func() time.Time
	log    *commitlog.Log
	board  *board
	index  int // index of the currency in System.codes
	state  *engine.CurrencyState
	writes writes
}

// Receive implements mailbox.Actor.
func (c *currencyActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *command:
		c.accept(m)
	case *commitlog.WriteResult:
		c.committed(m)
	case *commitlog.RemoteEvents[engine.Event]:
		c.remote(m)
	case *commitlog.SnapshotRequest:
		c.share(m)
	case *mailbox.NodeFailed:
		c.RejectAll(m.Err)
	}
}

// FailsNode implements mailbox.Actor. A panic in a change is fatal: the state may be half changed, or a command lost.
func (c *currencyActor) FailsNode(mailbox.Message) bool { return true }
