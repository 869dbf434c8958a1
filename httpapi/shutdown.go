package httpapi

import (
	"context"
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

// Shutdown lets nobody new in, lets requests in flight finish, closes idle connections and returns when no connection is open,
// or with the context's error. Every answer that it meets says that its connection ends; the idle ones are closed when there was none
// for a moment (lastCall). A client that began a request holds it up until ReadTimeout.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	s.mu.Lock()
	s.stopped = true
	for _, ln := range s.listeners {
		if err := deafen(ln.Listener); err != nil {
			s.log.Warn("connections that wait to be accepted are cut off: they can't be told from new ones", "cause", err.Error())
			_ = ln.Close() // the result comes below
		}
	}
	turns := s.rounds
	s.rounds = nil
	s.mu.Unlock()
	if s.watch != nil {
		s.watch.end()
	}
	if turns != nil {
		s.watch.useRounds(nil)
		turns.end()
	}
	s.callLast(ctx)
	for _, ln := range s.listeners { // there are no others any more
		ln.newcomers.end()
		_ = ln.Close() // the library closes it again and reports the first result
	}
	return s.http.ShutdownWithContext(ctx)
}

// callLast waits until no connection is open, or for lastCall.
func (s *Server) callLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastCall)
	defer cancel()
	look := time.NewTicker(lastCallLook)
	defer look.Stop()
	for looks := 0; len(s.listeners) > 0 && (looks < lastCallLooks || s.open()); looks++ {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// open tells that there are connections. The library counts one too few once accepting has ended. A listener that still accepts holds a
// place for the next.
func (s *Server) open() bool {
	return slices.ContainsFunc(s.listeners, func(l *patient) bool {
		accepting := 1
		select {
		case <-l.closed:
			accepting = 0
		default:
		}
		return len(l.slots) > accepting
	})
}
