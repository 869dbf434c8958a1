package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Defaults of Config.
const (
	RetriesDefault   = 3
	WaitMaxDefault   = 65 * time.Second // longer than any wait for the minute's limit
	TimeoutDefault   = 30 * time.Second // of one try, with the default HTTPClient
	BodyMaxDefault   = 8 << 20          // bytes, unpacked; the largest page has about 150 KB
	UserAgentDefault = "tasard-client"
)

// NoRetries is the Config.Retries of who wants to see every refusal.
const NoRetries = -1

const idleConnections = 16 // kept for the next request

// Secret is a key or a session token. It prints as a mark; string(s) is the text itself, and so is its JSON, to keep it somewhere safe.
type Secret string

const redacted = "(secret)"

// String is not the secret.
func (s Secret) String() string { return redacted }

// GoString is not the secret.
func (s Secret) GoString() string { return redacted }

// LogValue is not the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Config says whom to ask, and how. Only BaseURL has no default.
type Config struct {
	// BaseURL is where the node answers, without /v1: https://rates.example. Danger: over plain http everybody on the way can read the key.
	BaseURL string
	// Key is the API key. "" asks as an anonymous caller.
	Key Secret
	// HTTPClient carries the requests. Nil is one of our own, with TimeoutDefault for each try. Of one that is given, redirects are turned off.
	HTTPClient *http.Client
	// UserAgent says who asks. "" is UserAgentDefault.
	UserAgent string
	// Retries is how often a request is tried again. 0 is RetriesDefault, NoRetries never.
	Retries int
	// WaitMax is the longest wait for one more try; a refusal that asks for a longer one is returned at once. 0 is WaitMaxDefault.
	WaitMax time.Duration
	// Wait waits. Nil is the time itself; a test moves its clock instead.
	Wait func(ctx context.Context, wait time.Duration) error
	// Random is the chance by which pauses differ, for several goroutines at once. Nil is that of the system.
	Random io.Reader
	// BodyMax is how many bytes of an answer are read; a longer one is an error. 0 is BodyMaxDefault.
	BodyMax int64
}

// Client asks a node. It is safe for concurrent use.
type Client struct {
	config Config
	base   string // without a slash at its end
	http   *http.Client
	last   atomic.Pointer[ResponseInfo]
}

// New checks a Config. It opens no connection.
func New(config Config) (*Client, error) {
	base, err := parseBaseURL(config.BaseURL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(string(config.Key), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("client: the key has blanks, line ends or characters that no key has; is it more than the key?")
	}
	config.UserAgent = cmp.Or(config.UserAgent, UserAgentDefault)
	config.Retries = max(0, cmp.Or(config.Retries, RetriesDefault))
	config.WaitMax = cmp.Or(config.WaitMax, WaitMaxDefault)
	config.BodyMax = cmp.Or(config.BodyMax, BodyMaxDefault)
	if config.Wait == nil {
		config.Wait = sleep
	}
	if config.Random == nil {
		config.Random = rand.Reader
	}
	own := http.Client{Timeout: TimeoutDefault}
	if config.HTTPClient != nil {
		own = *config.HTTPClient
	} else {
		own.Transport = newTransport()
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{config: config, base: base, http: &own}, nil
}

// newTransport is the usual one; that of net/http is shared by the whole program.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: TimeoutDefault / 3,
	}
}

// parseBaseURL refuses what would go wrong at the first request, or leak at every one.
func parseBaseURL(text string) (string, error) {
	base, err := url.Parse(text)
	if err != nil {
		return "", errors.New("client: BaseURL can't be read; want https://HOST") // the text may have a password in it
	}
	switch {
	case base.Scheme != "https" && base.Scheme != "http", base.Host == "":
		return "", fmt.Errorf("client: BaseURL is %q, want https://HOST", base.Redacted())
	case base.User != nil:
		return "", errors.New("client: BaseURL has a user or a password; keys go into Config.Key")
	case base.RawQuery != "", base.Fragment != "":
		return "", fmt.Errorf("client: BaseURL goes on behind its path: want https://%s", base.Host)
	}
	return strings.TrimRight(base.String(), "/"), nil
}

// sleep is Config.Wait of real time.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// String tells whom the client asks, and never its key.
func (c *Client) String() string { return "client of " + c.base }

// GoString is String.
func (c *Client) GoString() string { return c.String() }

// BaseURL is where the node answers.
func (c *Client) BaseURL() string { return c.base }

// LastResponse is what stood around the newest answer, of whichever request; false before the first.
func (c *Client) LastResponse() (ResponseInfo, bool) {
	head := c.last.Load()
	if head == nil {
		return ResponseInfo{}, false
	}
	return *head, true
}

// CloseIdleConnections gives back the connections that are kept for the next request.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }
