package conn

import (
	"net"
	"slices"
	"sync"
	"time"
)

// reservePause is the pause between accepting two connections beyond the cap while half of the reserve places are
// taken, so that such connections use only a small part of a processor.
const reservePause = time.Millisecond

// reserveConns holds the connections beyond the cap. A health request on one of them is answered, any other gets 503;
// then the connection is closed. When all places are taken, the oldest connection is closed for the newest, so that
// silent clients can't keep the places.
type reserveConns struct {
	limit int // 0 = none

	mu    sync.Mutex
	conns []net.Conn // oldest first
}

// halfFull reports whether half of the places are taken: then connections are accepted more slowly.
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

// remove frees the place of a connection, which it may have lost to a newer one already.
func (s *reserveConns) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if index := slices.Index(s.conns, c); index >= 0 {
		s.conns = slices.Delete(s.conns, index, index+1)
	}
}
