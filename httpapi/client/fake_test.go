package client

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reply makes one answer of a script.
type reply func(*http.Request) (*http.Response, error)

// script is a node that gives its answers one after the other; the last one stays.
type script struct {
	answers []reply
	asked   []*http.Request
	waited  []time.Duration
}

// RoundTrip is http.RoundTripper.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, r)
	return s.answers[min(len(s.asked), len(s.answers))-1](r)
}

// wait is Config.Wait.
func (s *script) wait(ctx context.Context, wait time.Duration) error {
	s.waited = append(s.waited, wait)
	return ctx.Err()
}

// says is an answer with headers: names and values in turn.
func says(status int, body string, header ...string) reply {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// fails is a connection that does not come about.
func fails(err error) reply { return func(*http.Request) (*http.Response, error) { return nil, err } }

// refuses is an error of the contract.
func refuses(status int, code, retryAfter string) reply {
	return says(status, `{"error":{"code":"`+code+`","message":"no","requestId":"7"}}`, "Retry-After", retryAfter)
}

// chance is always the same byte.
func chance(b byte) io.Reader { return strings.NewReader(strings.Repeat(string(rune(b)), 1<<10)) }

const testKey = "tasard_test_0000000000000000000000000002014cuFmc"

// playing is a client of a script.
func playing(t *testing.T, s *script) *Client {
	t.Helper()
	c, err := New(Config{BaseURL: "https://node.test/", Key: testKey, HTTPClient: &http.Client{Transport: s}, Wait: s.wait, Random: chance(0)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const noCurrencies = `{"data":[]}`
