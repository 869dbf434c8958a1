package conn

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// drainGrace is how long clients have, after the last connection was accepted, to send what is on its way: the answer
// to it ends each connection. Closing a connection in which an unread request lies would fail a client. drainPoll is
// how often it is looked whether any connection is left, and drainPollsMin how often at least: the kernel may have just
// completed one.
const (
	drainGrace    = 250 * time.Millisecond
	drainPoll     = 5 * time.Millisecond
	drainPollsMin = 4
)

// StopAccepting has listeners accept only the connections that wait in their backlogs. Where that is impossible it
// closes them, and logs it.
func StopAccepting(listeners []*Listener, log *slog.Logger) {
	for _, l := range listeners {
		if err := dropNewSYNs(l.Listener); err != nil {
			log.Warn("connections that wait to be accepted are cut off: they can't be told from new ones", "cause", err.Error())
			_ = l.Close() // Close gives the result again
		}
	}
}

// DrainListeners waits until no connection is open, or for 250 ms, then closes the listeners and the connections
// that have said nothing.
func DrainListeners(ctx context.Context, listeners []*Listener) {
	ctx, cancel := context.WithTimeout(ctx, drainGrace)
	defer cancel()
	look := time.NewTicker(drainPoll)
	defer look.Stop()
	for looks := 0; ctx.Err() == nil && len(listeners) > 0 && (looks < drainPollsMin || slices.ContainsFunc(listeners, (*Listener).hasConns)); looks++ {
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
	for _, l := range listeners {
		l.silent.closeAll()
		_ = l.Close() // Close gives the result again
	}
}

// hasConns tells that there are connections. The library counts one too few once accepting has ended. A listener
// that still accepts holds a place for the next.
func (l *Listener) hasConns() bool {
	accepting := 1
	select {
	case <-l.closed:
		accepting = 0
	default:
	}
	return len(l.permits) > accepting
}
