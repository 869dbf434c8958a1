package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// detailBytesMax bounds Failure.Detail, which may quote the server.
const detailBytesMax = 1000

// Client fetches documents (web pages, JSON, workbooks) according to source definitions. Its methods are safe for
// concurrent use.
type Client struct {
	config Config
	hosts  sync.Map // *host by name
	robots sync.Map // robotsRules by origin
	tokens sync.Map // accessToken by id of the source
}

// New returns a client. It panics if config has no Clock.
func New(config Config) *Client { return &Client{config: config.withDefaults()} }

// Fetch returns the document of d.Pages[page]. The error is a *source.Failure. The caller may change the body.
// When Fetch returns, its connections are closed.
func (c *Client) Fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.FetchTimeout)
	defer cancel()
	s, fetchErr := c.newSession(ctx, d, page)
	if fetchErr == nil {
		var document *source.Document
		if document, fetchErr = s.run(ctx); fetchErr == nil {
			return document, nil
		}
		fetchErr.failure.Detail = s.secrets.redact(fetchErr.failure.Detail)
	}
	fetchErr.failure.Page = d.Pages[page].Name
	fetchErr.failure.Detail = sanitize(fetchErr.failure.Detail, detailBytesMax)
	return nil, fetchErr.failure
}

const (
	requestTimeoutDefault = 12 * time.Second
	fetchTimeoutDefault   = 30 * time.Second
	pauseDefault          = 500 * time.Millisecond
	userAgentDefault      = "Mozilla/5.0 (compatible; tasard; +https://github.com/tasard/tasard)"
)

// Config configures a Client. Clock is required; the zero value of every other field is usable.
type Config struct {
	// Clock is used for documents, pauses and certificate checks. Timeouts use the system's timers.
	Clock func() time.Time
	// UserAgent names the program and a contact, in the form that most sites accept:
	// Mozilla/5.0 (compatible; tasard/1.2; +https://github.com/tasard/tasard; ops@example.do).
	UserAgent string
	// Dial opens a connection. It must return when its context ends. nil: connect only to public addresses, and to IP
	// addresses in the URLs of the definition.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Roots contains the trusted certificate authorities. nil: those of the system.
	Roots *x509.CertPool
	// CA reads a PEM file with certificates, named by a source's definition (CAFile). nil: fetching such a source
	// fails.
	CA func(name string) ([]byte, error)
	// Secret returns a secret by the name in a definition (Definition.SecretNames), or "" if there is none. nil: no
	// secrets.
	Secret func(name string) string
	// RequestTimeout bounds one request, from the dial to the last byte of the response. 0: 12 s.
	RequestTimeout time.Duration
	// FetchTimeout bounds a Fetch, including waits, redirects and retries. 0: 30 s.
	FetchTimeout time.Duration
	// Pause is the minimum time between the end of a request and the next request to the same host.
	// 0: 500 ms; negative: no pause, for a simulated site.
	Pause time.Duration
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		panic("fetch.New: Config.Clock is nil; give it time.Now")
	}
	if c.UserAgent == "" {
		c.UserAgent = userAgentDefault
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
	if c.CA == nil {
		c.CA = func(string) ([]byte, error) { return nil, errors.New("certificate files can't be read here") }
	}
	if c.Secret == nil {
		c.Secret = func(string) string { return "" }
	}
	return c
}
