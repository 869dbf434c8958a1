package conn

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// drainGrace is the time for requests that are still on their way to arrive; each connection ends after its answer.
// Closing a connection with an unread request would fail the client. drainPoll is the interval between checks for open
// connections. There are at least drainPollsMin checks, because the kernel may have just completed a connection.
const (
	drainGrace    = 250 * time.Millisecond
	drainPoll     = 5 * time.Millisecond
	drainPollsMin = 4
)

// StopAccepting lets listeners accept only the connections that are already in their backlogs. Where the system can't
// do that, it closes the listener and logs a warning.
func StopAccepting(listeners []*Listener, log *slog.Logger) {
	for _, l := range listeners {
		if err := dropNewSYNs(l.Listener); err != nil {
			log.Warn("connections that wait to be accepted are cut off: they can't be distinguished from new ones", "cause", err.Error())
			_ = l.Close() // the next Close returns the same error
		}
	}
}

// DrainListeners waits until no connection is open, for drainGrace at most. Then it closes the listeners, and the
// connections that have not sent a byte.
func DrainListeners(ctx context.Context, listeners []*Listener) {
	ctx, cancel := context.WithTimeout(ctx, drainGrace)
	defer cancel()
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for polls := 0; ctx.Err() == nil && len(listeners) > 0 && (polls < drainPollsMin || slices.ContainsFunc(listeners, (*Listener).hasConns)); polls++ {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	for _, l := range listeners {
		l.silent.closeAll()
		_ = l.Close() // the library closes it again, and returns the same error
	}
}

// hasConns reports whether the listener has open connections. The library's own count is one too low once accepting has
// ended. While the listener accepts, Accept holds a permit for the next connection.
func (l *Listener) hasConns() bool {
	acceptPermits := 1
	select {
	case <-l.closed:
		acceptPermits = 0
	default:
	}
	return len(l.permits) > acceptPermits
}
