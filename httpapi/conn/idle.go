package conn

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// idleBatch is the number of connections that one search for the longest idle ones finds. A search looks at all open
// connections, which takes too long to do for each new connection.
const idleBatch = 64

// evicted is the value of idleState.since after idleConns has chosen the connection to be closed.
const evicted int64 = -1

// idleState says since when a connection has waited for a request.
type idleState struct {
	since atomic.Int64 // nanoseconds since Listener.began; 0: a request is being read or answered; or evicted
	last  int64        // newest value of since
	free  bool         // the newest response cost the client nothing, see Conn.MarkFree
}

// begin notes that the connection waits for a request since a time after Listener.began. It returns false if the
// connection is to be closed. A free response does not make the connection younger: otherwise a client could keep its
// connections with free requests.
func (s *idleState) begin(since time.Duration) bool {
	if !s.free || s.last == 0 {
		s.last = max(1, int64(since))
	}
	s.free = false
	return s.since.CompareAndSwap(0, s.last)
}

// end notes that the first bytes of a request have arrived. It returns false if the connection is to be closed.
func (s *idleState) end() bool { return s.since.CompareAndSwap(s.last, 0) }

// MarkFree notes that the current response costs the client nothing: it does not count against a quota. At the cap of
// connections, those whose newest counted response is the longest ago are closed first.
func (c *Conn) MarkFree() { c.idle.free = true }

// idleConns is the set of open connections below the cap. It finds those that have been idle longest.
type idleConns struct {
	mu      sync.Mutex
	open    map[*Conn]struct{}
	longest []idleConn // result of the newest search, the longest idle connection last
}

type idleConn struct {
	conn  *Conn
	since int64
}

func (s *idleConns) add(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*Conn]struct{}{}
	}
	s.open[c] = struct{}{}
}

func (s *idleConns) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// evict chooses the connection that has been idle longest. The caller must close it. evict returns nil if no connection
// is idle.
func (s *idleConns) evict() *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for searched := false; ; searched = true {
		for n := len(s.longest) - 1; n >= 0; n-- {
			candidate := s.longest[n]
			s.longest = s.longest[:n]
			if _, open := s.open[candidate.conn]; open && candidate.conn.idle.since.CompareAndSwap(candidate.since, evicted) {
				return candidate.conn
			}
		}
		if searched {
			return nil
		}
		s.search()
	}
}

// search sets longest to the idleBatch connections that have been idle longest.
func (s *idleConns) search() {
	idle := make([]idleConn, 0, len(s.open))
	for c := range s.open {
		if since := c.idle.since.Load(); since > 0 {
			idle = append(idle, idleConn{c, since})
		}
	}
	slices.SortFunc(idle, func(a, b idleConn) int { return cmp.Compare(b.since, a.since) })
	s.longest = slices.Clone(idle[max(0, len(idle)-idleBatch):])
}
