package mail

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine"
)

// downServer is a server that can be reached or not.
type downServer struct {
	*catcher
	lines *pipes
	up    atomic.Bool
	began time.Time
	calls []time.Duration // when it was called; with mu
}

func newDownServer(t *testing.T) *downServer {
	s := &downServer{catcher: &catcher{}, lines: newPipes(), began: clock()}
	s.serve(t, s.lines)
	return s
}

func (s *downServer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s.mu.Lock()
	s.calls = append(s.calls, clock().Sub(s.began))
	s.mu.Unlock()
	if !s.up.Load() {
		return noServer(ctx, network, addr)
	}
	return s.lines.dial(ctx, network, addr)
}

func (s *downServer) tried() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func wantMail(t *testing.T, m *Mailer, want string) {
	t.Helper()
	if got := m.Condition(); got.State != want || got.Down || (want == engine.ConditionOK) != got.Since.IsZero() {
		t.Errorf("%+v, want %s", got, want)
	}
}

// S15: a server that is down shows with the first letter, and within five seconds that it is back, though the letter's next try and the
// breaker's pause are minutes away.
func TestS15_FailingComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDownServer(t)
		m := openMailer(t, s.dial, &logged{}, func(c *Config) {
			c.Probe, c.Backoff, c.Breaker = 2*time.Second, Backoff{First: 5 * time.Minute, Max: 5 * time.Minute}, Breaker{Failures: 1, Pause: 5 * time.Minute}
		})
		wantMail(t, m, engine.ConditionOK)
		m.mustSend(t, "ana@example.do")
		pass(time.Second)
		for range 20 {
			wantMail(t, m, "failing")
			pass(time.Second)
		}
		if n := len(s.tried()); n > 12 {
			t.Errorf("%d connections in 20 s", n)
		}
		s.up.Store(true)
		pass(5 * time.Second)
		wantMail(t, m, engine.ConditionOK)
		if stats := m.Stats(); stats.Sent != 1 || stats.Open {
			t.Errorf("%+v", stats)
		}
		calm := len(s.tried())
		pass(time.Minute)
		if len(s.tried()) != calm {
			t.Error("a server that is well is looked for")
		}
	})
}

func TestS15_FullDoesNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDownServer(t)
		m := openMailer(t, s.dial, &logged{}, func(c *Config) { c.QueueMax, c.Probe = 3, 2*time.Second })
		for i := range 4 {
			err := m.Send(letterTo(t, fmt.Sprintf("ana%d@example.do", i), testCode))
			if full := i == 3; full != (err != nil) {
				t.Fatalf("letter %d: %v", i, err)
			}
		}
		wantMail(t, m, "full")
		pass(10 * time.Second)
		wantMail(t, m, "full")
		s.up.Store(true)
		pass(5 * time.Second)
		wantMail(t, m, engine.ConditionOK)
	})
}
