package conn

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"time"
)

const (
	// drainGrace is the longest wait for requests that clients have already sent. If a connection were closed before
	// its request was read, the client would get an error.
	drainGrace = 250 * time.Millisecond
	// drainPoll is the interval between checks for open connections.
	drainPoll = 5 * time.Millisecond
	// drainPollsMin is the least number of checks. More than one is needed, because Accept may not have returned yet a
	// connection that the kernel has just completed.
	drainPollsMin = 4
)

// Kept marks a listener that another process keeps open, such as systemd. StopAccepting leaves the connections in its
// backlog to the next program that gets the listener.
func Kept(ln net.Listener) net.Listener { return keptListener{ln} }

type keptListener struct{ net.Listener }

// StopAccepting makes listeners accept only the connections that are already in their backlogs. Where the system can't
// do that, StopAccepting closes the listener and logs a warning.
func StopAccepting(listeners []*Listener, log *slog.Logger) {
	for _, l := range listeners {
		if _, kept := l.Listener.(keptListener); kept {
			_ = l.Close() // the next Close returns the same error
			continue
		}
		if err := dropNewSYNs(l.Listener); err != nil {
			log.Warn("connections in the accept backlog are closed: this system can't tell them from new ones", "cause", err.Error())
			_ = l.Close() // the next Close returns the same error
		}
	}
}

// DrainListeners waits until no connection is open, but no longer than drainGrace. Then it closes the listeners and the
// connections on which no byte has arrived.
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
		_ = l.Close() // fasthttp closes it again, and returns the same error
	}
}

// hasConns reports whether the listener has open connections. While the listener accepts, Accept itself holds one
// permit (an entry of l.permits) for the next connection. The count of fasthttp can't be used: it is one too low once
// accepting has ended.
func (l *Listener) hasConns() bool {
	acceptPermits := 1
	select {
	case <-l.closed:
		acceptPermits = 0
	default:
	}
	return len(l.permits) > acceptPermits
}
