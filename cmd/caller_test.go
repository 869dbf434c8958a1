package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// caller sends requests to a node, with or without a key.
type caller struct {
	t     *testing.T
	node  *program
	token string // of the Authorization header, "" = none
	from  string // of the X-Forwarded-For header, "" = none
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   string
}

// with is the same caller with another token.
func (c caller) with(token string) caller {
	c.token = token
	return c
}

// Send is one request on a connection of its own; a body is JSON.
func (c caller) send(method, path, body string) reply {
	c.t.Helper()
	got, err := c.try(method, path, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", method, path, err, c.node.Output())
	}
	return got
}

// try is send for a node that may be gone.
func (c caller) try(method, path, body string) (reply, error) {
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.node.URL+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.from != "" {
		req.Header.Set("X-Forwarded-For", c.from)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	res, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(text)}, err
}

// must is send for an answer with a certain status, and for errors a certain code.
func (c caller) must(method, path, body string, status int, code string) reply {
	c.t.Helper()
	got := c.send(method, path, body)
	if got.status != status || code != "" && got.code() != code {
		c.t.Fatalf("%s %s: status %d, want %d %s\n%s", method, path, got.status, status, code, got.body)
	}
	return got
}

// code is error.code of an answer.
func (r reply) code() string {
	var refusal struct{ Error struct{ Code string } }
	if err := json.Unmarshal([]byte(r.body), &refusal); err != nil {
		return ""
	}
	return refusal.Error.Code
}

// field is a text of the answer's data.
func (r reply) field(t *testing.T, name string) string {
	t.Helper()
	answer := asJSON[struct{ Data map[string]any }](t, r.body)
	text, found := answer.Data[name].(string)
	if !found {
		t.Fatalf("no %s in %s", name, r.body)
	}
	return text
}

// number is a whole number in a header.
func (r reply) number(t *testing.T, name string) int {
	t.Helper()
	number, err := strconv.Atoi(r.header.Get(name))
	if err != nil {
		t.Fatalf("%s is %q: %v", name, r.header.Get(name), err)
	}
	return number
}

// left returns what is left of a window, -1 if X-RateLimit describes the other, which has less left. Its limit names
// it.
func (r reply) left(t *testing.T, window string) int {
	t.Helper()
	if shown := map[bool]string{true: "minute", false: "day"}[r.header.Get("X-RateLimit-Limit") == "60"]; shown != window {
		return -1
	}
	return r.number(t, "X-RateLimit-Remaining")
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
