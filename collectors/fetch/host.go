package fetch

import (
	"context"
	"sync"
	"time"
)

// hostsMax bounds the number of stored hosts and origins. Only a site with many subdomains has so many.
const hostsMax = 256

// hosts maps names to hosts. The zero value is empty.
type hosts struct {
	mu     sync.Mutex
	byName map[string]*host
}

// host serialises the requests to a host, with pauses. Goroutines lock it in the order of their calls.
type host struct {
	token       chan struct{} // has one element while the host is locked
	nextRequest time.Time     // end of the pause; guarded by token
	pause       time.Duration // guarded by token
}

// lock locks a host by name; the caller must unlock it. If ctx ends first, lock returns its error. Hosts after the
// first hostsMax share a lock.
func (h *hosts) lock(ctx context.Context, name string) (*host, error) {
	h.mu.Lock()
	if h.byName == nil {
		h.byName = map[string]*host{}
	}
	if h.byName[name] == nil && len(h.byName) >= hostsMax {
		name = ""
	}
	if h.byName[name] == nil {
		h.byName[name] = &host{token: make(chan struct{}, 1)}
	}
	locked := h.byName[name]
	h.mu.Unlock()
	select {
	case locked.token <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		<-locked.token
		return nil, err
	}
	return locked, nil
}

// unlock begins a pause and unlocks the host.
func (h *host) unlock(now time.Time, pause time.Duration) {
	h.nextRequest, h.pause = now.Add(pause), pause
	<-h.token
}

// wait returns the remaining pause, at most h.pause. Without this limit, a clock set back would lengthen the pause.
func (h *host) wait(now time.Time) time.Duration { return min(h.nextRequest.Sub(now), h.pause) }

// table is a map for concurrent use with at most hostsMax entries.
type table[T any] struct {
	mu     sync.Mutex
	values map[string]T
}

func (t *table[T]) get(key string) (value T, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, known = t.values[key]
	return value, known
}

// put sets a value. A full table is emptied.
func (t *table[T]) put(key string, value T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values == nil || len(t.values) >= hostsMax {
		t.values = map[string]T{}
	}
	t.values[key] = value
}

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
