package mail

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine"
)

// TestCheck goes as far as a letter would, sends none, and repeats nothing that the server says. A password that was changed is the one of
// the next login.
func TestCheck(t *testing.T) {
	trusted := goodIdentity(t)
	const changed = "another-Pa55word"
	for name, tt := range map[string]struct{ password, want string }{
		"good":           {testPassword, ""},
		"wrong password": {changed, "at login: the server answers 535"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				accepted := testPassword
				server := &catcher{tls: trusted.tls, mechanisms: []string{"PLAIN"}}
				server.onLogin = func(_, password string) error {
					if password != accepted {
						return refusal(535, "not with "+password)
					}
					return nil
				}
				b := newBed(t, server, func(c *Config) {
					c.TLS, c.RootCAs, c.User, c.Password = StartTLS, roots(trusted), testUser, engine.SecretOf(tt.password)
				})
				err := Check(t.Context(), b.config)
				if told := err != nil; told != (tt.want != "") || told && (err.Error() != tt.want || strings.Contains(err.Error(), tt.password)) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				if len(server.taken()) > 0 {
					t.Error("a letter was sent")
				}
				accepted = changed
				b.SetPassword(engine.SecretOf(changed))
				b.mustSend(t, "ana@example.do")
				pass(time.Minute)
				if stats := b.Stats(); stats.Sent != 1 {
					t.Errorf("with the password that was changed: %+v", stats)
				}
			})
		})
	}
}

// TestCheck_NobodyThere tells how far it came.
func TestCheck_NobodyThere(t *testing.T) {
	config := Config{Addr: "127.0.0.1:1", TLS: Off, From: email(t, "no-reply@tasard.example"), Clock: clock, Random: seeded(1), Dial: noServer}
	if err := Check(t.Context(), config); err == nil || !strings.HasPrefix(err.Error(), "at connect") {
		t.Errorf("got %v", err)
	}
}
