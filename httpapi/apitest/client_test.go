package apitest_test

import (
	"context"
	"errors"
	"iter"
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

// TestNode_Walks checks that every iterator yields the items of one large page, in pages of two.
func TestNode_Walks(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"))
	c, ctx := newNodeClient(t, srv, ""), t.Context()
	small := client.Filter{Currency: "USD", Limit: 2}
	best, convert := client.BestQuery{Filter: small, Operation: client.Sell}, client.ConvertQuery{Filter: small, Operation: client.Sell, Amount: "1"}
	iterate(t, c.AllRates(ctx, small), must[*client.Page[client.Rate]](t)(c.Rates(ctx, small)).Meta)
	iterate(t, c.AllBest(ctx, best), must[*client.Ranking](t)(c.Best(ctx, best)).Meta)
	iterate(t, c.AllConversions(ctx, convert), must[*client.Page[client.Conversion]](t)(c.Convert(ctx, convert)).Meta)
	iterate(t, c.AllHistory(ctx, client.HistoryQuery{Filter: small}), must[*client.Page[client.HistoryEntry]](t)(c.History(ctx, client.HistoryQuery{Filter: small})).Meta)
	two := client.Filter{Limit: 2}
	iterate(t, c.AllInstitutions(ctx, two), must[*client.Page[client.Institution]](t)(c.Institutions(ctx, two)).Meta)
}

// iterate compares the number of items with the total of one page.
func iterate[T any](t *testing.T, all iter.Seq2[T, error], page client.Meta) {
	t.Helper()
	items := 0
	for _, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		items++
	}
	if items != page.Total || items < 3 {
		t.Errorf("a walk has %d items, the total is %d", items, page.Total)
	}
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
	var head client.ResponseInfo
	_, err := c.Currencies(client.WithResponse(ctx, &head))
	if refused := mustBeRefused(t, err, http.StatusTooManyRequests, client.CodeQuotaExceeded); refused.RetryAfter < time.Hour {
		t.Errorf("%+v", refused)
	}
	usage := must[*client.Usage](t)(c.Usage(ctx, ""))
	if l := head.Limits; l == nil || l.Limit != 8 || l.Remaining != 0 || !l.Reset.Equal(usage.Day.ResetAt) || usage.Minute.Limit != 3 {
		t.Errorf("limits %+v, usage %+v", head.Limits, usage)
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
