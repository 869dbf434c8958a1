package conn

import (
	"net"
	"slices"
	"sync"
	"time"
)

// reserveAcceptPause is the pause before a connection is accepted beyond the cap when half of the reserve
// (reserveConns) is in use. With the pause, such connections use only a small part of a processor.
const reserveAcceptPause = time.Millisecond

// reserveConns is the reserve: the open connections beyond the cap Config.MaxConns, at most limit. Each gets one
// response, which is a health response or a 503, and is then closed. If limit connections are open, a new one replaces
// the oldest, so that silent clients can't block the reserve.
type reserveConns struct {
	limit int // 0 = none

	mu    sync.Mutex
	conns []net.Conn // oldest first
}

// halfFull reports whether at least half of the reserve is in use.
func (s *reserveConns) halfFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) >= s.limit/2
}

// add adds a connection. If the reserve was full, add removes the oldest connection and returns it. The caller must
// close that connection.
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

// remove does nothing if add has already removed the connection.
func (s *reserveConns) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if index := slices.Index(s.conns, c); index >= 0 {
		s.conns = slices.Delete(s.conns, index, index+1)
	}
}
