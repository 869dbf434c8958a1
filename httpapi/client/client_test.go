package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

var errBroken = errors.New("connection reset by peer")

func TestRetry(t *testing.T) {
	good := respondWith(http.StatusOK, noCurrencies)
	fine := respondWith(http.StatusOK, `{"data":{"token":"t","expiresAt":"2026-01-01T00:00:00Z"}}`)
	read := func(c *Client) error { _, err := c.Currencies(t.Context()); return err }
	signIn := func(c *Client) error { _, err := c.SignIn(t.Context(), "a@b.do", "12345678"); return err }
	code := func(c *Client) error { _, err := c.RequestCode(t.Context(), "a@b.do"); return err }
	revoke := func(c *Client) error { return c.RevokeKey(t.Context(), "s", "k1") }
	type answers = []responder
	for name, c := range map[string]struct {
		ask     func(*Client) error
		answers answers
		waited  []time.Duration
		want    string // "" = success
	}{
		"a minute's limit":           {read, answers{refuseWith(429, CodeRateLimited, "7"), good}, []time.Duration{7 * time.Second}, ""},
		"too many at once":           {read, answers{refuseWith(503, CodeOverloaded, "2"), refuseWith(503, CodeOverloaded, "3"), good}, []time.Duration{2 * time.Second, 3 * time.Second}, ""},
		"the day is over":            {read, answers{refuseWith(429, CodeQuotaExceeded, "3600")}, nil, CodeQuotaExceeded},
		"429 without a time":         {read, answers{refuseWith(429, CodeRateLimited, "")}, nil, CodeRateLimited},
		"an absurd time":             {read, answers{refuseWith(429, CodeRateLimited, "99999999999999")}, nil, CodeRateLimited},
		"an error":                   {read, answers{refuseWith(500, "internal_error", ""), good}, []time.Duration{backoffFirst / 2}, ""},
		"no connection":              {read, answers{failWith(errBroken), failWith(errBroken), good}, []time.Duration{backoffFirst / 2, backoffFirst}, ""},
		"a body that breaks off":     {read, answers{truncatedBody(), good}, []time.Duration{backoffFirst / 2}, ""},
		"a proxy without its node":   {read, answers{respondWith(502, "<html>Bad Gateway"), good}, []time.Duration{backoffFirst / 2}, ""},
		"it stays broken":            {read, answers{failWith(errBroken)}, []time.Duration{backoffFirst / 2, backoffFirst, 2 * backoffFirst}, "connection reset"},
		"a wrong parameter":          {read, answers{refuseWith(400, CodeInvalidParameters, "")}, nil, CodeInvalidParameters},
		"no JSON":                    {read, answers{respondWith(200, "<html>")}, nil, "not JSON"},
		"a POST that is refused":     {signIn, answers{refuseWith(503, CodeOverloaded, "1"), fine}, []time.Duration{time.Second}, ""},
		"a POST that may have been":  {signIn, answers{failWith(errBroken), fine}, nil, "may have been executed"},
		"a POST and an error":        {signIn, answers{refuseWith(500, "internal_error", ""), fine}, nil, "internal_error"},
		"a POST that a proxy stops":  {signIn, answers{respondWith(503, "busy", "Retry-After", "1"), fine}, nil, "busy"},
		"a code that is on its way":  {code, answers{refuseWith(429, CodeRequestedTooSoon, "1")}, nil, CodeRequestedTooSoon},
		"a key is revoked once more": {revoke, answers{failWith(errBroken), respondWith(204, "")}, []time.Duration{backoffFirst / 2}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeTransport{responders: c.answers}
			err := c.ask(newTestClient(t, s))
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			// A wait is random, at most twice the shortest.
			if !slices.EqualFunc(s.waits, c.waited, func(got, least time.Duration) bool { return got >= least && got <= 2*least }) || len(s.requests) != len(c.waited)+1 {
				t.Errorf("%d requests with the pauses %s, want %s", len(s.requests), s.waits, c.waited)
			}
		})
	}
}

func truncatedBody() responder {
	return func(*http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader(`{"da`), iotest.ErrReader(io.ErrUnexpectedEOF))
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body)}, nil
	}
}

