package conn

import (
	"net"
	"slices"
	"sync"
	"time"
)

// reservePause is between two newcomers beyond the cap when many come: the work for them stays a small part of a core.
const reservePause = time.Millisecond

// reserve are the places beyond the cap. Whoever asks for the health of the node is answered there; everybody else gets 503, and the
// connection ends. The oldest makes room for the newest, so that silence holds no place.
type reserveConns struct {
	limit int // 0 = none

	mu    sync.Mutex
	conns []net.Conn // oldest first
}

// halfFull tells that so many places are taken that newcomers should come slower.
func (s *reserveConns) halfFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) >= s.limit/2
}

// add gives a place, and returns who must leave for it, nil for nobody.
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

// release gives a place back; whoever had to leave has none.
func (s *reserveConns) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.conns, c); at >= 0 {
		s.conns = slices.Delete(s.conns, at, at+1)
	}
}
