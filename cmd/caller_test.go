package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const requestTimeout = 10 * time.Second

// httpClient is a client of a node with its own connections, for concurrent use.
type httpClient struct {
	transport *http.Transport
	client    http.Client
	from      string // of the X-Forwarded-For header, "" = none
}

// newHTTPClient makes a client with a source address such as 127.0.0.7; "" is the default.
func newHTTPClient(from string) *httpClient {
	dialer := net.Dialer{Timeout: requestTimeout}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	return httpClientOver(dialer.DialContext)
}

// newAdminClient makes a client of a management socket, with a new connection for each request, as the admin command
// has.
func newAdminClient(socket string) *httpClient {
	admin := httpClientTo("unix", socket)
	admin.transport.DisableKeepAlives = true
	return admin
}

// httpClientTo makes a client that connects to one address for every host.
func httpClientTo(network, address string) *httpClient {
	return httpClientOver(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
}

func httpClientOver(dial func(ctx context.Context, network, address string) (net.Conn, error)) *httpClient {
	transport := &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: 64}
	return &httpClient{transport: transport, client: http.Client{
		Transport: transport, Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes idle connections.
func (c *httpClient) close() { c.transport.CloseIdleConnections() }

// answer is the answer of a node.
type answer struct {
	status int
	code   string // error.code, "" for a good answer
	header http.Header
	body   string
	sent   *atomic.Int32 // how often the request was sent: see do
}

// good reports an acknowledgement.
func (a *answer) good() bool { return a.status >= 200 && a.status < 300 }

// do sends one request. key is a key or a session token, "" = none; value is sent as JSON, nil = none. Without an
// error the complete answer has arrived; with an error the request may have been executed or not, but see unsent.
// Danger: the library repeats a GET if a reused connection fails; sent counts all attempts.
func (c *httpClient) do(method, url, key string, value any) (answer, error) {
	got := answer{sent: &atomic.Int32{}}
	var body io.Reader
	if value != nil {
		text, err := json.Marshal(value)
		if err != nil {
			return got, err
		}
		body = bytes.NewReader(text)
	}
	trace := httptrace.ClientTrace{WroteHeaders: func() { got.sent.Add(1) }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), &trace), method, url, body)
	if err != nil {
		return got, err
	}
	if value != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	if c.from != "" {
		request.Header.Set("X-Forwarded-For", c.from)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return got, err
	}
	defer response.Body.Close()
	got.status, got.header = response.StatusCode, response.Header
	text, err := io.ReadAll(response.Body)
	if got.body = string(text); err != nil || got.status < 400 {
		return got, err
	}
	var refusal struct{ Error struct{ Code string } }
	if err := json.Unmarshal(text, &refusal); err != nil && method != http.MethodHead && strings.Contains(url, "/v1/") {
		return got, fmt.Errorf("%s %s: status %d without an error object: %q", method, url, got.status, text)
	}
	got.code = refusal.Error.Code
	return got, nil
}

// caller sends requests to a node, with or without a key.
type caller struct {
	t     *testing.T
	node  *program
	token string // of the Authorization header, "" = none
	from  string // of the X-Forwarded-For header, "" = none
}

// with is the same caller with another token.
func (c caller) with(token string) caller {
	c.token = token
	return c
}

// Send is one request on a connection of its own; a body is JSON.
func (c caller) send(method, path, body string) answer {
	c.t.Helper()
	got, err := c.try(method, path, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", method, path, err, c.node.Output())
	}
	return got
}

// try is send for a node that may be gone.
func (c caller) try(method, path, body string) (answer, error) {
	client := newHTTPClient("")
	defer client.close()
	client.from, client.client.Timeout = c.from, patience
	var value any
	if body != "" {
		value = json.RawMessage(body)
	}
	return client.do(method, c.node.URL+path, c.token, value)
}

// must is send for an answer with a certain status, and for errors a certain code.
func (c caller) must(method, path, body string, status int, code string) answer {
	c.t.Helper()
	got := c.send(method, path, body)
	if got.status != status || code != "" && got.code != code {
		c.t.Fatalf("%s %s: status %d, want %d %s\n%s", method, path, got.status, status, code, got.body)
	}
	return got
}

// field is a text of the answer's data.
func (a answer) field(t *testing.T, name string) string {
	t.Helper()
	text, isText := asJSON[struct{ Data map[string]any }](t, a.body).Data[name].(string)
	if !isText {
		t.Fatalf("no %s in %s", name, a.body)
	}
	return text
}

// number is a whole number in a header.
func (a answer) number(t *testing.T, name string) int {
	t.Helper()
	number, err := strconv.Atoi(a.header.Get(name))
	if err != nil {
		t.Fatalf("%s is %q: %v", name, a.header.Get(name), err)
	}
	return number
}

// left returns what is left of a window, -1 if X-RateLimit describes the other, which has less left. Its limit names
// it.
func (a answer) left(t *testing.T, window string) int {
	t.Helper()
	if shown := map[bool]string{true: "minute", false: "day"}[a.header.Get("X-RateLimit-Limit") == "60"]; shown != window {
		return -1
	}
	return a.number(t, "X-RateLimit-Remaining")
}

// Paths of the tests.
const (
	codesPath    = "/v1/account/codes"
	sessionsPath = "/v1/account/sessions"
	keysPath     = "/v1/account/keys"
	usagePath    = "/v1/account/usage"
	countedPath  = "/v1/currencies" // answered also while no rate is published, and counted
)

// signIn goes the way from an address to a session.
func (c caller) signIn(box *mailServer, email string) caller {
	c.t.Helper()
	c.must("POST", codesPath, `{"email":"`+email+`"}`, http.StatusAccepted, "")
	code := box.code(email)
	session := c.must("POST", sessionsPath, `{"email":"`+email+`","code":"`+code+`"}`, http.StatusOK, "")
	return c.with(session.field(c.t, "token"))
}

// newKey is a fresh key of the session, and its id.
func (c caller) newKey(name string) (caller, string) {
	c.t.Helper()
	key := c.must("POST", keysPath, `{"name":"`+name+`"}`, http.StatusCreated, "")
	return c.with(key.field(c.t, "secret")), key.field(c.t, "id")
}

// operations are requests of all seven data operations, with every kind of answer that real observations lead to.
func operations() []string {
	return []string{
		"/v1/currencies",
		"/v1/institutions?limit=200",
		"/v1/institutions?currency=EUR",
		"/v1/institutions/popular",
		"/v1/institutions/bcrd",
		"/v1/rates?limit=200",
		"/v1/rates?currency=USD&institution=scotiabank&kind=commercial",
		"/v1/rates/best?currency=USD&operation=buy&limit=200",
		"/v1/rates/best?currency=EUR&operation=sell&limit=200",
		"/v1/rates/best?currency=USD&operation=buy&channel=digital",
		"/v1/convert?currency=USD&operation=sell&amount=1234.56&limit=200",
		"/v1/convert?currency=USD&operation=buy&amount=0.01&institution=popular",
		"/v1/rates/history?from=2026-06-01&to=2026-06-30&currency=USD&limit=200",
		"/v1/rates/history?from=2025-07-01&to=2026-06-30&institution=bhd&limit=200",
	}
}

// responds are the bodies of all operations, and of every page of a year of history, without the moment at which they
// were cut.
func answers(p *program) map[string]string {
	p.t.Helper()
	all := map[string]string{}
	for _, path := range operations() {
		all[path] = withoutMoment(p.mustGet(path))
	}
	for cursor := 0; ; {
		path := fmt.Sprintf("/v1/rates/history?from=2025-07-01&to=2026-06-30&limit=200&cursor=%d", cursor)
		body := p.mustGet(path)
		all[path] = withoutMoment(body)
		page := asJSON[struct {
			Meta struct {
				NextCursor *int `json:"nextCursor"`
			} `json:"meta"`
		}](p.t, body)
		if page.Meta.NextCursor == nil {
			return all
		}
		cursor = *page.Meta.NextCursor
	}
}

func withoutMoment(body string) string {
	return regexp.MustCompile(`"generatedAt":"[^"]*"`).ReplaceAllString(body, `"generatedAt":""`)
}

// sameAnswers fails when a question is answered differently.
func sameAnswers(t *testing.T, got, want map[string]string) {
	t.Helper()
	for path := range want {
		if got[path] != want[path] {
			at := firstDifference(got[path], want[path])
			t.Errorf("GET %s\nhas %s\nhad %s", path, around(got[path], at), around(want[path], at))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d answers, want %d", len(got), len(want))
	}
}

func firstDifference(a, b string) int {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return at
}

func around(text string, at int) string {
	return text[max(0, at-400):min(len(text), at+100)]
}
