package mail

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/engine/account/secrettest"
)

func TestLog_Line(t *testing.T) {
	var out bytes.Buffer
	mail := mailTo(t, "Ana@example.do", testCode)
	mail.Expires = time.Date(2026, 9, 17, 9, 5, 0, 0, time.FixedZone("", -4*3600))
	if err := NewLogMailer(&out).Send(mail); err != nil {
		t.Fatal(err)
	}
	if want := "mail to=ana@example.do code=01234567 expires=2026-09-17T13:05:00Z\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if err := NewLogMailer(failingWriter{}).Send(mail); err == nil || strings.Contains(err.Error(), testCode) {
		t.Errorf("a writer that fails: %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestS5_NothingLeaks runs every kind of outcome against a server that repeats what it knows in its answers, and
// searches everything that the mailer reports for codes, password and addresses.
func TestS5_NothingLeaks(t *testing.T) {
	trusted := goodCertificate(t)
	synctest.Test(t, func(t *testing.T) {
		logins := 0
		server := &smtpServer{tls: trusted, mechanisms: []string{"PLAIN"}}
		server.onLogin = func(user, password string) error {
			if logins++; logins%5 == 0 {
				return refusal(535, "not you, "+user+" with "+password+" "+hex.EncodeToString([]byte(password)))
			}
			return nil
		}
		tries := 0
		server.onRcpt = func(to string) error {
			switch tries++; tries % 4 {
			case 0:
				return refusal(550, "no mailbox "+to+" here, "+testPassword)
			case 1:
				return refusal(450, "later for "+to)
			}
			return nil
		}
		datas := 0
		server.onData = func(text []byte, conn net.Conn) error {
			switch datas++; datas % 3 {
			case 0:
				return refusal(554, "I do not like "+strings.Join(strings.Fields(string(text)), " "))
			case 1:
				_ = conn.Close()
			}
			return nil
		}
		b := newTestMailer(t, server, func(c *Config) {
			c.TLS, c.rootCAs, c.User, c.Password = StartTLS, roots(trusted), testUser, account.SecretOf(testPassword)
			c.queueMax = 30
		})
		secrets := []string{testPassword}
		var said strings.Builder
		for i := range 40 {
			to, code := fmt.Sprintf("canary.%d@leaks.example.do", i), fmt.Sprintf("%08d", 73518264+i*7919)
			mail := mailTo(t, to, code)
			secrets = append(secrets, to, code)
			fmt.Fprintf(&said, "%v %+v %#v\n", b.Send(mail), b.Stats(), mail.Code)
		}
		settleAfter(11 * time.Minute)
		fmt.Fprintf(&said, "%v %+v %+v %#v", b.Close(t.Context()), b.Stats(), b.config.Password, b.config.Password)
		stats := b.Stats()
		t.Logf("%+v, %d bytes of log", stats, len(b.logs.String()))
		if stats.Sent == 0 || stats.Refused == 0 || stats.Dropped == 0 || !strings.Contains(b.logs.String(), "535") {
			t.Errorf("the run did not meet every outcome: %+v", stats)
		}
		for _, leak := range secrettest.Leaks(b.logs.String()+said.String(), secrets...) {
			t.Error(leak)
		}
	})
}
