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
	*smtpServer
	pipes *pipes
	up    atomic.Bool
	began time.Time
	dials []time.Duration // times of connection attempts; guarded by mu
}

func newDownServer(t *testing.T) *downServer {
	s := &downServer{smtpServer: &smtpServer{}, pipes: newPipes(), began: clock()}
	s.serve(t, s.pipes)
	return s
}

func (s *downServer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s.mu.Lock()
	s.dials = append(s.dials, clock().Sub(s.began))
	s.mu.Unlock()
	if !s.up.Load() {
		return refuseDial(ctx, network, addr)
	}
	return s.pipes.dial(ctx, network, addr)
}

func (s *downServer) tried() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.dials)
}

func wantMail(t *testing.T, m *Mailer, want string) {
	t.Helper()
	if got := m.Condition(); got.State != want || got.Down || (want == engine.ConditionOK) != got.Since.IsZero() {
		t.Errorf("%+v, want %s", got, want)
	}
}

// TestS15_FailingComesAndGoes checks that an unreachable server shows with the first email, and its return within
// five seconds, although the next attempt and the end of the breaker's pause are minutes away.
func TestS15_FailingComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDownServer(t)
		m := openMailer(t, s.dial, &logBuffer{}, func(c *Config) {
			c.ProbeInterval, c.backoffFirst, c.backoffMax, c.breaker = 2*time.Second, 5*time.Minute, 5*time.Minute, breakerSettings{failureThreshold: 1, cooldown: 5 * time.Minute}
		})
		wantMail(t, m, engine.ConditionOK)
		m.mustSend(t, "ana@example.do")
		settleAfter(time.Second)
		for range 20 {
			wantMail(t, m, "failing")
			settleAfter(time.Second)
		}
		if n := len(s.tried()); n > 12 {
			t.Errorf("%d connections in 20 s", n)
		}
		s.up.Store(true)
		settleAfter(5 * time.Second)
		wantMail(t, m, engine.ConditionOK)
		if stats := m.Stats(); stats.Sent != 1 || stats.CircuitOpen {
			t.Errorf("%+v", stats)
		}
		calm := len(s.tried())
		settleAfter(time.Minute)
		if len(s.tried()) != calm {
			t.Error("a server that is well is looked for")
		}
	})
}

func TestS15_FullDoesNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDownServer(t)
		m := openMailer(t, s.dial, &logBuffer{}, func(c *Config) { c.queueMax, c.ProbeInterval = 3, 2*time.Second })
		for i := range 4 {
			err := m.Send(mailTo(t, fmt.Sprintf("ana%d@example.do", i), testCode))
			if full := i == 3; full != (err != nil) {
				t.Fatalf("email %d: %v", i, err)
			}
		}
		wantMail(t, m, "full")
		settleAfter(10 * time.Second)
		wantMail(t, m, "full")
		s.up.Store(true)
		settleAfter(5 * time.Second)
		wantMail(t, m, engine.ConditionOK)
	})
}
