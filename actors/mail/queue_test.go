package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine"
)

// sums reports whether every accepted email is counted exactly once.
func (s Stats) sums(taken int) bool {
	return uint64(s.Waiting)+s.Sent+s.Refused+s.Expired+s.Replaced+s.Abandoned == uint64(taken)
}

func wantOverloaded(t *testing.T, err error, cause string) {
	t.Helper()
	var got *engine.Error
	if !errors.As(err, &got) || got.Code != engine.CodeOverloaded || got.RetryAfter <= 0 || !strings.Contains(got.Cause.Error(), cause) {
		t.Errorf("got %v, want %s because %v", err, engine.CodeOverloaded, cause)
	}
}

// TestQueue_Full checks that the queue accepts its maximum and rejects the next email without waiting, also when the
// server is unreachable. Emails with expired codes make room.
func TestQueue_Full(t *testing.T) {
	for name, reach := range map[string]bool{"hangs": true, "down": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newTestMailer(t, script(""), func(c *Config) { c.queueMax = 3 })
				m.pipes.down.Store(!reach)
				began := clock()
				m.mustSend(t, addresses(3)...)
				wantOverloaded(t, m.Send(mailTo(t, "eva@example.do", testCode)), "full")
				m.mustSend(t, "ana2@example.do") // a newer email to a waiting address needs no room
				if waited := clock().Sub(began); waited != 0 {
					t.Errorf("sending waited %s", waited)
				}
				if stats := m.Stats(); stats.Waiting != 3 || stats.Dropped != 1 || stats.Replaced != 1 || !stats.sums(4) {
					t.Errorf("got %+v", stats)
				}
				settleAfter(9 * time.Minute)
				wantOverloaded(t, m.Send(mailTo(t, "eva@example.do", testCode)), "full")
				settleAfter(time.Minute)
				m.mustSend(t, "eva@example.do")
				if stats := m.Stats(); !reach && (stats.Expired != 3 || !stats.sums(5)) {
					t.Errorf("got %+v", stats)
				}
			})
		})
	}
}

// TestK2_NewerMailReplaces checks that only the newer of two emails to an address is sent, because a new code
// invalidates the old one (decision K2), whether the older one waits or is being sent.
func TestK2_NewerMailReplaces(t *testing.T) {
	for _, underway := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			meanwhile, tries := make(chan struct{}), 0
			b := newTestMailer(t, &smtpServer{onRcpt: func(string) error {
				if tries++; tries > 1 {
					return nil
				}
				if underway {
					<-meanwhile
				}
				return refusal(451, "later")
			}}, nil)
			for _, code := range []string{"11111111", "22222222"} {
				if err := b.Send(mailTo(t, "ana@example.do", code)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			close(meanwhile)
			settleAfter(10 * time.Minute)
			mails := b.server.receivedMails()
			if len(mails) != 1 || !strings.Contains(string(mails[0].text), "22222222") || tries != 2 {
				t.Errorf("got %d emails in %d attempts, want only the newer", len(mails), tries)
			}
			if stats := b.Stats(); stats.Replaced != 1 || stats.Sent != 1 || !stats.sums(2) {
				t.Errorf("got %+v", stats)
			}
		})
	}
}

// TestQueue_Expired checks that an email with an expired code is not sent: not when it was late, and not after the
// server was away for longer than the code is valid.
func TestQueue_Expired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMailer(t, &smtpServer{}, nil)
		late := mailTo(t, "late@example.do", testCode)
		late.Expires = clock()
		if err := m.Send(late); err != nil {
			t.Fatal(err)
		}
		settleAfter(0)
		if stats := m.Stats(); stats.Expired != 1 {
			t.Errorf("got %+v, want it expired", stats)
		}
		m.pipes.down.Store(true)
		m.mustSend(t, "ana@example.do")
		settleAfter(9 * time.Minute)
		if stats := m.Stats(); stats.Waiting != 1 {
			t.Errorf("got %+v, want ana's email waiting for the server", stats)
		}
		settleAfter(time.Minute)
		m.pipes.down.Store(false)
		settleAfter(2 * time.Hour)
		if stats := m.Stats(); stats.Expired != 2 || len(m.server.receivedMails()) != 0 || !stats.sums(2) {
			t.Errorf("got %+v and %d emails, want all expired", stats, len(m.server.receivedMails()))
		}
	})
}

