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

// TLS is how a connection to the mail server is protected. The empty value is StartTLS.
type TLS string

// The ways of protection. With StartTLS and Implicit the certificate must be valid for the host of Config.Addr.
const (
	StartTLS TLS = "starttls" // the dialog begins readable and changes before anything is said
	Implicit TLS = "tls"      // TLS from the first byte
	Off      TLS = "off"      // readable on the way, codes too: only for a server on the same machine
)

// Config says where letters go and how hard it is tried. Addr, From, Clock and Random are required.
type Config struct {
	// Addr is the mail server, host:port. The host is the name that its certificate must bear.
	Addr string
	// TLS is StartTLS when empty.
	TLS TLS
	// User and Password log in at the server, by PLAIN or LOGIN. Both or neither; an error with TLS off.
	User     string
	Password account.Secret
	// From is the sender. Its domain greets the server and ends the Message-IDs.
	From account.Email
	// CAFile holds the PEM certificates that may sign the server's, RootCAs the same as a value; at most one of them.
	// With neither those of the system count.
	CAFile  string
	RootCAs *x509.CertPool

	// Clock gives the time for Date, expiry and the waits. Its monotonic part, if it has one, keeps steps of the wall
	// clock out of the waits.
	Clock func() time.Time
	// Random is the source of Message-IDs and jitter: crypto/rand.Reader. Read by one goroutine at a time.
	Random io.Reader
	// Logger gets what happens to letters, addresses masked. nil discards.
	Logger *slog.Logger

	// QueueMax is how many letters may wait or be on their way. 0 is 1000.
	QueueMax int
	// AttemptsMax is how often a letter is tried. 0 is 10.
	AttemptsMax int
	Backoff     Backoff
	Breaker     Breaker
	Timeouts    Timeouts
	// ProbeInterval is how often it is looked whether a server that could not be reached can be again: by a connection over which nothing is
	// said. The first letter is tried as soon as it can. 0 is never: then the waits of letters and breaker alone decide.
	ProbeInterval time.Duration

	// Dial opens connections; it must return when its context ends. nil is a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Backoff is how long a letter waits for its next try: First after the first, then twice as long each time, up to Max.
// Chance shortens each wait by up to a half. Zeros are 5 s and 2 min, so that ten tries outlast a greylist of five minutes.
type Backoff struct{ First, Max time.Duration }

// Breaker is when the server is left in peace: after Failures of the server in a row, for Pause. Zeros are 5 and 30 s.
type Breaker struct {
	Failures int
	Pause    time.Duration
}

// Timeouts bound what is waited for.
type Timeouts struct {
	Connect time.Duration // TCP, TLS, greeting and login together; 0 is 15 s
	Email   time.Duration // the dialog of one letter; 0 is 30 s
	Drain   time.Duration // what Close waits for letters, if its context lets it; 0 is 10 s
}

const (
	queueMaxDefault     = 1000
	queueMaxLimit       = 10_000 // more could not be sent before the codes expire
	attemptsDefault     = 10
	attemptsLimit       = 100
	failuresDefault     = 5
	failuresLimit       = 1000
	backoffDefault      = 5 * time.Second
	backoffMaxDefault   = 2 * time.Minute
	pauseDefault        = 30 * time.Second
	connectDefault      = 15 * time.Second
	emailDefault        = 30 * time.Second
	drainDefault        = 10 * time.Second
	durationLimit       = time.Hour
	quitTimeout         = 2 * time.Second
	sessionEmailsMax    = 50      // letters over one connection; servers cut off those who send many
	sessionReadBytesMax = 1 << 20 // what a server may say over one connection; a kind one says 10 KiB
)

// complete checks the settings and fills in what is zero. The errors name the field.
func (c Config) complete() (Config, error) {
	c.TLS = cmp.Or(c.TLS, StartTLS)
	if err := c.check(); err != nil {
		return c, err
	}
	if err := c.completeNumbers(); err != nil {
		return c, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.CAFile != "" {
		roots, err := readRoots(c.CAFile)
		if err != nil {
			return c, err
		}
		c.RootCAs = roots
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
		return errors.New("check mail settings: From is empty, want the address that letters come from")
	case (c.User == "") == hasPassword:
		return errors.New("check mail settings: User and Password belong together, one is missing")
	case c.TLS == Off && hasPassword:
		return errors.New("check mail settings: TLS is off, so the password would be readable on the way; use starttls or tls")
	case c.TLS == Off && (c.CAFile != "" || c.RootCAs != nil):
		return errors.New("check mail settings: TLS is off, so CAFile and RootCAs mean nothing; leave them out or use starttls or tls")
	case c.CAFile != "" && c.RootCAs != nil:
		return errors.New("check mail settings: CAFile and RootCAs are both set, want one")
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
	number, err := strconv.Atoi(port)
	if err != nil || number < 1 || number > 65535 || host == "" || strings.ContainsFunc(host, notInHost) {
		return fmt.Errorf("check mail settings: Addr is %q, want host:port with a port from 1 to 65535", addr)
	}
	return nil
}

func notInHost(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"/<>@\`, r) }

// completeNumbers fills in zeros and refuses what is negative or beyond its limit.
func (c *Config) completeNumbers() error {
	err := cmp.Or(
		completeNumber("QueueMax", &c.QueueMax, queueMaxDefault, queueMaxLimit),
		completeNumber("Attempts", &c.AttemptsMax, attemptsDefault, attemptsLimit),
		completeNumber("Breaker.Failures", &c.Breaker.Failures, failuresDefault, failuresLimit),
		completeNumber("Backoff.First", &c.Backoff.First, backoffDefault, durationLimit),
		completeNumber("Backoff.Max", &c.Backoff.Max, max(backoffMaxDefault, c.Backoff.First), durationLimit),
		completeNumber("Breaker.Pause", &c.Breaker.Pause, pauseDefault, durationLimit),
		completeNumber("Timeouts.Connect", &c.Timeouts.Connect, connectDefault, durationLimit),
		completeNumber("Timeouts.Letter", &c.Timeouts.Email, emailDefault, durationLimit),
		completeNumber("Timeouts.Drain", &c.Timeouts.Drain, drainDefault, durationLimit),
		completeNumber("Probe", &c.ProbeInterval, 0, durationLimit),
	)
	if err == nil && c.Backoff.Max < c.Backoff.First {
		err = fmt.Errorf("check mail settings: Backoff.Max is %s, less than Backoff.First, which is %s", c.Backoff.Max, c.Backoff.First)
	}
	return err
}

func completeNumber[N int | time.Duration](name string, value *N, usual, limit N) error {
	if *value < 0 || *value > limit {
		return fmt.Errorf("check mail settings: %s is %v, want %v to %v", name, *value, N(0), limit)
	}
	*value = cmp.Or(*value, usual)
	return nil
}

func readRoots(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the certificates of CAFile: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the certificates of CAFile: %s holds no PEM certificate", file)
	}
	return roots, nil
}

// host is the name that the server's certificate must bear.
func (c Config) host() string {
	host, _, _ := net.SplitHostPort(c.Addr)
	return host
}

// domain is that of the sender.
func (c Config) domain() string {
	from := c.From.String()
	return from[strings.LastIndexByte(from, '@')+1:]
}

func (c Config) tls() *tls.Config {
	return &tls.Config{ServerName: c.host(), RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12}
}