// TestRetry_Chance checks that waits are random, and never shorter than Retry-After.
func TestRetry_Chance(t *testing.T) {
	s := &fakeTransport{responders: []responder{refuseWith(503, CodeOverloaded, "4"), failWith(errBroken), refuseWith(429, CodeRateLimited, "4"), respondWith(200, noCurrencies)}}
	c := newTestClient(t, s)
	if _, err := c.Currencies(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, within := range [][2]time.Duration{{4 * time.Second, 5 * time.Second}, {backoffFirst, 2 * backoffFirst}, {4 * time.Second, 4 * time.Second}} {
		if s.waits[i] < within[0] || s.waits[i] > within[1] {
			t.Errorf("pause %d is %s, want %s to %s", i, s.waits[i], within[0], within[1])
		}
	}
}

// TestRetry_Deadline checks that a wait beyond the deadline is not begun.
func TestRetry_Deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s := &fakeTransport{responders: []responder{refuseWith(429, CodeRateLimited, "9"), refuseWith(429, CodeRateLimited, "9")}}
		c := newTestClient(t, s)
		c.config.Wait = sleep
		began := time.Now() //nolint:forbidigo // the bubble's clock
		_, err := c.Currencies(ctx)
		var refused *Error
		if !errors.As(err, &refused) || refused.RetryAfter != 9*time.Second || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Now().Sub(began); took != 9*time.Second || len(s.requests) != 2 { //nolint:forbidigo,staticcheck // the bubble's clock
			t.Errorf("it took %s and %d requests: the second wait ends behind the deadline", took, len(s.requests))
		}
	})
}

// TestRetry_Cancel checks that a canceled call returns at once, with both errors.
func TestRetry_Cancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &fakeTransport{responders: []responder{refuseWith(429, CodeRateLimited, "30")}}
		c := newTestClient(t, s)
		c.config.Wait = sleep
		go func() {
			synctest.Wait() // until the call waits
			cancel()
		}()
		_, err := c.Currencies(ctx)
		var refused *Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &refused) || len(s.requests) != 1 {
			t.Errorf("%d requests: %v", len(s.requests), err)
		}
	})
}

type responder func(*http.Request) (*http.Response, error)

// fakeTransport gives prepared answers one after the other, and then repeats the last one.
type fakeTransport struct {
	responders []responder
	requests   []*http.Request
	waits      []time.Duration
}

func (s *fakeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests = append(s.requests, r)
	return s.responders[min(len(s.requests), len(s.responders))-1](r)
}

func (s *fakeTransport) wait(ctx context.Context, wait time.Duration) error {
	s.waits = append(s.waits, wait)
	return ctx.Err()
}

// respondWith makes an answer with headers: names and values in turn.
func respondWith(status int, body string, header ...string) responder {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: h, Request: r, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func failWith(err error) responder {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func refuseWith(status int, code, retryAfter string) responder {
	return respondWith(status, `{"error":{"code":"`+code+`","message":"no","requestId":"7"}}`, "Retry-After", retryAfter)
}

const testKey = "tasard_test_0000000000000000000000000002014cuFmc"

func newTestClient(t *testing.T, s *fakeTransport) *Client {
	t.Helper()
	c, err := New(Config{BaseURL: "https://node.test/", Key: testKey, HTTPClient: &http.Client{Transport: s}, Wait: s.wait})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const noCurrencies = `{"data":[]}`

// TestHeaders checks that the key is only in the Authorization header, and only of data operations.
func TestHeaders(t *testing.T) {
	s := &fakeTransport{responders: []responder{respondWith(200, noCurrencies), respondWith(202, `{"data":{"expiresInSeconds":600,"resendAfterSeconds":60}}`)}}
	c := newTestClient(t, s)
	_, first := c.Currencies(t.Context())
	_, second := c.RequestCode(t.Context(), "a@b.do")
	if first != nil || second != nil {
		t.Fatal(first, second)
	}
	for i, want := range []string{"Bearer " + testKey, ""} {
		r := s.requests[i]
		if got := r.Header.Get("Authorization"); got != want || strings.Contains(r.URL.String(), testKey) || r.Header.Get("User-Agent") != UserAgentDefault {
			t.Errorf("%s as %q: Authorization is %q, want %q", r.URL, r.Header.Get("User-Agent"), got, want)
		}
	}
}

// TestRedirect checks that a redirect is an error and that the key is not sent on.
func TestRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		s := &fakeTransport{responders: []responder{respondWith(status, "", "Location", "https://elsewhere.test/v1/currencies?x=1")}}
		_, err := newTestClient(t, s).Currencies(t.Context())
		var refused *Error
		if !errors.As(err, &refused) || refused.Status != status || !strings.Contains(err.Error(), "https://elsewhere.test;") || len(s.requests) != 1 {
			t.Errorf("%d: %d requests, %v", status, len(s.requests), err)
		}
	}
}

func TestNew_Refuses(t *testing.T) {
	for base, key := range map[string]string{"rates.example": "", "https://u:geheim@[x": "", "https://u:geheim@rates.example": "", "https://rates.example/?key=1": "", "https://rates.example": "abc\n"} {
		c, err := New(Config{BaseURL: base, Key: key})
		if err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, %v", base, c, err)
		}
	}
}

