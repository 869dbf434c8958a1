package conn

import (
	"container/heap"
	"sync"
	"sync/atomic"
)

// evicted marks in idleState.since a connection chosen for closing.
const evicted int64 = -1

// idleState tells how long a connection has waited for a request.
type idleState struct {
	since atomic.Int64 // 0: a request is being read or answered; or evicted; else the value of last
	last  int64        // nanoseconds since Listener.began of the newest counted response, or of the accept
}

// begin notes that the connection waits for a request. It returns false if the connection must be closed.
func (s *idleState) begin() bool { return s.since.CompareAndSwap(0, max(1, s.last)) }

// end notes the first bytes of a request. It returns false if the connection must be closed.
func (s *idleState) end() bool { return s.since.CompareAndSwap(max(1, s.last), 0) }

// idleConns finds the connection that has been idle longest. It is a heap by the last known use of each connection.
// Requests do not write to the heap, so a connection may have been used later than known, but never earlier. evict
// therefore checks the oldest connections again.
type idleConns struct {
	mu   sync.Mutex
	open connHeap
}

// evictStepsMax bounds the work of one call of evict if the oldest connections are all busy.
const evictStepsMax = 64

func (s *idleConns) add(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.seenUsed = c.idle.last
	heap.Push(&s.open, c)
}

func (s *idleConns) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	heap.Remove(&s.open, c.heapIndex)
}

// evict chooses the connection that has been idle longest. The caller must close it. It returns nil if the first
// evictStepsMax connections are not idle. It records the present time as the use of a busy connection.
func (s *idleConns) evict(now int64) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range min(evictStepsMax, len(s.open)) {
		c := s.open[0]
		switch since := c.idle.since.Load(); {
		case since > c.seenUsed:
			c.seenUsed = since
		case since > 0 && c.idle.since.CompareAndSwap(since, evicted):
			return c
		default:
			c.seenUsed = now
		}
		heap.Fix(&s.open, 0)
	}
	return nil
}

// all returns the open connections.
func (s *idleConns) all() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Conn(nil), s.open...)
}

// connHeap implements heap.Interface.
type connHeap []*Conn

func (h connHeap) Len() int           { return len(h) }
func (h connHeap) Less(i, j int) bool { return h[i].seenUsed < h[j].seenUsed }

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
