package client

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

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
