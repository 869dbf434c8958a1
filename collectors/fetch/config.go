package fetch

import (
	"context"
	"crypto/x509"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Defaults of a Config.
const (
	requestTimeoutDefault = 12 * time.Second
	fetchTimeoutDefault   = 30 * time.Second
	pauseDefault          = 500 * time.Millisecond
	userAgentDefault      = "tasard (+https://github.com/tasard/tasard)"
)

// Config says how documents are fetched. Clock is required; everything else may be left out.
type Config struct {
	// Clock gives the time of documents, of certificates and of pauses. Timeouts run on timers, whatever it says. Required.
	Clock func() time.Time
	// Random spreads the waits between tries; used under a lock, so it must belong to the client alone. nil: no spread.
	Random *rand.Rand
	// UserAgent is who we are, with a way to reach us: tasard/1.2 (+https://github.com/tasard/tasard; ops@example.do).
	UserAgent string
	// Dial connects. It must end when its context does. nil: the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Roots are the authorities that are trusted. nil: those of the system.
	Roots *x509.CertPool
	// CA reads the file that Definition.CAFile names, in PEM. nil: no definition may name one.
	CA func(name string) ([]byte, error)
	// Proxy chooses a proxy, as in http.Transport. nil: none, whatever the environment says.
	Proxy func(*http.Request) (*url.URL, error)
	// RequestTimeout bounds one request, from the connection to the last byte. 0: 12 s.
	RequestTimeout time.Duration
	// FetchTimeout bounds a Fetch with its queues, pauses, redirects and retries. 0: 30 s.
	FetchTimeout time.Duration
	// Pause is kept between two requests to one host. 0: 500 ms; negative: none, for a site of our own.
	Pause time.Duration
}

// withDefaults puts the defaults in.
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
	switch {
	case c.Pause == 0:
		c.Pause = pauseDefault
	case c.Pause < 0:
		c.Pause = 0
	}
	return c
}
