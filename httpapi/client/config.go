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
	"time"
)

// Defaults of Config.
const (
	RetriesDefault   = 3
	WaitMaxDefault   = 65 * time.Second // longer than a minute, the shorter of the two quota windows
	TimeoutDefault   = 30 * time.Second // timeout of each attempt with the default HTTPClient
	BodyMaxDefault   = 8 << 20          // of the uncompressed body; the largest page has about 150 KB
	UserAgentDefault = "tasard-client"
)

// NoRetries as Config.Retries turns retries off.
const NoRetries = -1

const idleConnsPerHost = 16

// Secret is an API key or a session token. fmt and slog print it as "(secret)". Danger: string(s) and JSON contain the
// secret.
type Secret string

const redacted = "(secret)"

// String implements fmt.Stringer without the secret.
func (s Secret) String() string { return redacted }

// GoString implements fmt.GoStringer without the secret.
func (s Secret) GoString() string { return redacted }

// LogValue implements slog.LogValuer without the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Config configures a Client. Only BaseURL is required.
type Config struct {
	// BaseURL is the URL of the node (the server of the API), such as https://rates.example, with or without /v1.
	// Danger: plain http exposes the key to the network.
	BaseURL string
	// Key is the API key. "" = anonymous.
	Key Secret
	// HTTPClient sends the requests. nil = a client with TimeoutDefault. Redirects are never followed.
	HTTPClient *http.Client
	// UserAgent is the User-Agent header. "" = UserAgentDefault.
	UserAgent string
	// Retries is the maximum number of retries of a request. 0 = RetriesDefault; see NoRetries.
	Retries int
	// WaitMax is the longest wait before a retry. If Retry-After is longer, the error is returned at once. 0 =
	// WaitMaxDefault.
	WaitMax time.Duration
	// Wait waits before a retry. nil = wait in real time. In a test it can advance a clock.
	Wait func(ctx context.Context, wait time.Duration) error
	// Random is the source of random bytes from which waits before retries are computed. It must be safe for concurrent
	// use. nil = crypto/rand.
	Random io.Reader
	// BodyMax is the largest response body in bytes; a larger body is an error. 0 = BodyMaxDefault.
	BodyMax int64
}

// Client sends requests to a node. It is safe for concurrent use.
type Client struct {
	config Config
	base   string // without a slash at the end
	http   *http.Client
}

// New validates a Config. It opens no connection.
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
	httpClient := http.Client{Timeout: TimeoutDefault}
	if config.HTTPClient != nil {
		httpClient = *config.HTTPClient
	} else {
		httpClient.Transport = newTransport()
	}
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{config: config, base: base, http: &httpClient}, nil
}

// newTransport returns the transport of the default HTTPClient. It is used instead of http.DefaultTransport, which the
// whole program shares.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: idleConnsPerHost,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: TimeoutDefault / 3,
	}
}

// parseBaseURL validates a base URL. It removes slashes and /v1 from its end.
func parseBaseURL(text string) (string, error) {
	base, err := url.Parse(text)
	if err != nil {
		return "", errors.New("client: BaseURL can't be read; want https://HOST") // without err, which may contain a password
	}
	switch {
	case base.Scheme != "https" && base.Scheme != "http", base.Host == "":
		return "", fmt.Errorf("client: BaseURL is %q, want https://HOST", base.Redacted())
	case base.User != nil:
		return "", errors.New("client: BaseURL has a user or a password; keys go into Config.Key")
	case base.RawQuery != "", base.Fragment != "":
		return "", fmt.Errorf("client: BaseURL has a query or a fragment: want https://%s", base.Host)
	}
	return strings.TrimRight(strings.TrimSuffix(strings.TrimRight(base.String(), "/"), "/v1"), "/"), nil
}

// sleep waits in real time. It is the default of Config.Wait.
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

// String describes the client without its key.
func (c *Client) String() string { return "client of " + c.base }

// GoString implements fmt.GoStringer without the key.
func (c *Client) GoString() string { return c.String() }

// BaseURL returns the URL of the node, without a slash at the end.
func (c *Client) BaseURL() string { return c.base }

// CloseIdleConnections closes the idle connections of the HTTP client.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }
