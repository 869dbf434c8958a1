package conn

import (
	"net"
	"slices"
	"sync"
	"time"
)

// sparePause is between two newcomers beyond the cap when many come: the work for them stays a small part of a core.
const sparePause = time.Millisecond

// spares are the places beyond the cap. Whoever asks for the health of the node is answered there; everybody else gets 503, and the
// connection ends. The oldest makes room for the newest, so that silence holds no place.
type spares struct {
	most int // 0 = none

	mu   sync.Mutex
	held []net.Conn // oldest first
}

// crowded tells that so many places are taken that newcomers should come slower.
func (s *spares) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) >= s.most/2
}

// take gives a place, and returns who must leave for it, nil for nobody.
func (s *spares) take(c net.Conn) (oldest net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) >= s.most {
		oldest = s.held[0]
		s.held = slices.Delete(s.held, 0, 1)
	}
	s.held = append(s.held, c)
	return oldest
}

// leave gives a place back; whoever had to leave has none.
func (s *spares) leave(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.held, c); at >= 0 {
		s.held = slices.Delete(s.held, at, at+1)
	}
}
