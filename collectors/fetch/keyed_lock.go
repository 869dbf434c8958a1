package fetch

import (
	"context"
	"sync"
	"time"
)

// keysMax bounds a table of locks, whose keys are hosts or origins. If the table is larger, unused keys are evicted. An
// evicted host loses its pause (the minimum time until its next request), and an evicted origin loses its cached
// robots.txt. Only a site with many subdomains has so many hosts.
const keysMax = 256

// keyedLocks is a table of locks by key. Each lock guards a value. Goroutines get a lock in the order of their calls.
type keyedLocks[T any] struct {
	mu    sync.Mutex
	locks map[string]*keyedLock[T]
}

// keyedLock is the lock of one key.
type keyedLock[T any] struct {
	token chan struct{} // has one element while the lock is locked
	users int           // goroutines that have locked it or wait for it; guarded by keyedLocks.mu
	value T             // guarded by this lock
}

// lock locks a key; the caller must unlock it. If ctx ends first, lock returns the error of ctx.
func (l *keyedLocks[T]) lock(ctx context.Context, key string) (*keyedLock[T], error) {
	lock := l.acquire(key)
	select {
	case lock.token <- struct{}{}:
	case <-ctx.Done():
		l.release(lock)
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		l.unlock(lock)
		return nil, err
	}
	return lock, nil
}

func (l *keyedLocks[T]) unlock(lock *keyedLock[T]) {
	<-lock.token
	l.release(lock)
}

func (l *keyedLocks[T]) acquire(key string) *keyedLock[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock, ok := l.locks[key]
	if !ok {
		l.evict()
		lock = &keyedLock[T]{token: make(chan struct{}, 1)}
		if l.locks == nil {
			l.locks = map[string]*keyedLock[T]{}
		}
		l.locks[key] = lock
	}
	lock.users++
	return lock
}

func (l *keyedLocks[T]) release(lock *keyedLock[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock.users--
}

// evict removes unused keys until there is room for another key. The caller must have locked mu.
func (l *keyedLocks[T]) evict() {
	for key, lock := range l.locks {
		if len(l.locks) < keysMax {
			return
		}
		if lock.users == 0 {
			delete(l.locks, key)
		}
	}
}

// sleep waits until the span has passed, or returns the error of ctx as soon as ctx ends.
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
