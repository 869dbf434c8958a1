package mail

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine/account"
)

func goodConfig(t *testing.T) Config {
	return Config{Addr: serverName + ":587", From: email(t, "no-reply@tasard.example"), Clock: clock, Random: seeded(1)}
}

func TestConfig_Refused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := account.SecretOf(testPassword)
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no address", func(c *Config) { c.Addr = "" }, "Addr"},
		{"no port", func(c *Config) { c.Addr = serverName }, "want host:port"},
		{"no host", func(c *Config) { c.Addr = ":25" }, "Addr"},
		{"port by name", func(c *Config) { c.Addr = serverName + ":smtp" }, "1 to 65535"},
		{"port too large", func(c *Config) { c.Addr = serverName + ":65536" }, "1 to 65535"},
		{"a line break in the host", func(c *Config) { c.Addr = "mail\r\nQUIT:25" }, "Addr"},
		{"a socket file", func(c *Config) { c.Addr = "unix:///run/x:25" }, "Addr"},
		{"no sender", func(c *Config) { c.From = account.Email{} }, "From"},
		{"password without TLS", func(c *Config) { c.TLS, c.User, c.Password = Off, testUser, secret }, "unencrypted"},
		{"no such file", func(c *Config) { c.CAFile = empty + ".gone" }, "no such file"},
		{"file without certificate", func(c *Config) { c.CAFile = empty }, "no PEM certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := goodConfig(t)
			tt.change(&config)
			m, err := Open(config)
			if err == nil || m != nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), testPassword) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

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
	if err := NewLogMailer(&out).Send(account.LoginMail{}); !errors.Is(err, ErrInvalidMail) {
		t.Errorf("an empty email: %v", err)
	}
	if err := NewLogMailer(failingWriter{}).Send(mail); err == nil || strings.Contains(err.Error(), testCode) {
		t.Errorf("a writer that fails: %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }
