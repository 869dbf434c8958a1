package client_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/client"
)

// newNodeClient returns a client that moves the clock of the node instead of waiting.
func newNodeClient(t *testing.T, srv *apitest.Server, key string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: srv.URL, Key: client.Secret(key), HTTPClient: srv.Client, Wait: func(_ context.Context, wait time.Duration) error {
		srv.Clock.Advance(wait)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// must returns the value of a call that must succeed.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// mustBeRefused returns the client.Error of an error.
func mustBeRefused(t *testing.T, err error, status int, code string) client.Error {
	t.Helper()
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != status || refused.Code != code || refused.Message == "" {
		t.Fatalf("got %v, want %d %s and a message", err, status, code)
	}
	return *refused
}

// TestNode checks the data operations of a real node.
func TestNode(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"))
	c, ctx := newNodeClient(t, srv, ""), t.Context()
	if got := must[[]client.Currency](t)(c.Currencies(ctx)); len(got) != 8 || got[7].Code != "XDR" {
		t.Errorf("currencies: %+v", got)
	}
	euro := must[*client.Page[client.Institution]](t)(c.Institutions(ctx, client.InstitutionsQuery{Currency: "EUR", Limit: 1}))
	if len(euro.Data) != 1 || !slices.Contains(euro.Data[0].Currencies, "EUR") || euro.Meta.Total <= 1 || euro.Meta.NextCursor == nil {
		t.Errorf("institutions: %+v", euro)
	}
	if got := must[*client.InstitutionDetail](t)(c.Institution(ctx, "ambar")); got.Name != "Banco Ámbar" || len(got.Rates) == 0 {
		t.Errorf("institution: %+v", got)
	}
	usd := client.Filter{Currency: "USD", Kind: client.Commercial}
	for operation, want := range map[client.Operation]client.Decimal{client.Buy: "58.90", client.Sell: "58.75"} { // the caller's side
		best := must[*client.Ranking](t)(c.Best(ctx, client.BestQuery{Filter: usd, Operation: operation}))
		if best.Operation != operation || len(best.Data) < 3 || *best.Data[0].Side(operation) != want {
			t.Errorf("best %s: %+v, want %s first", operation, best, want)
		}
	}
	made := must[*client.Page[client.Conversion]](t)(c.Convert(ctx, client.ConvertQuery{Filter: usd, Operation: client.Buy, Amount: "2.05"}))
	if first := made.Data[0]; first.ForeignAmount != "2.05" || first.AmountDOP != "120.75" || first.Rate != "58.90" || first.FeeNotice == "" {
		t.Errorf("convert: %+v", first)
	}
	from := client.DateOf(srv.Clock.Now()).AddDays(-2)
	days := must[*client.Page[client.HistoryEntry]](t)(c.History(ctx, client.HistoryQuery{Filter: client.Filter{Institution: "ambar"}, From: from, To: from.AddDays(1)}))
	if i := slices.IndexFunc(days.Data, func(day client.HistoryEntry) bool {
		return day.InstitutionID != "ambar" || day.Date.Compare(from) < 0 || day.Date.Compare(from.AddDays(1)) > 0
	}); i >= 0 {
		t.Errorf("history: %+v", days.Data[i])
	}
	if head, known := c.LastResponse(); !known || len(days.Data) == 0 || head.Status != 200 || head.RequestID == "" || head.ETag == "" || head.MaxAge <= 0 || head.Limits != nil {
		t.Errorf("%d days, %+v", len(days.Data), head)
	}
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
	two := client.InstitutionsQuery{Limit: 2}
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

// TestNode_Refusals checks the fields of errors.
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
	head, _ := c.LastResponse()
	usage := must[*client.Usage](t)(c.Usage(ctx, ""))
	if l := head.Limits; l == nil || l.Limit != 8 || l.Remaining != 0 || !l.Reset.Equal(usage.Day.ResetAt) || usage.Minute.Limit != 3 {
		t.Errorf("limits %+v, usage %+v", head.Limits, usage)
	}
}

// TestNode_Account checks the account operations from an e-mail address to a revoked key.
func TestNode_Account(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"), apitest.Limits(), apitest.KeysRequired())
	c, ctx := newNodeClient(t, srv, ""), t.Context()
	_, err := c.Currencies(ctx)
	mustBeRefused(t, err, http.StatusUnauthorized, client.CodeMissingKey)
	const ana = "ana@example.do"
	if sent := must[*client.CodeSent](t)(c.RequestCode(ctx, ana)); sent.ExpiresInSeconds != 600 || sent.ResendAfterSeconds != 60 {
		t.Errorf("%+v", sent)
	}
	session := must[*client.Session](t)(c.SignIn(ctx, ana, srv.Code(ana)))
	key := must[*client.NewKey](t)(c.CreateKey(ctx, session.Token, "servidor"))
	must[*client.NewKey](t)(c.CreateKey(ctx, session.Token, ""))
	_, err = c.CreateKey(ctx, session.Token, "third")
	mustBeRefused(t, err, http.StatusConflict, client.CodeKeyLimitReached)

	user := newNodeClient(t, srv, string(key.Secret))
	must[[]client.Currency](t)(user.Currencies(ctx))
	if usage := must[*client.Usage](t)(c.Usage(ctx, session.Token)); usage.Day.Remaining != 999 {
		t.Errorf("%+v", usage)
	}
	if err := errors.Join(c.RevokeKey(ctx, session.Token, key.ID), c.RevokeKey(ctx, session.Token, key.ID)); err != nil {
		t.Fatal(err)
	}
	_, err = user.Currencies(ctx)
	mustBeRefused(t, err, http.StatusUnauthorized, client.CodeRevokedKey)
	list := must[[]client.Key](t)(c.Keys(ctx, session.Token))
	if i := slices.IndexFunc(list, func(k client.Key) bool { return k.ID == key.ID }); len(list) != 2 || list[i].Status != "revoked" || list[i].RevokedAt == nil || list[i].LastUsedAt == nil {
		t.Errorf("%+v", list)
	}
	if err := c.SignOut(ctx, session.Token); err != nil {
		t.Fatal(err)
	}
	_, err = c.Keys(ctx, session.Token)
	mustBeRefused(t, err, http.StatusUnauthorized, client.CodeInvalidSession)
}
