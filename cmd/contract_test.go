package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/client"
)

// contract checks the rules of the contract that a caller can see, by comparing answers of one server with each other:
// a ranking with the list of rates, the pages of a list with the whole list. The golden files and the OpenAPI
// document of package httpapi hold the form of a single answer.
type contract struct {
	testing.TB
	base    string
	http    *http.Client
	client  *client.Client
	key     string
	advance func(time.Duration)       // nil = the clock of the server cannot be moved
	code    func(email string) string // nil = no account is made
	answers *[]answered               // of all rules
	emails  *int
}

// answered is an answer with its raw body.
type answered struct {
	method, target string
	status         int
	header         http.Header
	body           []byte
}

func (a *answered) String() string { return fmt.Sprintf("%s %s: %d", a.method, a.target, a.status) }

// newContract checks a server that answers at base.
func newContract(t *testing.T, base string, transport http.RoundTripper, key string) *contract {
	t.Helper()
	c := &contract{TB: t, base: base, key: key, answers: new([]answered), emails: new(int)}
	c.http = &http.Client{Transport: recorder{transport, c}, Timeout: patience}
	t.Cleanup(c.http.CloseIdleConnections)
	var err error
	c.client, err = client.New(client.Config{BaseURL: base, HTTPClient: c.http, Key: key, Retries: client.NoRetries})
	noError(t, err)
	return c
}

// recorder keeps every answer for the rules about all answers.
type recorder struct {
	next http.RoundTripper
	c    *contract
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Accept-Encoding") == "" {
		request = request.Clone(request.Context())
		request.Header.Set("Accept-Encoding", "identity")
	}
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	*r.c.answers = append(*r.c.answers, answered{request.Method, strings.TrimPrefix(request.URL.String(), r.c.base), response.StatusCode, response.Header, body})
	return response, nil
}

// check runs the rules that the server can be asked about, each as a subtest named after its decision.
func (c *contract) check() {
	for _, r := range contractRules() {
		if r.accounts && c.code == nil || r.clock && c.advance == nil {
			continue
		}
		c.TB.(*testing.T).Run(r.name, func(t *testing.T) {
			one := *c
			one.TB = t
			if c.advance != nil {
				c.advance(time.Minute) // a new minute's quota
			}
			r.check(&one)
		})
	}
}

// send sends a request; header alternates names and values.
func (c *contract) send(method, target, body string, header ...string) *answered {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), method, c.base+target, strings.NewReader(body))
	noError(c, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" && !isAccountPath(target) {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		c.Fatalf("%s %s: %v", method, target, err)
	}
	_ = response.Body.Close()
	return &(*c.answers)[len(*c.answers)-1]
}

func isAccountPath(target string) bool { return strings.HasPrefix(target, "/v1/account/") }

// getOK is a GET that must succeed.
func (c *contract) getOK(target string, header ...string) *answered {
	c.Helper()
	a := c.send(http.MethodGet, target, "", header...)
	if a.status != http.StatusOK {
		c.Fatalf("%s, want 200: %.300s", a, a.body)
	}
	return a
}

// refused checks the error of a call of an account.
func (c *contract) refused(err error, status int, code string) {
	c.Helper()
	var refusal *client.Error
	if !errors.As(err, &refusal) || refusal.Status != status || refusal.Code != code {
		c.Errorf("got %v, want %d %s", err, status, code)
	}
}

// list is a page of a list, as far as the rules read it.
type list struct {
	Data []json.RawMessage
	Meta struct {
		Total       int
		NextCursor  *int
		GeneratedAt string
	}
}

func (c *contract) list(target string, more ...any) list {
	c.Helper()
	for i := 0; i+1 < len(more); i += 2 {
		separator := "?"
		if strings.Contains(target, "?") {
			separator = "&"
		}
		target += fmt.Sprintf("%s%v=%v", separator, more[i], more[i+1])
	}
	return asJSON[list](c.TB, string(c.getOK(target).body))
}

