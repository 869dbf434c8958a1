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

// reply is one answer of a script.
type reply struct {
	status int
	body   io.Reader
	header http.Header
	err    error // in place of an answer
	made   func(*http.Request) reply
}

// script is a node that gives its answers one after the other; the last one stays.
type script struct {
	answers []reply
	asked   []*http.Request
	waited  []time.Duration
}

// RoundTrip is http.RoundTripper.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, r)
	answer := s.answers[min(len(s.asked), len(s.answers))-1]
	if answer.made != nil {
		answer = answer.made(r)
	}
	if answer.err != nil {
		return nil, answer.err
	}
	return &http.Response{StatusCode: answer.status, Header: answer.header, Body: io.NopCloser(answer.body)}, nil
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
	return reply{made: func(*http.Request) reply { return reply{status: status, header: h, body: strings.NewReader(body)} }}
}

// fails is a connection that does not come about.
func fails(err error) reply { return reply{err: err} }

// refuses is an error of the contract.
func refuses(status int, code, retryAfter string) reply {
	return says(status, `{"error":{"code":"`+code+`","message":"no","requestId":"7"}}`, "Retry-After", retryAfter)
}

// sames is chance that is always the same.
type sames byte

func (s sames) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = byte(s)
	}
	return len(into), nil
}

const testKey = "tasard_test_0000000000000000000000000002014cuFmc"

// playing is a client of a script.
func playing(t *testing.T, s *script) *Client {
	t.Helper()
	c, err := New(Config{BaseURL: "https://node.test/", Key: testKey, HTTPClient: &http.Client{Transport: s}, Wait: s.wait, Random: sames(0)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const noCurrencies = `{"data":[]}`