// TestServerAway checks that an email is tried less and less often while the server is unreachable, at least every two
// minutes; that the log says it once; and that everything is sent when the server is back.
func TestServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMailer(t, &smtpServer{}, nil)
		m.pipes.down.Store(true)
		m.mustSend(t, "ana@example.do")
		settleAfter(6 * time.Minute)
		var pauses []time.Duration
		tried := m.pipes.tried()
		for i := range len(tried) - 1 {
			pauses = append(pauses, (tried[i+1]-tried[i])/time.Second)
		}
		if want := []time.Duration{5, 10, 20, 40, 80, 120}; !slices.Equal(pauses, want) {
			t.Errorf("tried again after %d seconds, want %d", pauses, want)
		}
		m.mustSend(t, addresses(20)...)
		settleAfter(time.Minute)
		m.pipes.down.Store(false)
		settleAfter(backoffMax)
		said := m.logs.String()
		if stats := m.Stats(); stats.Sent != 21 || strings.Count(said, "mail server fails") != 1 || strings.Count(said, "answers again") != 1 {
			t.Errorf("got %+v, want all 21 sent: %s", stats, said)
		}
	})
}

// TestClose_Drains checks that Close attempts once what was not attempted yet, and abandons the rest.
func TestClose_Drains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &smtpServer{onRcpt: func(to string) error {
			if strings.HasPrefix(to, "grey") {
				return refusal(450, "later")
			}
			return nil
		}}
		b := newTestMailer(t, server, nil)
		b.mustSend(t, "grey@example.do")
		synctest.Wait()
		b.mustSend(t, addresses(10)...)
		b.mustSend(t, "grey2@example.do")
		began := clock()
		err := b.Close(t.Context())
		if err == nil || !strings.Contains(err.Error(), "unsent emails: 2") || clock().Sub(began) != 0 {
			t.Errorf("got %v after %s", err, clock().Sub(began))
		}
		if stats := b.Stats(); stats.Sent != 10 || stats.Abandoned != 2 || stats.Waiting != 0 || !stats.sums(12) {
			t.Errorf("got %+v", stats)
		}
		wantOverloaded(t, b.Send(mailTo(t, "ana@example.do", testCode)), "closed")
		if again := b.Close(t.Context()); again == nil || again.Error() != err.Error() {
			t.Errorf("a second Close says %v", again)
		}
	})
}

// TestClose_Bounded checks that Close ends within the drain timeout or with its context, whatever the server does, and
// leaves nothing running.
func TestClose_Bounded(t *testing.T) {
	greeting := "220 x\r\n250 x\r\n250 ok\r\n"
	for says, limit := range map[string]time.Duration{
		"": time.Minute, greeting: time.Minute, greeting + "250 ok\r\n354 go on\r\n": time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newTestMailer(t, script(says), nil)
			m.mustSend(t, addresses(3)...)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := clock()
			err := m.Close(ctx)
			if took := clock().Sub(began); err == nil || took != min(drainTimeout, limit) {
				t.Errorf("close: %v after %s, limit %s", err, took, limit)
			}
			if stats := m.Stats(); stats.Abandoned != 3 || !stats.sums(3) {
				t.Errorf("got %+v", stats)
			}
		})
	}
}

// TestQueue_Sending checks that an email that is being sent stays in the queue when its code expires meanwhile.
func TestQueue_Sending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMailer(t, script(""), func(c *Config) { c.queueMax = 1 }) // the server accepts and hangs
		short := mailTo(t, "short@example.do", testCode)
		short.Expires = clock().Add(time.Second)
		if err := m.Send(short); err != nil {
			t.Fatal(err)
		}
		settleAfter(2 * time.Second)
		wantOverloaded(t, m.Send(mailTo(t, "eva@example.do", testCode)), "full")
		settleAfter(attemptTimeout)
		if stats := m.Stats(); stats.Expired != 1 || stats.Failures != 1 || !stats.sums(1) {
			t.Errorf("got %+v", stats)
		}
	})
}

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
		m.mustSend(t, "ana0@example.do") // replaces an email, so the queue stays full
		wantMail(t, m, "full")
		m.pipes.down.Store(false)
		settleAfter(backoffMax)
		wantMail(t, m, engine.ConditionOK)
		m.pipes.down.Store(true)
		m.mustSend(t, addresses(3)...)
		settleAfter(time.Second)
		wantMail(t, m, "failing") // the queue has no room again, but has rejected no email since
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
		"421":    {&smtpServer{onRcpt: func(string) error { return refused }}, 421, []string{"a"}, "failing"},
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
