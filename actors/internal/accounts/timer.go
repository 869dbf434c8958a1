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

// writeTimer is a goroutine that sends Flush to all shards FlushDelay after schedule, or at once after flushNow. In a
// cluster it also sends CheckReturns.
type writeTimer struct {
	shards         []*mailbox.Ref // set before start
	wake, now, end chan struct{}
	done           sync.WaitGroup
}

func newWriteTimer() *writeTimer {
	return &writeTimer{wake: make(chan struct{}, 1), now: make(chan struct{}, 1), end: make(chan struct{})}
}

// schedule makes the shards write after FlushDelay. It does not block.
func (t *writeTimer) schedule() { signal(t.wake) }

// flushNow makes the shards write now. It does not block.
func (t *writeTimer) flushNow() { signal(t.now) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // signalled already
	}
}

func (t *writeTimer) start(inCluster bool) {
	var returns <-chan time.Time
	stop := func() {}
	if inCluster {
		ticker := time.NewTicker(checkReturnsInterval)
		returns, stop = ticker.C, ticker.Stop
	}
	t.done.Go(func() {
		defer stop()
		t.run(returns)
	})
}

func (t *writeTimer) run(returns <-chan time.Time) {
	delay := time.NewTimer(FlushDelay)
	defer delay.Stop()
	delay.Stop()
	waiting := false
	for {
		var message mailbox.Message = &Flush{}
		select {
		case <-t.end:
			return
		case <-t.wake:
			if !waiting {
				waiting = true
				delay.Reset(FlushDelay)
			}
			continue
		case <-returns:
			message = &CheckReturns{}
		case <-t.now:
			waiting = false
			delay.Stop()
		case <-delay.C:
			waiting = false
		}
		for _, shard := range t.shards {
			shard.Send(message)
		}
	}
}

// stop ends the goroutine. Later events are written only if a request waits for them.
func (t *writeTimer) stop() {
	close(t.end)
	t.done.Wait()
}