type golden struct {
	name, target string // method and target of the request
	response     *http.Response
	body         []byte
}

func goldens(t testing.TB, patterns ...string) []golden {
	t.Helper()
	var found []golden
	for _, pattern := range patterns {
		files, err := filepath.Glob("../testdata/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no golden answers %s: %v", pattern, err)
		}
		for _, file := range files {
			found = append(found, readGolden(t, file))
		}
	}
	return found
}

func readGolden(t testing.TB, file string) golden {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	request, _, _ := strings.Cut(string(text), "\n")
	_, answer, found := bytes.Cut(text, []byte("\nHTTP/1.1 "))
	head, body, split := bytes.Cut(answer, []byte("\n\n"))
	if !found || !split {
		t.Fatalf("%s: no answer in it", file)
	}
	status, lines, _ := strings.Cut(string(head), "\n")
	g := golden{name: filepath.Base(file), target: strings.TrimPrefix(request, "# "), response: &http.Response{Header: http.Header{}}, body: bytes.TrimSpace(body)}
	if g.response.StatusCode, err = strconv.Atoi(strings.Fields(status)[0]); err != nil {
		t.Fatalf("%s: %q: %v", file, status, err)
	}
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		g.response.Header.Add(name, value)
	}
	return g
}

// responseType returns a value of the type of an operation, nil if it is unknown.
func responseType(target string) any {
	method, path, _ := strings.Cut(target, " ")
	path, _, _ = strings.Cut(path, "?")
	if id, found := strings.CutPrefix(path, "/v1/institutions/"); found && id != "" {
		return new(body[*InstitutionDetail])
	}
	if method == http.MethodPost && path == "/v1/account/keys" {
		return new(body[*NewKey])
	}
	return map[string]any{
		"/v1/currencies": new(body[[]Currency]), "/v1/institutions": new(Page[Institution]), "/v1/rates": new(Page[Rate]), "/v1/rates/best": new(Ranking),
		"/v1/rates/history": new(Page[HistoryEntry]), "/v1/convert": new(Page[Conversion]), "/v1/account/codes": new(body[*CodeSent]),
		"/v1/account/sessions": new(body[*Session]), "/v1/account/keys": new(body[[]Key]), "/v1/account/usage": new(body[*Usage]),
	}[path]
}

// strictly decodes without unknown fields and encodes again: no field is lost, and none is added.
func strictly(t *testing.T, g *golden, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(g.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", g.name, err)
	}
	again, err := json.Marshal(into)
	var values [2]any
	for i, text := range [][]byte{g.body, again} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		err = errors.Join(err, decoder.Decode(&values[i]))
	}
	if err != nil || !reflect.DeepEqual(values[0], values[1]) {
		t.Errorf("%s: %v; the node says\n%s\nthe types keep\n%s", g.name, err, g.body, again)
	}
}

