package conn

import (
	"net"
	"slices"
	"sync"
	"time"
)

// reservePause is between two connections beyond the cap when many come, so that they take a small part of a processor.
const reservePause = time.Millisecond

// reserveConns are the connections beyond the cap. Requests for the health of the node are answered there; all others
// get 503, and the connection ends. The oldest is closed for the newest, so that a silent client holds no place.
type reserveConns struct {
	limit int // 0 = none

	mu    sync.Mutex
	conns []net.Conn // oldest first
}

// halfFull tells that so many places are taken that connections should be accepted more slowly.
func (s *reserveConns) halfFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) >= s.limit/2
}

// add takes a place, and returns the connection that must be closed for it, or nil.
func (s *reserveConns) add(c net.Conn) (oldest net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) >= s.limit {
		oldest = s.conns[0]
		s.conns = slices.Delete(s.conns, 0, 1)
	}
	s.conns = append(s.conns, c)
	return oldest
}

// remove gives a place back; a connection that was closed for another has none.
func (s *reserveConns) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.conns, c); at >= 0 {
		s.conns = slices.Delete(s.conns, at, at+1)
	}
}
