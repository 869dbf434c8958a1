package mail

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine"
)

func wantMail(t *testing.T, m *testMailer, want string) {
	t.Helper()
	if got := m.Condition(); got.State != want || got.Down || (want == engine.ConditionOK) != got.Since.IsZero() {
		t.Errorf("%+v, want %s", got, want)
	}
}

// TestS15_FailingComesAndGoes checks that an unreachable server shows with the first email, and until the next email
// that it answers.
func TestS15_FailingComesAndGoes(t *testing.T) {
	for _, waits := range []time.Duration{time.Minute, 20 * time.Minute} { // a code is valid for ten
		synctest.Test(t, func(t *testing.T) {
			m := newTestMailer(t, &smtpServer{}, nil)
			m.pipes.down.Store(true)
			wantMail(t, m, engine.ConditionOK)
			m.mustSend(t, "ana@example.do")
			settleAfter(time.Second)
			wantMail(t, m, "failing")
			settleAfter(waits)
			wantMail(t, m, "failing")
			m.pipes.down.Store(false)
			m.mustSend(t, "eva@example.do")
			settleAfter(backoffMax)
			wantMail(t, m, engine.ConditionOK)
			if stats := m.Stats(); (stats.Sent == 2) != (waits < 10*time.Minute) {
				t.Errorf("%+v", stats)
			}
		})
	}
}

func TestS15_FullDoesNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMailer(t, &smtpServer{}, func(c *Config) { c.queueMax = 3 })
		m.pipes.down.Store(true)
		for i := range 4 {
			err := m.Send(mailTo(t, fmt.Sprintf("ana%d@example.do", i), testCode))
			if full := i == 3; full != (err != nil) {
				t.Fatalf("email %d: %v", i, err)
			}
		}
		wantMail(t, m, "full")
		settleAfter(10 * time.Second)
		wantMail(t, m, "full")
		m.pipes.down.Store(false)
		settleAfter(backoffMax)
		wantMail(t, m, engine.ConditionOK)
	})
}

// TestRefusing: a server that refuses the sender, or the emails to three recipients, permanently or for now, shows
// until it accepts an email. Refusals for one user do not.
func TestRefusing(t *testing.T) {
	var refused error
	for name, tt := range map[string]struct {
		server     *smtpServer
		code       int
		recipients []string
		want       string
	}{
		"sender": {&smtpServer{onMail: func() error { return refused }}, 550, []string{"a", "b", "c"}, "refusing"},
		"550":    {&smtpServer{onRcpt: func(string) error { return refused }}, 550, []string{"a", "b", "c"}, "refusing"},
		"451":    {&smtpServer{onData: func([]byte, net.Conn) error { return refused }}, 451, []string{"a", "b", "c"}, "refusing"},
		"typo":   {&smtpServer{onRcpt: func(string) error { return refused }}, 550, []string{"a", "b", "a", "b", "a"}, engine.ConditionOK},
	} {
		synctest.Test(t, func(t *testing.T) {
			refused = refusal(tt.code, "no")
			m := newTestMailer(t, tt.server, nil)
			for _, name := range tt.recipients {
				wantMail(t, m, engine.ConditionOK)
				m.mustSend(t, name+"@example.do")
				settleAfter(time.Second)
			}
			if wantMail(t, m, tt.want); t.Failed() {
				t.Fatal(name)
			}
			if err := Check(t.Context(), m.config); (name == "sender") != (err != nil && err.Error() == "at sender: the server answers 550") {
				t.Errorf("%s: the check says %v", name, err)
			}
			refused = nil
			m.mustSend(t, "d@example.do")
			settleAfter(time.Second)
			wantMail(t, m, engine.ConditionOK)
		})
	}
}