// TestDecode_Golden checks that the types have exactly the fields of the contract, and that errors are read whole.
func TestDecode_Golden(t *testing.T) {
	seen, refusals := map[reflect.Type]bool{}, 0
	for _, g := range goldens(t, "golden/*.http", "limits/*.http", "accounts/*.http") {
		switch into := responseType(g.target); {
		case len(g.body) == 0: // HEAD, 204
		case g.response.StatusCode >= 400:
			refusals++
			var sent errorBody
			strictly(t, &g, &sent)
			e := readError(g.response, g.body)
			if e.Status != g.response.StatusCode || e.Code == CodeNone || e.Message == "" || e.RequestID != sent.Error.RequestID || len(e.Details) != len(sent.Error.Details) {
				t.Errorf("%s: read as %+v", g.name, e)
			}
			if limited := e.Status == 429 || e.Status == 503; limited != (e.RetryAfter > 0) {
				t.Errorf("%s: RetryAfter is %s", g.name, e.RetryAfter)
			}
		case into == nil:
			t.Errorf("%s: nothing is known of %s", g.name, g.target)
		default:
			seen[reflect.TypeOf(into)] = true
			strictly(t, &g, into)
		}
	}
	if len(seen) != 12 || refusals < 100 {
		t.Errorf("%d types of 12, %d refusals", len(seen), refusals)
	}
}

func TestDecimal(t *testing.T) {
	if Decimal("59.3").Cmp("59.30") != 0 || Decimal("9.9").Cmp("10.0") >= 0 || Decimal("99999999999998990000.00").Rat().Num().String() != "99999999999998990000" {
		t.Error("decimals are compared by something else than their value")
	}
}

func servePages(items int, next func(cursor int) int) responder {
	return func(r *http.Request) (*http.Response, error) {
		var cursor, limit int
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &cursor) // 0 if it is missing
		if _, err := fmt.Sscan(r.URL.Query().Get("limit"), &limit); err != nil {
			return nil, err
		}
		var data []string
		for i := cursor; i < min(items, cursor+limit); i++ {
			data = append(data, fmt.Sprintf(`{"date":"2026-01-01","institutionId":"i%d","currency":"USD","buy":"1"}`, i))
		}
		following := "null"
		if cursor+limit < items && next(cursor+limit) >= 0 {
			following = fmt.Sprint(next(cursor + limit))
		}
		body := fmt.Sprintf(`{"data":[%s],"meta":{"total":%d,"nextCursor":%s,"generatedAt":"2026-01-01T00:00:00Z","quoteCurrency":"DOP"}}`, strings.Join(data, ","), items, following)
		return respondWith(200, body)(r)
	}
}

func sameCursor(cursor int) int { return cursor }

// TestIterate checks that every item comes once and in order, in as few requests as possible.
func TestIterate(t *testing.T) {
	for _, c := range []struct{ items, cursor, limit, take, want, requests int }{
		{0, 0, 0, 9999, 0, 1}, {450, 0, 0, 9999, 450, 3}, {400, 0, 0, 9999, 400, 2}, {450, 449, 0, 9999, 1, 1}, {10, 0, 3, 9999, 10, 4}, {10, 0, 3, 4, 4, 2}, {10, 0, 3, 3, 3, 1},
	} {
		s := &fakeTransport{responders: []responder{servePages(c.items, sameCursor)}}
		all := newTestClient(t, s).AllRates(t.Context(), Filter{Cursor: c.cursor, Limit: c.limit})
		for range 2 { // it can be repeated
			s.requests = nil
			seen := 0
			for entry, err := range all {
				if want := fmt.Sprintf("i%d", c.cursor+seen); err != nil || entry.InstitutionID != want {
					t.Fatalf("%+v: %v, %v, want %s", c, entry, err, want)
				}
				if seen++; seen == c.take {
					break
				}
			}
			if seen != c.want || len(s.requests) != c.requests {
				t.Errorf("%+v: %d items in %d requests", c, seen, len(s.requests))
			}
		}
	}
}

// TestIterate_Ends checks that a list that is too long and failures end an iteration with an error.
func TestIterate_Ends(t *testing.T) {
	for name, answers := range map[string][]responder{
		"no cursor after item 4": {servePages(10, func(int) int { return -1 })},
		"401":                    {servePages(10, sameCursor), refuseWith(401, CodeRevokedKey, "")},
	} {
		s := &fakeTransport{responders: answers}
		items, last := 0, error(nil)
		for _, err := range newTestClient(t, s).AllRates(t.Context(), Filter{Limit: 4}) {
			if last != nil {
				t.Errorf("%s: the walk goes on behind its error", name)
			}
			if last = err; err == nil {
				items++
			}
		}
		if items != 4 || last == nil || !strings.Contains(last.Error(), name) {
			t.Errorf("%s: %d items, %v", name, items, last)
		}
	}
}
