package fetch

import (
	"context"
	"sync"
	"time"
)

// namesMax bounds how many names (hosts, origins) are remembered. A site that sends us around its subdomains can fill the table, and
// then only costs others their pause and their cached robots.txt.
const namesMax = 256

// lines are queues by name: one holder each, the others wait in the order in which they came.
type lines[T any] struct {
	mu    sync.Mutex
	names map[string]*line[T]
}

// line is one queue with what belongs to its name. Who holds the turn may use value, nobody else.
type line[T any] struct {
	turn  chan struct{} // holds a token while somebody has the turn
	users int           // who wait or hold; guarded by lines.mu
	value T
}

// enter waits for the turn. The error is that of the context; without one the caller must leave.
func (l *lines[T]) enter(ctx context.Context, name string) (*line[T], error) {
	own := l.join(name)
	select {
	case own.turn <- struct{}{}:
	case <-ctx.Done():
		l.part(own)
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		l.leave(own)
		return nil, err
	}
	return own, nil
}

// leave gives the turn to the next.
func (l *lines[T]) leave(own *line[T]) {
	<-own.turn
	l.part(own)
}

func (l *lines[T]) join(name string) *line[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.names[name]
	if !ok {
		l.makeRoom()
		own = &line[T]{turn: make(chan struct{}, 1)}
		if l.names == nil {
			l.names = map[string]*line[T]{}
		}
		l.names[name] = own
	}
	own.users++
	return own
}

func (l *lines[T]) part(own *line[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own.users--
}

// makeRoom forgets names that nobody uses. Called with mu held.
func (l *lines[T]) makeRoom() {
	for name, other := range l.names {
		if len(l.names) < namesMax {
			return
		}
		if other.users == 0 {
			delete(l.names, name)
		}
	}
}

// pass lets time go by. The error is that of the context.
func pass(ctx context.Context, wait time.Duration) error {
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
