package apitest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/client"
)

// newNodeClient returns a client that moves the clock of the node instead of waiting.
func newNodeClient(t *testing.T, srv *apitest.Server, key string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: srv.URL, Key: key, HTTPClient: srv.Client, Wait: func(_ context.Context, wait time.Duration) error {
		srv.Clock.Advance(wait)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func mustBeRefused(t *testing.T, err error, status int, code string) client.Error {
	t.Helper()
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != status || refused.Code != code || refused.Message == "" {
		t.Fatalf("got %v, want %d %s and a message", err, status, code)
	}
	return *refused
}

func TestNode_Refusals(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"))
	c, ctx := newNodeClient(t, srv, ""), t.Context()
	for _, id := range []string{"no-such-bank", "../rates", "a b/ñ?", "."} {
		_, err := c.Institution(ctx, id)
		mustBeRefused(t, err, http.StatusNotFound, client.CodeInstitutionNotFound)
	}
	_, err := c.Rates(ctx, client.Filter{Currency: "usd", Limit: 201})
	if refused := mustBeRefused(t, err, http.StatusBadRequest, client.CodeInvalidParameters); len(refused.Details) != 2 || refused.RequestID == "" || !strings.Contains(err.Error(), refused.RequestID) || !strings.Contains(err.Error(), refused.Details[0].Message) {
		t.Errorf("%v has the details %+v", err, refused.Details)
	}
	_, err = c.Usage(ctx, "")
	mustBeRefused(t, err, http.StatusUnauthorized, client.CodeMissingKey)
}

// TestNode_Limits checks that the minute limit is waited for, and that the day limit is not.
func TestNode_Limits(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"), apitest.Quota(8, 3))
	c, ctx := newNodeClient(t, srv, srv.Key()), t.Context()
	began := srv.Clock.Now()
	for range 8 {
		must[[]client.Currency](t)(c.Currencies(ctx))
	}
	if waited := srv.Clock.Now().Sub(began); waited != 2*time.Minute {
		t.Errorf("8 requests at 3 a minute waited %s", waited)
	}
	_, err := c.Currencies(ctx)
	if refused := mustBeRefused(t, err, http.StatusTooManyRequests, client.CodeQuotaExceeded); refused.RetryAfter < time.Hour {
		t.Errorf("%+v", refused)
	}
	usage := must[*client.Usage](t)(c.Usage(ctx, ""))
	if usage.Day.Limit != 8 || usage.Day.Remaining != 0 || usage.Minute.Limit != 3 {
		t.Errorf("usage %+v", usage)
	}
}

// TestConfig_BaseURL: the URL of the node is understood with and without the path of the API.
func TestConfig_BaseURL(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"))
	for _, end := range []string{"", "/", "/v1", "/v1/"} {
		c, err := client.New(client.Config{BaseURL: srv.URL + end, HTTPClient: srv.Client})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Currencies(t.Context()); err != nil || c.BaseURL() != srv.URL {
			t.Errorf("%q: %v at %s", end, err, c.BaseURL())
		}
		if _, err := c.History(t.Context(), client.HistoryQuery{From: "2026-02-31"}); err == nil || !strings.Contains(err.Error(), "from") {
			t.Errorf("a day that does not exist: %v", err)
		}
	}
}
