package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// TLS is how the connection to the mail server is encrypted; "" is StartTLS.
type TLS string

// With StartTLS and Implicit the server's certificate must be valid for the host of Config.Addr.
const (
	StartTLS TLS = "starttls" // the STARTTLS command, before any email or password is sent
	Implicit TLS = "tls"      // TLS from the first byte
	Off      TLS = "off"      // no encryption, also of codes: only for a server on the same machine
)

// Config configures a Mailer. Addr, From, Clock and Random are required.
type Config struct {
	// Addr is the mail server, host:port. Its certificate must name the host.
	Addr string
	// TLS is StartTLS when empty.
	TLS TLS
	// User and Password authenticate to the server with PLAIN or LOGIN. Set both or neither. They require TLS.
	User     string
	Password account.Secret
	// From is the sender's address. Its domain is used in EHLO and in Message-IDs.
	From account.Email
	// CAFile has the PEM certificates of trusted authorities; "" means those of the system.
	CAFile string
	// Clock returns the time. With a monotonic reading, steps of the wall clock do not affect delays.
	Clock func() time.Time
	// Random is the source of Message-IDs and jitter, usually crypto/rand.Reader. It need not be safe for concurrent use.
	Random io.Reader
	// Logger receives log records, with masked addresses. nil discards them.
	Logger *slog.Logger
	// ProbeInterval is the time between probes of an unreachable server. When a probe connects, the first email is sent at
	// once. With 0 there are no probes, and emails wait until their next attempt.
	ProbeInterval time.Duration

	// For tests; zero is the default.
	rootCAs                                    *x509.CertPool
	queueMax                                   int // emails waiting or being sent
	attemptsMax                                int // attempts for each email
	breaker                                    breakerSettings
	backoffFirst, backoffMax                   time.Duration // delay after the first failed attempt, doubled after each attempt up to backoffMax
	connectTimeout, emailTimeout, drainTimeout time.Duration
	dial                                       func(ctx context.Context, network, addr string) (net.Conn, error)
}

// breakerSettings: after failureThreshold consecutive failures of the server, no email is attempted for the cooldown.
type breakerSettings struct {
	failureThreshold int
	cooldown         time.Duration
}

const (
	queueMaxDefault     = 1000
	attemptsMaxDefault  = 10 // with backoff this is longer than greylisting of five minutes
	backoffFirstDefault = 5 * time.Second
	backoffMaxDefault   = 2 * time.Minute
	connectDefault      = 15 * time.Second // TCP, TLS, greeting and login together
	emailDefault        = 30 * time.Second // the SMTP dialog of one email
	drainDefault        = 10 * time.Second // for Close
	quitTimeout         = 2 * time.Second
	sessionEmailsMax    = 50      // on one connection, because servers limit the number
	sessionReadBytesMax = 1 << 20 // from the server on one connection; usually 10 KiB
)

var breakerDefault = breakerSettings{5, 30 * time.Second}

// complete checks the settings and sets defaults. Errors name the field.
func (c Config) complete() (Config, error) {
	c.TLS = cmp.Or(c.TLS, StartTLS)
	if err := c.check(); err != nil {
		return c, err
	}
	c.queueMax, c.attemptsMax = cmp.Or(c.queueMax, queueMaxDefault), cmp.Or(c.attemptsMax, attemptsMaxDefault)
	c.breaker = cmp.Or(c.breaker, breakerDefault)
	c.backoffFirst = cmp.Or(c.backoffFirst, backoffFirstDefault)
	c.backoffMax = cmp.Or(c.backoffMax, max(backoffMaxDefault, c.backoffFirst))
	c.connectTimeout, c.emailTimeout = cmp.Or(c.connectTimeout, connectDefault), cmp.Or(c.emailTimeout, emailDefault)
	c.drainTimeout = cmp.Or(c.drainTimeout, drainDefault)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.dial == nil {
		c.dial = (&net.Dialer{}).DialContext
	}
	if c.CAFile != "" {
		roots, err := readRoots(c.CAFile)
		if err != nil {
			return c, err
		}
		c.rootCAs = roots
	}
	return c, nil
}

func (c Config) check() error {
	if err := checkAddr(c.Addr); err != nil {
		return err
	}
	hasPassword := c.Password != account.Secret{}
	switch {
	case c.TLS != StartTLS && c.TLS != Implicit && c.TLS != Off:
		return fmt.Errorf("check mail settings: TLS is %q, want %q, %q or %q", c.TLS, StartTLS, Implicit, Off)
	case c.From.IsZero():
		return errors.New("check mail settings: From is empty, want the address of the sender")
	case (c.User == "") == hasPassword:
		return errors.New("check mail settings: User and Password belong together, one is missing")
	case c.TLS == Off && hasPassword:
		return errors.New("check mail settings: TLS is off, so the password would be sent unencrypted; use starttls or tls")
	case c.TLS == Off && c.CAFile != "":
		return errors.New("check mail settings: TLS is off, so CAFile has no effect; leave it out or use starttls or tls")
	case c.Clock == nil:
		return errors.New("check mail settings: Clock is nil")
	case c.Random == nil:
		return errors.New("check mail settings: Random is nil")
	}
	return nil
}

func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("check mail settings: Addr is %q, want host:port", addr)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 || host == "" || strings.ContainsFunc(host, notInHost) {
		return fmt.Errorf("check mail settings: Addr is %q, want host:port with a port from 1 to 65535", addr)
	}
	return nil
}

func notInHost(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"/<>@\`, c) }

func readRoots(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the certificates: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the certificates: %s has no PEM certificate", file)
	}
	return roots, nil
}

// host returns the host of Addr.
func (c Config) host() string {
	host, _, _ := net.SplitHostPort(c.Addr)
	return host
}

// domain returns the domain of From.
func (c Config) domain() string {
	from := c.From.String()
	return from[strings.LastIndexByte(from, '@')+1:]
}

func (c Config) tls() *tls.Config {
	return &tls.Config{ServerName: c.host(), RootCAs: c.rootCAs, MinVersion: tls.VersionTLS12}
}
