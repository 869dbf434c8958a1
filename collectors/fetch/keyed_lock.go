package fetch

import (
	"context"
	"sync"
	"time"
)

// keysMax bounds how many names (hosts, origins) are remembered. A site that sends us around its subdomains can fill the table, and
// then only costs others their pause and their cached robots.txt.
const keysMax = 256

// keyedLocks are queues by name: one holder each, the others wait in the order in which they came.
type keyedLocks[T any] struct {
	mu    sync.Mutex
	locks map[string]*keyedLock[T]
}

// keyedLock is one queue with what belongs to its name. Who holds the turn may use value, nobody else.
type keyedLock[T any] struct {
	token chan struct{} // holds a token while somebody has the turn
	users int           // who wait or hold; guarded by lines.mu
	value T
}

// lock waits for the turn. The error is that of the context; without one the caller must leave.
func (l *keyedLocks[T]) lock(ctx context.Context, name string) (*keyedLock[T], error) {
	own := l.acquire(name)
	select {
	case own.token <- struct{}{}:
	case <-ctx.Done():
		l.release(own)
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		l.unlock(own)
		return nil, err
	}
	return own, nil
}

// unlockHost gives the turn to the next.
func (l *keyedLocks[T]) unlock(own *keyedLock[T]) {
	<-own.token
	l.release(own)
}

func (l *keyedLocks[T]) acquire(name string) *keyedLock[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.locks[name]
	if !ok {
		l.evict()
		own = &keyedLock[T]{token: make(chan struct{}, 1)}
		if l.locks == nil {
			l.locks = map[string]*keyedLock[T]{}
		}
		l.locks[name] = own
	}
	own.users++
	return own
}

func (l *keyedLocks[T]) release(own *keyedLock[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own.users--
}

// evict forgets names that nobody uses. Called with mu held.
func (l *keyedLocks[T]) evict() {
	for name, other := range l.locks {
		if len(l.locks) < keysMax {
			return
		}
		if other.users == 0 {
			delete(l.locks, name)
		}
	}
}

// sleep lets time go by. The error is that of the context.
func sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
