package accounts

import (
	"sync"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
)

// FlushDelay is the time for which a shard collects events before it writes them, if no request waits for one of them.
// On a node with one processor the sync of a write stops all requests, so fewer writes are better. Most of these events
// are quota leases, which accounts request seconds before they need them. An account that spends faster ends the delay
// for all shards (writeTimer.flushNow).
const FlushDelay = 250 * time.Millisecond

// checkReturnsInterval is the time between two CheckReturns messages in a cluster.
const checkReturnsInterval = 5 * time.Second

// Flush tells a shard to write its waiting events.
type Flush struct{ mailbox.OneWay }

// CheckReturns tells a shard to send checkReturn to all its accounts.
type CheckReturns struct{ mailbox.OneWay }

// writeTimer sends Flush to all shards FlushDelay after schedule, or at once after flushNow. In a cluster it also sends
// CheckReturns. Its methods do not block.
type writeTimer struct {
	shards []*mailbox.Ref // set before the first message

	mu             sync.Mutex
	delay, returns *time.Timer // nil: not waiting
	ended          bool
}

// schedule makes the shards write after FlushDelay.
func (t *writeTimer) schedule() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.delay == nil && !t.ended {
		t.delay = time.AfterFunc(FlushDelay, t.flushNow)
	}
}

// flushNow makes the shards write now.
func (t *writeTimer) flushNow() {
	t.mu.Lock()
	stopTimer(t.delay)
	t.delay = nil
	t.mu.Unlock()
	t.send(&Flush{})
}

// checkReturns sends CheckReturns from now on.
func (t *writeTimer) checkReturns() {
	t.send(&CheckReturns{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.returns = time.AfterFunc(checkReturnsInterval, t.checkReturns)
	}
}

func (t *writeTimer) send(m mailbox.Message) {
	for _, shard := range t.shards {
		shard.Send(m)
	}
}

// stop ends the messages. Later events are written only if a request waits for them.
func (t *writeTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	stopTimer(t.delay)
	stopTimer(t.returns)
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
