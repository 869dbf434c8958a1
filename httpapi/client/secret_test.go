package client

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestSecret_Header checks that the key is only in the Authorization header, and only of data operations.
func TestSecret_Header(t *testing.T) {
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

// TestSecret_Redirect checks that a redirect is an error and that the key is not sent on.
func TestSecret_Redirect(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		s := &fakeTransport{responders: []responder{respondWith(status, "", "Location", "https://elsewhere.test/v1/currencies?x=1")}}
		_, err := newTestClient(t, s).Currencies(t.Context())
		var refused *Error
		if !errors.As(err, &refused) || refused.Status != status || !strings.Contains(err.Error(), "https://elsewhere.test;") || len(s.requests) != 1 {
			t.Errorf("%d: %d requests, %v", status, len(s.requests), err)
		}
	}
}

func TestSecret_Errors(t *testing.T) {
	echo := `{"error":{"code":"` + testKey + `","message":"you sent ` + testKey + `","details":[{"path":[],"message":"` + testKey + `"}]}}`
	for _, answer := range []responder{
		respondWith(400, echo), respondWith(502, "bad: Bearer "+testKey), respondWith(200, `{"data":"`+testKey+`"}`), respondWith(400, "", "X-Request-Id", testKey),
	} {
		c := newTestClient(t, &fakeTransport{responders: []responder{answer}})
		_, err := c.Currencies(t.Context())
		refused := &Error{}
		_ = errors.As(err, &refused)
		if text := fmt.Sprintf("%v %+v %+v", err, err, *refused); err == nil || strings.Contains(text, testKey) {
			t.Errorf("the error is %s", text)
		}
	}
}

func TestSecret_Prints(t *testing.T) {
	c := newTestClient(t, &fakeTransport{})
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", c.config.Key, "config", c.config, "client", c)
	text := fmt.Sprintf("%v %+v %#v %s | %v %+v %#v | %q", c, c, c, c, c.config, c.config, c.config.Key, c.config.Key) + log.String()
	if strings.Contains(text, testKey) || !strings.Contains(text, redacted) {
		t.Errorf("printed: %s", text)
	}
}

func TestNew_Refuses(t *testing.T) {
	for want, config := range map[string]Config{
		"want https://HOST":        {BaseURL: "rates.example"},
		"can't be read":            {BaseURL: "https://u:geheim@[x"},
		"user or a password":       {BaseURL: "https://u:geheim@rates.example"},
		"https://rates.example":    {BaseURL: "https://rates.example/?key=1"},
		"is it more than the key?": {BaseURL: "https://rates.example", Key: "abc\n"},
	} {
		c, err := New(config)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, %v", config.BaseURL, c, err)
		}
	}
}

func TestBody_TooLong(t *testing.T) {
	s := &fakeTransport{responders: []responder{respondWith(200, noCurrencies+strings.Repeat(" ", 100))}}
	c := newTestClient(t, s)
	c.config.BodyMax = 50
	if _, err := c.Currencies(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 50 bytes") || len(s.requests) != 1 {
		t.Errorf("%d requests: %v", len(s.requests), err)
	}
}
