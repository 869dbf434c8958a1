package fetch

import (
	"context"
	"time"
)

// host serialises the requests to a host, with pauses. Goroutines lock it in the order of their calls.
type host struct {
	token       chan struct{} // contains one element while the host is locked
	nextRequest time.Time     // end of the pause; guarded by token
	pause       time.Duration // guarded by token
}

// lockHost locks a host by name; the caller must unlock it. If ctx ends first, lockHost returns its error.
func (c *Client) lockHost(ctx context.Context, name string) (*host, error) {
	value, _ := c.hosts.LoadOrStore(name, &host{token: make(chan struct{}, 1)})
	h := value.(*host)
	select {
	case h.token <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		<-h.token
		return nil, err
	}
	return h, nil
}

// unlock begins a pause and unlocks the host.
func (h *host) unlock(now time.Time, pause time.Duration) {
	h.nextRequest, h.pause = now.Add(pause), pause
	<-h.token
}

// wait returns the remaining pause, at most h.pause. Without this limit, a clock set back would lengthen the pause.
func (h *host) wait(now time.Time) time.Duration { return min(h.nextRequest.Sub(now), h.pause) }

// sleep waits for the span, or returns the error of ctx as soon as ctx ends.
func sleep(ctx context.Context, span time.Duration) error {
	if span <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