// walk returns the items of all pages.
func (c *contract) walk(target string, limit int) (items []string) {
	c.Helper()
	for cursor := 0; ; {
		page := c.list(target, "limit", limit, "cursor", cursor)
		for _, item := range page.Data {
			items = append(items, string(item))
		}
		if page.Meta.NextCursor == nil {
			return items
		}
		if *page.Meta.NextCursor != len(items) || len(page.Data) == 0 {
			c.Fatalf("%s: after %d items nextCursor is %d", target, len(items), *page.Meta.NextCursor)
		}
		cursor = len(items)
	}
}

// all collects what an iterator of the client yields.
func all[T any](c *contract, items iter.Seq2[T, error]) (found []T) {
	c.Helper()
	for item, err := range items {
		noError(c, err)
		found = append(found, item)
	}
	return found
}

func (c *contract) rates() []client.Rate {
	c.Helper()
	return all(c, c.client.AllRates(c.Context(), client.Filter{}))
}

// currencies are the codes of the currencies that have rates.
func (c *contract) currencies() (codes []string) {
	c.Helper()
	for _, r := range c.rates() { // sorted by currency
		if len(codes) == 0 || codes[len(codes)-1] != r.Currency {
			codes = append(codes, r.Currency)
		}
	}
	if len(codes) == 0 {
		c.Fatal("the server has no rates")
	}
	return codes
}

// ranking is best of a currency for an operation.
type ranking struct {
	currency  string
	operation client.Operation
	rates     []client.Rate
}

func (c *contract) rankings() (found []ranking) {
	c.Helper()
	for _, currency := range c.currencies() {
		for _, operation := range []client.Operation{client.Buy, client.Sell} {
			rates := client.All(client.Filter{Currency: currency}, func(f client.Filter) (*client.Page[client.Rate], error) {
				best, err := c.client.Best(c.Context(), client.BestQuery{Filter: f, Operation: operation})
				if err != nil {
					return nil, err
				}
				return &best.Page, nil
			})
			found = append(found, ranking{currency, operation, all(c, rates)})
		}
	}
	return found
}

func (c *contract) conversions(r ranking, amount client.Decimal, kind client.Kind) []client.Conversion {
	c.Helper()
	return all(c, client.All(client.Filter{Currency: r.currency, Kind: kind}, func(f client.Filter) (*client.Page[client.Conversion], error) {
		return c.client.Convert(c.Context(), client.ConvertQuery{Filter: f, Operation: r.operation, Amount: amount})
	}))
}

// remaining is X-RateLimit-Remaining, -1 for a server without limits.
func (a *answered) remaining() int {
	n, err := strconv.Atoi(a.header.Get("X-RateLimit-Remaining"))
	if err != nil {
		return -1
	}
	return n
}

// newEmail returns an address that no rule has used.
func (c *contract) newEmail() string {
	*c.emails++
	return fmt.Sprintf("contract-%d@contract.example", *c.emails)
}

// TestContract_Node: a node in memory, with limits, keys and a clock.
func TestContract_Node(t *testing.T) {
	t.Parallel()
	srv := apitest.Start(t, apitest.Seed("standard"), apitest.Quota(100_000, 1_000))
	c := newContract(t, srv.URL, srv.Client.Transport, srv.Key())
	c.advance, c.code = srv.Clock.Advance, srv.Code
	c.check()
}

// TestContract_Mock: over a port, asked from outside.
func TestContract_Mock(t *testing.T) {
	t.Parallel()
	p, controls := startMock(t)
	c := newContract(t, p.URL, &http.Transport{}, "")
	c.code = func(email string) string {
		response, err := http.Get(controls + "codes?email=" + email) //nolint:forbidigo // loopback; the test has a deadline
		noError(t, err)
		defer response.Body.Close()
		var sent struct{ Code string }
		noError(t, json.NewDecoder(response.Body).Decode(&sent))
		return sent.Code
	}
	c.check()
}
