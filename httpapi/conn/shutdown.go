package conn

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// lastCall is how long clients have, once nobody new is let in, to send what is on its way: an answer to it ends each connection. One that
// is closed while a request lies in it, not read yet, has failed a client. lastCallLook is how often it is looked whether any is left, and
// lastCallLooks how often at least: a connection that the kernel has just made is not seen at once.
const (
	lastCall      = 250 * time.Millisecond
	lastCallLook  = 5 * time.Millisecond
	lastCallLooks = 4
)

// LetNobodyIn has listeners take only those who wait to be accepted already. Where that can't be done it closes them, and says so in log.
func LetNobodyIn(listeners []*Listener, log *slog.Logger) {
	for _, l := range listeners {
		if err := deafen(l.Listener); err != nil {
			log.Warn("connections that wait to be accepted are cut off: they can't be told from new ones", "cause", err.Error())
			_ = l.Close() // Close gives the result again
		}
	}
}

// CallLast waits until no connection is open, or for 250 ms, then closes the listeners and the connections that have said nothing.
func CallLast(ctx context.Context, listeners []*Listener) {
	ctx, cancel := context.WithTimeout(ctx, lastCall)
	defer cancel()
	look := time.NewTicker(lastCallLook)
	defer look.Stop()
	for looks := 0; ctx.Err() == nil && len(listeners) > 0 && (looks < lastCallLooks || slices.ContainsFunc(listeners, (*Listener).serving)); looks++ {
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
	for _, l := range listeners {
		l.newcomers.end()
		_ = l.Close() // Close gives the result again
	}
}

// serving tells that there are connections. The library counts one too few once accepting has ended. A listener that still accepts holds a
// place for the next.
func (l *Listener) serving() bool {
	accepting := 1
	select {
	case <-l.closed:
		accepting = 0
	default:
	}
	return len(l.slots) > accepting
}
