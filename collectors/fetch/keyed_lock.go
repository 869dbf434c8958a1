package fetch

import (
	"context"
	"sync"
	"time"
)

// keysMax bounds how many hosts and origins are remembered. A site with many subdomains can fill the table; others
// then lose only their pause and their cached robots.txt.
const keysMax = 256

// keyedLocks is a table of fair locks by key, each with a value.
type keyedLocks[T any] struct {
	mu    sync.Mutex
	locks map[string]*keyedLock[T]
}

// keyedLock is the lock of one key. Only its holder may use value.
type keyedLock[T any] struct {
	token chan struct{} // full while the lock is held
	users int           // goroutines that wait for it or hold it; guarded by keyedLocks.mu
	value T
}

// lock waits for the lock of a key. The error is that of the context; without one the caller must unlock.
func (l *keyedLocks[T]) lock(ctx context.Context, key string) (*keyedLock[T], error) {
	own := l.acquire(key)
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

func (l *keyedLocks[T]) unlock(own *keyedLock[T]) {
	<-own.token
	l.release(own)
}

func (l *keyedLocks[T]) acquire(key string) *keyedLock[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.locks[key]
	if !ok {
		l.evict()
		own = &keyedLock[T]{token: make(chan struct{}, 1)}
		if l.locks == nil {
			l.locks = map[string]*keyedLock[T]{}
		}
		l.locks[key] = own
	}
	own.users++
	return own
}

func (l *keyedLocks[T]) release(own *keyedLock[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own.users--
}

// evict drops unused keys until one more fits. The caller holds mu.
func (l *keyedLocks[T]) evict() {
	for key, other := range l.locks {
		if len(l.locks) < keysMax {
			return
		}
		if other.users == 0 {
			delete(l.locks, key)
		}
	}
}

// sleep waits for a span or for the end of the context, whose error it returns.
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
