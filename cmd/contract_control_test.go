package cmd

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/httpapi/apitest"
)

// failures is a test that counts its errors instead of failing.
type failures struct {
	testing.TB
	count int
}

func (f *failures) Error(...any)          { f.count++ }
func (f *failures) Errorf(string, ...any) { f.count++ }
func (f *failures) Fatal(...any)          { f.count++; runtime.Goexit() }
func (f *failures) Fatalf(string, ...any) { f.count++; runtime.Goexit() }

// broken is a server that keeps the contract behind a proxy that breaks one thing.
type broken struct {
	next     http.RoundTripper
	request  func(*http.Request)
	response func(*http.Request, *http.Response, []byte) []byte // returns the new body
}

func (b broken) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.request != nil {
		r = r.Clone(r.Context())
		b.request(r)
	}
	res, err := b.next.RoundTrip(r)
	if err != nil || b.response == nil {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	body = b.response(r, res, body)
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

// withBody replaces a pattern in the bodies of a path.
func withBody(path, pattern, with string) broken {
	expression := regexp.MustCompile(pattern)
	return broken{response: func(r *http.Request, _ *http.Response, body []byte) []byte {
		if r.URL.Path == path {
			return expression.ReplaceAll(body, []byte(with))
		}
		return body
	}}
}

// withParameter replaces a value of a parameter; from "*" is any value, to "" removes the parameter.
func withParameter(path, name, from, to string) broken {
	return broken{request: func(r *http.Request) {
		query := r.URL.Query()
		if r.URL.Path != path || from != "*" && query.Get(name) != from {
			return
		}
		query.Set(name, to)
		if to == "" {
			query.Del(name)
		}
		r.URL.RawQuery = query.Encode()
	}}
}

// withHeader replaces a header field of the answers with a status (0 = all) to paths that begin with path.
func withHeader(path string, status int, name, value string) broken {
	return broken{response: func(r *http.Request, res *http.Response, body []byte) []byte {
		if strings.HasPrefix(r.URL.Path, path) && (status == 0 || res.StatusCode == status) {
			res.Header.Del(name)
			if value != "" {
				res.Header.Set(name, value)
			}
		}
		return body
	}}
}

func withStatus(path string, from, to int) broken {
	return broken{response: func(r *http.Request, res *http.Response, body []byte) []byte {
		if res.StatusCode == from && strings.HasPrefix(r.URL.Path, path) {
			res.StatusCode = to
		}
		return body
	}}
}

// brokenServers are broken servers, one or two for each rule, with the rule that must find them: the first words of its
// name.
var brokenServers = []struct {
	rule, name string
	broken
}{
	{"S1", "convert applies the other side", withParameter("/v1/convert", "operation", "buy", "sell")},
	{"S2 S3", "priorities turned round", withBody("/v1/rates/best", `("institutionId":"ambar"[^}]*"priority":)100`, `${1}300`)},
	{"S4 S5", "best of reference rates", withParameter("/v1/rates/best", "kind", "reference", "commercial")},
	{"S6", "amounts are cut, not rounded", withBody("/v1/convert", `("amountDop":"\d+\.\d)\d"`, `${1}0"`)},
	{"P1 P2", "the cursor is not looked at", withParameter("/v1/rates", "cursor", "*", "0")},
	{"P4", "history turned round", withBody("/v1/rates/history", `"date":"2026-02-2`, `"date":"2026-03-2`)},
	{"P6", "counts without expired ones", withBody("/v1/currencies", `"quoteCount":2,`, `"quoteCount":1,`)},
	{"P9", "nothing is 404", broken{response: func(_ *http.Request, res *http.Response, body []byte) []byte {
		if bytes.Contains(body, []byte(`"total":0`)) {
			res.StatusCode = http.StatusNotFound
		}
		return body
	}}},
	{"P10", "never stale", withBody("/v1/rates", `"stale":true`, `"stale":false`)},
	{"T5", "from is not looked at", withParameter("/v1/rates/history", "from", "*", "")},
	{"T5", "the future is an error", broken{response: func(r *http.Request, res *http.Response, body []byte) []byte {
		if strings.Contains(r.URL.RawQuery, "from=2026-12") || strings.Contains(r.URL.RawQuery, "from=2027") {
			res.StatusCode = http.StatusBadRequest
		}
		return body
	}}},
	{"Q5 Q6", "HEAD has another tag", broken{response: func(r *http.Request, res *http.Response, body []byte) []byte {
		if r.Method == http.MethodHead {
			res.Header.Set("ETag", `W/"x"`)
		}
		return body
	}}},
	{"Q11", "never compressed", broken{request: func(r *http.Request) { r.Header.Set("Accept-Encoding", "identity") }}},
	{"Q11", "kept for an hour", withHeader("/v1/rates", 200, "Cache-Control", "private, max-age=3600")},
	{"L2", "one more is left than is granted", withHeader("/v1/", 429, "X-RateLimit-Remaining", "1")},
	{"L3", "an error costs nothing", broken{request: func(r *http.Request) {
		if r.URL.RawQuery == "limit=0" {
			r.Method = http.MethodPost
		}
	}}},
	{"K1", "a key opens the account", withStatus("/v1/account/keys", 401, 200)},
	{"K2", "wrong codes are distinguished", withBody("/v1/account/sessions", "invalid_code", "invalid_key")},
	{"K3", "a second code at once", withStatus("/v1/account/codes", 429, 202)},
	{"K5", "a revoked key is unknown", withBody("/v1/account/usage", "revoked_key", "invalid_key")},
	{"K9", "there are events", withStatus("/v1/events", 404, 200)},
	{"Q10", "one id for all", withHeader("/v1/", 0, "X-Request-Id", "1")},
	{"Q10", "no CORS on errors", withHeader("/v1/", 405, "Access-Control-Allow-Origin", "")},
	{"Q10", "a 429 without Retry-After", withHeader("/v1/", 429, "Retry-After", "")},
}

// TestContract_EachRuleFails: each rule finds a server that breaks it, and passes on one that does not.
func TestContract_EachRuleFails(t *testing.T) {
	t.Parallel()
	problemsOf := func(t *testing.T, server broken, rule contractRule) int {
		srv := apitest.Start(t, apitest.Seed("standard"), apitest.Quota(100_000, 1_000))
		server.next = srv.Client.Transport
		c := newContract(t, srv.URL, server, srv.Key())
		c.advance, c.code = srv.Clock.Advance, srv.Code
		f := &failures{TB: t}
		if strings.HasPrefix(rule.name, "Q10") { // it judges the answers that others got
			c.TB = &failures{TB: t}
			for _, check := range []func(*contract){checkMethods, checkNoEvents, checkSecondCode, checkCodes} {
				c.advance(time.Minute)
				inGoroutine(func() { check(c) })
			}
		}
		c.TB = f
		inGoroutine(func() { rule.check(c) })
		return f.count
	}
	servers := brokenServers
	for _, rule := range contractRules() {
		found := 0
		for _, server := range servers {
			if !strings.HasPrefix(rule.name, server.rule+" ") {
				continue
			}
			found++
			t.Run(server.rule+" "+server.name, func(t *testing.T) {
				t.Parallel()
				if problemsOf(t, server.broken, rule) == 0 {
					t.Errorf("not found by %q", rule.name)
				}
			})
		}
		if n := problemsOf(t, broken{}, rule); n > 0 || found == 0 {
			t.Errorf("%q has %d broken servers, and fails %d times without one", rule.name, found, n)
		}
	}
}

// inGoroutine runs f to its end, or to its runtime.Goexit.
func inGoroutine(f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-done
}
