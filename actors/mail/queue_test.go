package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// sums reports whether every accepted email is counted exactly once.
func (s Stats) sums(taken int) bool {
	return uint64(s.Waiting)+s.Sent+s.Refused+s.Exhausted+s.Expired+s.Replaced+s.Abandoned == uint64(taken)
}

func wantOverloaded(t *testing.T, err, cause error) {
	t.Helper()
	var got *engine.Error
	if !errors.As(err, &got) || got.Code != engine.CodeOverloaded || got.RetryAfter <= 0 || !errors.Is(err, cause) {
		t.Errorf("got %v, want %s because %v", err, engine.CodeOverloaded, cause)
	}
}

// TestQueue_Full checks that the queue accepts its maximum and rejects the next email without waiting, also when the
// server is unreachable and the breaker open. Emails with expired codes make room.
func TestQueue_Full(t *testing.T) {
	for name, reach := range map[string]bool{"hangs": true, "down": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newTestMailer(t, script(""), func(c *Config) { c.queueMax, c.breaker = 3, breakerSettings{1, time.Hour} })
				m.pipes.down.Store(!reach)
				began := clock()
				m.mustSend(t, addresses(3)...)
				wantOverloaded(t, m.Send(mailTo(t, "eva@example.do", testCode)), ErrFull)
				m.mustSend(t, "ana2@example.do") // a newer email to a waiting address needs no room
				if waited := clock().Sub(began); waited != 0 {
					t.Errorf("sending waited %s", waited)
				}
				if stats := m.Stats(); stats.Waiting != 3 || stats.Dropped != 1 || stats.Replaced != 1 || !stats.sums(4) {
					t.Errorf("got %+v", stats)
				}
				settleAfter(9 * time.Minute)
				wantOverloaded(t, m.Send(mailTo(t, "eva@example.do", testCode)), ErrFull)
				settleAfter(time.Minute)
				m.mustSend(t, "eva@example.do")
				if stats := m.Stats(); !reach && (stats.Expired != 3 || stats.Failures != 1 || !stats.CircuitOpen || !stats.sums(5)) {
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

// TestQueue_Expired checks that an email with an expired code is not sent: not when it was late, not after a long
// timeout, and not when its next attempt would be too late.
func TestQueue_Expired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMailer(t, &smtpServer{}, func(c *Config) {
			c.breaker, c.backoffFirst, c.backoffMax = breakerSettings{failureThreshold: 2, cooldown: time.Hour}, time.Second, 8*time.Minute
		})
		late := mailTo(t, "late@example.do", testCode)
		late.Expires = clock()
		short := mailTo(t, "short@example.do", testCode)
		short.Expires = clock().Add(time.Millisecond)
		for i, mail := range []account.LoginMail{late, short, mailTo(t, "ana@example.do", testCode)} {
			if err := m.Send(mail); err != nil {
				t.Fatal(err)
			}
			settleAfter(0)
			if stats := m.Stats(); i < 2 && stats.Expired != uint64(i+1) {
				t.Errorf("email %d: got %+v, want it expired", i, stats)
			}
			m.pipes.down.Store(true)
		}
		settleAfter(9 * time.Minute)
		if stats := m.Stats(); !stats.CircuitOpen || stats.Waiting != 1 {
			t.Errorf("got %+v, want ana's email waiting for the breaker", stats)
		}
		m.pipes.down.Store(false)
		settleAfter(2 * time.Hour)
		if stats := m.Stats(); stats.Expired != 3 || m.pipes.dialled() != 0 || stats.Failures != 2 || !stats.sums(3) {
			t.Errorf("got %+v and %d connections, want all expired", stats, m.pipes.dialled())
		}
	})
}

// TestBreaker checks that an unreachable server is tried a number of times, then once in each pause; when it is back,
// everything is sent, and no email has used up an attempt while the breaker was open.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMailer(t, &smtpServer{}, func(c *Config) {
			c.attemptsMax, c.breaker = 5, breakerSettings{failureThreshold: 3, cooldown: time.Minute}
			c.backoffFirst, c.backoffMax = time.Second, time.Second
		})
		m.pipes.down.Store(true)
		m.mustSend(t, addresses(20)...)
		settleAfter(5*time.Minute + 30*time.Second)
		if tried := m.pipes.tried(); len(tried) != 8 || tried[2] != 0 || tried[3] != time.Minute || tried[7] != 5*time.Minute {
			t.Errorf("tried at %v, want 3 times at once, then once a minute", tried)
		}
		if !m.Stats().CircuitOpen || strings.Count(m.logs.String(), "mail server fails") != 1 {
			t.Errorf("want the breaker open and said once: %+v", m.Stats())
		}
		m.pipes.down.Store(false)
		settleAfter(time.Minute)
		stats := m.Stats()
		if stats.Sent != 20 || stats.CircuitOpen || len(m.server.receivedMails()) != 20 || strings.Count(m.logs.String(), "answers again") != 1 {
			t.Errorf("got %+v, want all 20 sent", stats)
		}
		if len(m.pipes.tried()) != 9 || m.server.sessions != 1 {
			t.Errorf("%d connections for 20 emails that were due together, want 1", m.server.sessions)
		}
	})
}

