package mail

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine"
)

// downServer is a server that can be reached or not, and how often somebody tried to reach it.
func downServer(t *testing.T) (up *atomic.Bool, dials *atomic.Int64, dial func(context.Context, string, string) (net.Conn, error)) {
	server, lines := &catcher{}, newPipes()
	server.serve(t, lines)
	up, dials = &atomic.Bool{}, &atomic.Int64{}
	return up, dials, func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		if !up.Load() {
			return noServer(ctx, network, addr)
		}
		return lines.dial(ctx, network, addr)
	}
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
		up, dials, dial := downServer(t)
		m := openMailer(t, dial, &logged{}, func(c *Config) {
			c.Probe, c.Backoff, c.Breaker = 2*time.Second, Backoff{First: 5 * time.Minute, Max: 5 * time.Minute}, Breaker{Failures: 1, Pause: 5 * time.Minute}
		})
		wantMail(t, m, engine.ConditionOK)
		if err := m.Send(letterTo(t, "ana@example.do", testCode)); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		for range 20 {
			wantMail(t, m, "failing")
			pass(time.Second)
		}
		if n := dials.Load(); n > 12 {
			t.Errorf("%d connections in 20 s", n)
		}
		up.Store(true)
		pass(5 * time.Second)
		wantMail(t, m, engine.ConditionOK)
		if stats := m.Stats(); stats.Sent != 1 || stats.Open {
			t.Errorf("%+v", stats)
		}
		calm := dials.Load()
		pass(time.Minute)
		if dials.Load() != calm {
			t.Error("a server that is well is looked for")
		}
	})
}

func TestS15_FullDoesNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, _, dial := downServer(t)
		m := openMailer(t, dial, &logged{}, func(c *Config) { c.QueueMax, c.Probe = 3, 2*time.Second })
		for i := range 4 {
			err := m.Send(letterTo(t, fmt.Sprintf("ana%d@example.do", i), testCode))
			if full := i == 3; full != (err != nil) {
				t.Fatalf("letter %d: %v", i, err)
			}
		}
		wantMail(t, m, "full")
		pass(10 * time.Second)
		wantMail(t, m, "full")
		up.Store(true)
		pass(5 * time.Second)
		wantMail(t, m, engine.ConditionOK)
	})
}
