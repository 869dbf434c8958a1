package fetch

import (
	"context"
	"crypto/x509"
	"math/rand/v2"
	"net"
	"time"
)

// Defaults of a Config.
const (
	requestTimeoutDefault = 12 * time.Second
	fetchTimeoutDefault   = 30 * time.Second
	pauseDefault          = 500 * time.Millisecond
	userAgentDefault      = "tasard (+https://github.com/tasard/tasard)"
)

// Config configures a Client. Clock is required; the zero value of every other field is usable.
type Config struct {
	// Clock is used for documents, pauses and certificate checks, but not for timeouts.
	Clock func() time.Time
	// Random is used for jitter in the waits between tries. Only the client may use it. nil: no jitter.
	Random *rand.Rand
	// UserAgent names the program and a contact: tasard/1.2 (+https://github.com/tasard/tasard; ops@example.do).
	UserAgent string
	// Dial connects. It must return when its context ends. nil: the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Roots are the trusted certificate authorities. nil: those of the system.
	Roots *x509.CertPool
	// CA reads a PEM file named by Definition.CAFile. nil: no definition may name one.
	CA func(name string) ([]byte, error)
	// RequestTimeout bounds one request, from the connection to the last byte. 0: 12 s.
	RequestTimeout time.Duration
	// FetchTimeout bounds a Fetch, including its waits, redirects and retries. 0: 30 s.
	FetchTimeout time.Duration
	// Pause is the minimum time between two requests to one host. 0: 500 ms; negative: none, for a simulated site.
	Pause time.Duration
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		panic("fetch.New: Config.Clock is nil; give it time.Now")
	}
	if c.UserAgent == "" {
		c.UserAgent = userAgentDefault
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.RequestTimeout <= 0 {
		c.RequestTimeout = requestTimeoutDefault
	}
	if c.FetchTimeout <= 0 {
		c.FetchTimeout = fetchTimeoutDefault
	}
	if c.Pause == 0 {
		c.Pause = pauseDefault
	}
	c.Pause = max(c.Pause, 0)
	return c
}
