package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
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
	c.UserAgent = cmp.Or(c.UserAgent, userAgentDefault)
	c.RequestTimeout, c.FetchTimeout = cmp.Or(c.RequestTimeout, requestTimeoutDefault), cmp.Or(c.FetchTimeout, fetchTimeoutDefault)
	c.Pause = max(cmp.Or(c.Pause, pauseDefault), 0)
	if c.CA == nil {
		c.CA = func(string) ([]byte, error) { return nil, errors.New("certificate files can't be read here") }
	}
	if c.Secret == nil {
		c.Secret = func(string) string { return "" }
	}
	return c
}

// newTransport returns the transport of one Fetch: HTTP/1.1, gzip, no proxy except the definition's. Each Fetch has its
// own, so that sources share no connections and no certificate authorities.
//
// The end of ctx, that of the Fetch, closes every connection. The context of a dial is ignored, because it may outlive
// the Fetch.
func (c *Client) newTransport(ctx context.Context, d *source.Definition) (*http.Transport, *fetchError) {
	roots, fetchErr := c.roots(d)
	if fetchErr != nil {
		return nil, fetchErr
	}
	config := &tls.Config{RootCAs: roots, Time: c.config.Clock, MinVersion: tls.VersionTLS12}
	var proxy func(*http.Request) (*url.URL, error)
	if d.Proxy != "" {
		address, err := url.Parse(d.Proxy)
		if err != nil {
			return nil, newFetchError(source.Internal, "%q is not the address of a proxy; correct the definition", d.Proxy).withCause(err)
		}
		proxy = http.ProxyURL(address)
	}
	dial := c.config.Dial
	if dial == nil {
		dial = dialPublic(d)
	}
	return &http.Transport{
		Proxy: proxy,
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() }) // the transport has closed most of them already
			}
			return conn, err
		},
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    c.config.RequestTimeout,
		IdleConnTimeout:        c.config.FetchTimeout,
		MaxResponseHeaderBytes: headerBytesMax,
	}, nil
}

// roots returns the trusted certificates for a source: Config.Roots and the definition's PEM file (CAFile). A CAFile
// can also contain an intermediate certificate that the server omits.
func (c *Client) roots(d *source.Definition) (*x509.CertPool, *fetchError) {
	if d.CAFile == "" {
		return c.config.Roots, nil
	}
	text, err := c.config.CA(d.CAFile)
	if err != nil {
		return nil, newFetchError(source.TLS, "read caFile %q: %v", d.CAFile, err).withCause(err)
	}
	pool := c.config.Roots
	if pool == nil {
		if pool, err = x509.SystemCertPool(); err != nil {
			return nil, newFetchError(source.TLS, "read the certificate authorities of the system: %v", err).withCause(err)
		}
	}
	pool = pool.Clone()
	if !pool.AppendCertsFromPEM(text) {
		return nil, newFetchError(source.TLS, "caFile %q holds no certificate in PEM", d.CAFile)
	}
	return pool, nil
}

// sharedAddresses are addresses behind providers' NAT (RFC 6598), not reachable from outside.
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")

// dialPublic returns the dial function for a source if Config.Dial is nil. It connects only to public addresses, so
// that neither a site's DNS nor a redirect can direct requests into the operator's network. An IP address in a URL of
// the definition is allowed too. With a proxy, the node connects only to the proxy.
func dialPublic(d *source.Definition) func(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Proxy != "" { // named by the operator; all connections go there
		return new(net.Dialer).DialContext
	}
	named := map[netip.Addr]bool{}
	for i := range d.Pages {
		for _, request := range d.Pages[i].Requests {
			if location, err := url.Parse(request.URL); err == nil {
				if addr, err := netip.ParseAddr(location.Hostname()); err == nil {
					named[addr.Unmap()] = true
				}
			}
		}
	}
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if addr := to.Addr().Unmap().WithZone(""); err != nil || !isPublic(addr) && !named[addr] {
			return fmt.Errorf("%s is not a public address; a source in your own network needs the address itself in the url of its definition", address)
		}
		return nil
	}}
	return dialer.DialContext
}

func isPublic(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !sharedAddresses.Contains(addr)
}

// fetchError is the failure of a request, with the data for doWithRetries.
type fetchError struct {
	failure    *source.Failure
	status     int           // HTTP status; 0 = no response
	retryable  bool          // the same request may succeed a few seconds later
	retryAfter time.Duration // from the Retry-After header; 0 = no such header
}

func newFetchError(kind source.FailureKind, format string, args ...any) *fetchError {
	return &fetchError{failure: source.Failf(kind, format, args...)}
}

func (f *fetchError) withCause(cause error) *fetchError {
	f.failure.Cause = cause
	return f
}

func (f *fetchError) asRetryable() *fetchError {
	f.retryable = true
	return f
}

// exchangeError classifies err, the error of a request without a complete response. action names the request in
// Failure.Detail.
func (s *session) exchangeError(ctx context.Context, err error, action string) *fetchError {
	// The end of a Fetch may close a connection before it ends the context of the request.
	ended := cmp.Or(s.ended(), ctx.Err())
	switch {
	case errors.Is(ended, context.Canceled):
		return newFetchError(source.Network, "%s: the fetch was cancelled", action).withCause(ended)
	case isTimeout(ended, err):
		return newFetchError(source.Timeout, "%s: no complete response in time (at most %v for a request, %v for a fetch)",
			action, s.client.config.RequestTimeout, s.client.config.FetchTimeout).withCause(err).asRetryable()
	case errors.Is(err, http.ErrSchemeMismatch):
		return newFetchError(source.TLS, "%s: the port speaks plain HTTP, want TLS", action).withCause(err)
	case strings.Contains(err.Error(), "tls: "): // not all errors of crypto/tls have a type; TestD4_Hostile has them
		return newFetchError(source.TLS, "%s: %s", action, tlsReason(err)).withCause(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return newFetchError(source.Network, "%s: the response broke off", action).withCause(err).asRetryable()
	default:
		return newFetchError(source.Network, "%s: %v", action, err).withCause(err).asRetryable()
	}
}

func isTimeout(ended, err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(ended, context.DeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

func tlsReason(err error) string {
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		return err.Error() + "; if the server omits an intermediate certificate, name it in caFile"
	}
	return err.Error()
}
