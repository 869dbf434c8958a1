package conn

import (
	"container/heap"
	"sync"
	"sync/atomic"
)

// evicted is the value of idleState.since for a connection that will be closed.
const evicted int64 = -1

// idleState tells whether a connection is idle, and since when. Times are nanoseconds since Listener.began.
type idleState struct {
	since atomic.Int64 // busy: 0; idle: the value of last, at least 1; chosen for closing: evicted
	last  int64        // time of the newest counted response (Conn.MarkCounted), or of the accept
}

// begin marks the connection as idle. It returns false if the connection must be closed.
func (s *idleState) begin() bool { return s.since.CompareAndSwap(0, max(1, s.last)) }

// end marks the connection as busy. It returns false if the connection must be closed.
func (s *idleState) end() bool { return s.since.CompareAndSwap(max(1, s.last), 0) }

// idleConns finds the idle connection with the oldest use (idleState.last). It is a heap of all open connections,
// ordered by the use that evict has seen (Conn.lastSeenUse). Requests do not update the heap, so a connection may have
// been used later, and evict checks the first connections of the heap again.
type idleConns struct {
	mu   sync.Mutex
	open connHeap
}

// evictStepsMax is the maximum number of connections that one call of evict checks.
const evictStepsMax = 64

func (s *idleConns) add(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.lastSeenUse = c.idle.last
	heap.Push(&s.open, c)
}

func (s *idleConns) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	heap.Remove(&s.open, c.heapIndex)
}

// evict returns the idle connection with the oldest use, and marks it with evicted. The caller must close it. evict
// returns nil if the first evictStepsMax connections are busy; a busy connection counts as used now.
func (s *idleConns) evict(now int64) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range min(evictStepsMax, len(s.open)) {
		c := s.open[0]
		switch since := c.idle.since.Load(); {
		case since > c.lastSeenUse:
			c.lastSeenUse = since
		case since > 0 && c.idle.since.CompareAndSwap(since, evicted):
			return c
		default:
			c.lastSeenUse = now
		}
		heap.Fix(&s.open, 0)
	}
	return nil
}

func (s *idleConns) all() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Conn(nil), s.open...)
}

// connHeap implements heap.Interface.
type connHeap []*Conn

func (h connHeap) Len() int           { return len(h) }
func (h connHeap) Less(i, j int) bool { return h[i].lastSeenUse < h[j].lastSeenUse }

func (h connHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

// Push implements heap.Interface.
func (h *connHeap) Push(c any) {
	c.(*Conn).heapIndex = len(*h)
	*h = append(*h, c.(*Conn))
}

// Pop implements heap.Interface.
func (h *connHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}