// TestSession_Reused checks that emails due together share connections, up to a number for each.
func TestSession_Reused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestMailer(t, &smtpServer{}, nil)
		b.mustSend(t, addresses(2*sessionEmailsMax+1)...)
		settleAfter(time.Second)
		if stats := b.Stats(); stats.Sent != 2*sessionEmailsMax+1 || b.pipes.dialled() < 3 || b.pipes.dialled() > 4 {
			t.Errorf("got %+v over %d connections, want 3", stats, b.pipes.dialled())
		}
		if quits := strings.Count(b.pipes.written(), "QUIT\r\n"); quits != b.pipes.dialled() {
			t.Errorf("%d connections, %d farewells", b.pipes.dialled(), quits)
		}
	})
}

// TestBackoff_Grows checks that delays double up to the maximum, each shortened at random by up to a half.
func TestBackoff_Grows(t *testing.T) {
	m := &Mailer{config: Config{Random: seeded(1), backoffFirst: 4 * time.Second, backoffMax: time.Minute}}
	shortened := map[time.Duration]bool{}
	for i, want := range []time.Duration{4, 8, 16, 32, 60, 60, 60} {
		for range 200 {
			got := m.backoff(i + 1)
			if want := want * time.Second; got > want || got < want/2 {
				t.Fatalf("after %d tries: %s, want %s to %s", i+1, got, want/2, want)
			}
			shortened[got] = true
		}
	}
	m.config.Random = strings.NewReader("")
	if got := m.backoff(100); got != time.Minute || len(shortened) < 1000 {
		t.Errorf("without a source of chance: %s, want the whole wait; %d different waits of 1400", got, len(shortened))
	}
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
		wantOverloaded(t, b.Send(mailTo(t, "ana@example.do", testCode)), ErrClosed)
		if again := b.Close(t.Context()); again == nil || again.Error() != err.Error() {
			t.Errorf("a second Close says %v", again)
		}
	})
}

// TestClose_Bounded checks that Close ends within the drain timeout, with its context or when the server is silent,
// whatever the server does, and leaves nothing running.
func TestClose_Bounded(t *testing.T) {
	greeting := "220 x\r\n250 x\r\n250 ok\r\n"
	for _, tt := range []struct {
		says       string
		drain, ctx time.Duration
	}{
		{"", time.Minute, time.Minute}, {greeting, time.Minute, time.Minute}, {greeting + "250 ok\r\n354 go on\r\n", time.Minute, time.Minute},
		{"", time.Second, time.Minute}, {"", time.Minute, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newTestMailer(t, script(tt.says), func(c *Config) { c.drainTimeout = tt.drain })
			m.mustSend(t, addresses(3)...)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), tt.ctx)
			defer cancel()
			began := clock()
			err := m.Close(ctx)
			if took := clock().Sub(began); err == nil || took != min(tt.drain, tt.ctx, silenceDefault) {
				t.Errorf("close: %v after %s, want after the least of %+v and %s", err, took, tt, silenceDefault)
			}
			if stats := m.Stats(); stats.Abandoned != 3 || !stats.sums(3) || stats.CircuitOpen {
				t.Errorf("got %+v", stats)
			}
		})
	}
}

// TestClose_Slow checks that Close waits for a slow server as long as it accepts emails.
func TestClose_Slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMailer(t, &smtpServer{onData: func([]byte, net.Conn) error {
			<-time.NewTimer(silenceDefault * 3 / 4).C
			return nil
		}}, nil)
		m.mustSend(t, addresses(4)...)
		if err := m.Close(t.Context()); err != nil || m.Stats().Sent != 4 {
			t.Errorf("%v, %+v", err, m.Stats())
		}
	})
}

// TestSend_Concurrent sends from many goroutines, half of them to the same addresses; every email is counted once.
func TestSend_Concurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestMailer(t, &smtpServer{}, func(c *Config) { c.queueMax = 100 })
		var all sync.WaitGroup
		var taken, refused atomic.Int64
		for i := range 400 {
			mail := mailTo(t, fmt.Sprintf("ana%d@example.do", i%200), testCode)
			all.Go(func() {
				if b.Send(mail) != nil {
					refused.Add(1)
				} else {
					taken.Add(1)
				}
			})
		}
		all.Wait()
		settleAfter(time.Minute)
		stats := b.Stats()
		if !stats.sums(int(taken.Load())) || int64(stats.Dropped) != refused.Load() || stats.Waiting != 0 || int(stats.Sent) != len(b.server.receivedMails()) {
			t.Errorf("got %+v with %d taken, %d refused", stats, taken.Load(), refused.Load())
		}
	})
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
		wantOverloaded(t, m.Send(mailTo(t, "eva@example.do", testCode)), ErrFull)
		settleAfter(connectDefault)
		if stats := m.Stats(); stats.Expired != 1 || stats.Failures != 1 || !stats.sums(1) {
			t.Errorf("got %+v", stats)
		}
	})
}
