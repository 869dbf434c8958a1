package client

import (
	"errors"
	"strings"
	"testing"
)

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
