package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/tasard/tasard/actors"
)

const (
	callsMax       = 1024                   // requests of other nodes that this node works on at the same time
	leaderPoll     = 100 * time.Millisecond // how often a call checks that the leader is the same
	leaderPollsMax = 3                      // a former leader has this many polls to answer
	callHeader     = 8                      // the number of the call, before the request or the answer
)

// calls are the requests that were sent on one connection and have no answer yet.
type calls struct {
	mu      sync.Mutex
	open    bool
	newest  uint64
	waiting map[uint64]chan []byte
}

func (s *calls) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.waiting = true, map[uint64]chan []byte{}
}

// end ends all calls without an answer.
func (s *calls) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
	for number, answer := range s.waiting {
		close(answer)
		delete(s.waiting, number)
	}
}

// answered passes an answer to its call.
func (s *calls) answered(body []byte) {
	if len(body) < callHeader {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	number := binary.LittleEndian.Uint64(body)
	if answer := s.waiting[number]; answer != nil {
		answer <- body[callHeader:]
		delete(s.waiting, number)
	}
}

// call queues a request. It returns nil if there is no connection, or no room.
func (l *link) call(request []byte) <-chan []byte {
	s := &l.calls
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || len(request)+callHeader > messageBytesMax {
		return nil
	}
	s.newest++
	body := append(binary.LittleEndian.AppendUint64(make([]byte, 0, callHeader+len(request)), s.newest), request...)
	select {
	case l.out <- encodeMessage(kindCall, body):
	default:
		return nil
	}
	answer := make(chan []byte, 1)
	s.waiting[s.newest] = answer
	return answer
}

// Serve implements actors.Shared.
func (j *Journal) Serve(answer func(request []byte) []byte) { j.cluster.serve.Store(&answer) }

// Ask implements actors.Shared.
func (j *Journal) Ask(ctx context.Context, request []byte) ([]byte, error) {
	r := j.cluster.replica.Load()
	leader := r.leaderName()
	l := j.cluster.transport.link(leader)
	if l == nil {
		return nil, actors.ErrNotLeader
	}
	answered := l.call(request)
	if answered == nil {
		return nil, actors.ErrNotLeader
	}
	ticker := time.NewTicker(leaderPoll)
	defer ticker.Stop()
	for polls := 0; polls < leaderPollsMax; {
		select {
		case answer, ok := <-answered:
			switch {
			case !ok:
				return nil, actors.ErrOutcomeUnknown
			case len(answer) == 0:
				return nil, actors.ErrNotLeader
			}
			return answer, nil
		case <-ticker.C:
			if r.leaderName() != leader {
				polls++
			}
		case <-ctx.Done():
			return nil, actors.ErrOutcomeUnknown
		}
	}
	return nil, actors.ErrOutcomeUnknown
}

var errCall = errors.New("a call without a number")

// answerCall answers the request of another node.
func (t *transport) answerCall(conn net.Conn, body []byte) error {
	if len(body) < callHeader {
		return errCall
	}
	c := t.c
	c.tasks.start(func() {
		answer := body[:callHeader:callHeader]
		select {
		case c.callsNow <- struct{}{}:
			if serve := c.serve.Load(); serve != nil {
				answer = append(answer, (*serve)(body[callHeader:])...)
			}
			<-c.callsNow
		default:
		}
		if conn.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil { //nolint:forbidigo // of the operating system
			_, _ = conn.Write(encodeMessage(kindAnswer, answer)) // without it the other node sees the end of the connection
		}
	})
	return nil
}
