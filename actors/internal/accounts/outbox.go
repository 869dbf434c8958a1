package accounts

import (
	"sync"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// FlushDelay is how long an event of an account may stay in the outbox of its shard if no request waits for the event.
// During the delay, events of many accounts join one write, whose sync stops all requests of a node with one processor.
// Most of the events are quota leases, which an account usually asks for seconds before it needs them. An account that
// is faster ends the delay for all (outboxFlusher.hurry).
const FlushDelay = 250 * time.Millisecond

// outbox collects events of the accounts of a shard. The shard takes them when it receives OutboxFilled: at once if a
// request waits for an event, else within about FlushDelay.
type outbox struct {
	shard   *mailbox.Ref
	flusher *outboxFlusher

	mu       sync.Mutex
	notified bool // an OutboxFilled is in the mailbox of the shard
	events   []pendingEvent
	returns  int  // calls of returned since the last take
	failed   bool // an account has stopped without returning its lease
}

// OutboxFilled tells a shard to take the events from its outbox.
type OutboxFilled struct{ mailbox.OneWay }

func (o *outbox) post(p pendingEvent, urgent bool) {
	o.mu.Lock()
	o.events = append(o.events, p)
	o.mu.Unlock()
	if urgent {
		o.notify()
	} else {
		o.flusher.schedule()
	}
}

// returned tells the shard that an account has posted its last event before a stop, or has none to post. returns is
// false if the account could not return its lease.
func (o *outbox) returned(returns bool) {
	o.mu.Lock()
	o.returns++
	o.failed = o.failed || !returns
	o.mu.Unlock()
	o.notify()
}

func (o *outbox) encode(event account.Event) ([]byte, error) {
	return record.Encode(event)
}

// notify sends OutboxFilled, unless the outbox is empty or the shard has a notice that it has not handled.
func (o *outbox) notify() {
	o.mu.Lock()
	send := !o.notified && len(o.events)+o.returns > 0
	o.notified = o.notified || send
	o.mu.Unlock()
	if send {
		o.shard.Send(&OutboxFilled{})
	}
}

// take removes all events. An event that is posted later causes another OutboxFilled.
func (o *outbox) take() (events []pendingEvent, returns int, failed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	events, returns = o.events, o.returns
	o.events, o.returns, o.notified = nil, 0, false
	return events, returns, o.failed
}

// outboxFlusher is a goroutine that notifies all shards FlushDelay after an event was posted.
type outboxFlusher struct {
	outboxes []*outbox // set before start
	wake     chan struct{}
	now      chan struct{} // ends the delay
	stop     chan struct{}
	done     sync.WaitGroup
}

func newOutboxFlusher() *outboxFlusher {
	return &outboxFlusher{wake: make(chan struct{}, 1), now: make(chan struct{}, 1), stop: make(chan struct{})}
}

func (f *outboxFlusher) start() {
	f.done.Add(1)
	go f.run()
}

// schedule makes the shards empty their outboxes after FlushDelay. It does not block.
func (f *outboxFlusher) schedule() {
	select {
	case f.wake <- struct{}{}:
	default: // scheduled already
	}
}

// hurry makes the shards empty their outboxes now. It does not block.
func (f *outboxFlusher) hurry() {
	select {
	case f.now <- struct{}{}:
	default:
	}
}

func (f *outboxFlusher) run() {
	defer f.done.Done()
	timer := time.NewTimer(FlushDelay)
	defer timer.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-f.wake:
			timer.Reset(FlushDelay)
		}
		select {
		case <-f.stop:
			return
		case <-timer.C:
		case <-f.now:
		}
		for _, outbox := range f.outboxes {
			outbox.notify()
		}
	}
}

// end stops the flusher. Events that are posted afterwards are written only if a request waits for them.
func (f *outboxFlusher) end() {
	close(f.stop)
	f.done.Wait()
}
