package pages_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/pages"
)

// fakeService is an engine.Service with real currency states and a clock.
type fakeService struct {
	catalogue *engine.Catalogue
	states    map[string]*engine.SavedCurrency
	now       time.Time
	err       error        // of every query that needs rates
	queries   atomic.Int64 // number of queries
}

const testCatalogue = `{
 "institutions": [
  {"id": "bcrd", "name": "Banco Central", "type": "official", "website": "https://bcrd.example", "description": "Publica la tasa de referencia.", "contact": "", "active": true},
  {"id": "colon", "name": "Banco Colón", "type": "bank", "website": "https://colon.example", "description": "", "contact": "809-555-0100", "active": true},
  {"id": "duarte", "name": "Asociación Duarte <& Hijos>", "type": "association", "website": "", "description": "", "contact": "", "active": true},
  {"id": "espaillat", "name": "Agente Espaillat", "type": "exchange", "website": "", "description": "", "contact": "", "active": true},
  {"id": "gone", "name": "Banco Cerrado", "type": "bank", "website": "", "description": "", "contact": "", "active": false}],
 "currencies": [
  {"code": "USD", "name": "Dólar estadounidense", "symbol": "US$"}, {"code": "EUR", "name": "Euro", "symbol": "€"}, {"code": "HTG", "name": "Gourde haitiano"}],
 "sources": [
  {"id": "colon-web", "name": "Sitio web de Banco Colón", "url": "https://colon.example/tasas?a=1&b=2"},
  {"id": "list", "name": "Lista de agentes", "url": "", "upstreamSource": "InfoEjemplo"}]}`

// newFakeService has every kind of rate: ties, one side, channels, expired, manual, reference, and ten days of
// history.
func newFakeService(t testing.TB) *fakeService {
	t.Helper()
	catalogue, err := new(engine.Catalogue).Extend(strings.NewReader(testCatalogue), "catalogue.json")
	if err != nil {
		t.Fatal(err)
	}
	w := &fakeService{catalogue: catalogue, states: map[string]*engine.SavedCurrency{}, now: pages.Noon()}
	offer := func(currency, institution string, channel engine.Channel, kind engine.Kind, buy, sell, source string, checked time.Duration) *engine.SourceQuote {
		book := w.book(currency)
		book.SourceQuotes = append(book.SourceQuotes, engine.SourceQuote{
			Key: engine.QuoteKey{Institution: institution, Channel: channel, Kind: kind}, SourceID: source,
			Buy: pages.MustDecimal(t, buy), Sell: pages.MustDecimal(t, sell), CollectedAt: pages.Noon().Add(-50 * time.Hour), LastCheckedAt: pages.Noon().Add(-checked),
			ExpiresAt: pages.Noon().Add(26*time.Hour - checked), Priority: engine.PriorityDefault,
		})
		return &book.SourceQuotes[len(book.SourceQuotes)-1]
	}
	offer("USD", "bcrd", engine.Unspecified, engine.Reference, "58.9580", "59.3080", "bcrd-web", 4*time.Hour).EffectiveDate = engine.DateOf(pages.Noon()).AddDays(-1)
	offer("USD", "colon", engine.Branch, engine.Commercial, "58.10", "59.60", "colon-web", 2*time.Hour)
	offer("USD", "colon", engine.Digital, engine.Commercial, "58.30", "59.3", "colon-web", 2*time.Hour)
	offer("USD", "duarte", engine.Unspecified, engine.Commercial, "58.40", "59.30", "colon-web", 30*time.Hour) // expired
	one := offer("USD", "espaillat", engine.Cash, engine.Commercial, "58.50", "", "list", 61*time.Minute)
	one.UpstreamSource, one.CollectedAt = "InfoEjemplo", pages.Noon().AddDate(0, 0, -9)
	offer("EUR", "colon", engine.Unspecified, engine.Commercial, "66.10", "70.123456", "colon-web", 30*time.Second)
	typed := offer("EUR", "duarte", engine.Unspecified, engine.Commercial, "67", "70.123456", "manual", 5*time.Minute)
	typed.Manual = true
	for back := 9; back >= 0; back-- {
		w.addDay(engine.DateOf(pages.Noon()).AddDays(-back))
	}
	return w
}

func (w *fakeService) book(currency string) *engine.SavedCurrency {
	if w.states[currency] == nil {
		w.states[currency] = &engine.SavedCurrency{Currency: currency}
	}
	return w.states[currency]
}

func (w *fakeService) addDay(day engine.Date) {
	for currency, book := range w.states {
		for i := range book.SourceQuotes {
			o := &book.SourceQuotes[i]
			book.History = append(book.History, engine.HistoryEntry{
				Date: day, InstitutionID: o.Key.Institution, Currency: currency, Channel: o.Key.Channel, Kind: o.Key.Kind,
				Buy: o.Buy, Sell: o.Sell, SourceID: o.SourceID, DatePrecision: engine.PrecisionUnknown, ObservedAt: day.Start().Add(12 * time.Hour),
			})
		}
	}
}

func (w *fakeService) market() *engine.MarketView {
	w.queries.Add(1)
	var boards []*engine.CurrencySnapshot
	for _, state := range w.states {
		boards = append(boards, engine.RestoreCurrencyState(*state, w.catalogue, engine.DefaultRules()).Snapshot())
	}
	return engine.NewMarketView(w.catalogue, boards, w.now)
}

func (w *fakeService) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	return w.market().Currencies(), nil
}

func (w *fakeService) Institutions(q engine.InstitutionsQuery) (*engine.Page[engine.InstitutionItem], error) {
	return w.market().Institutions(q), nil
}

func (w *fakeService) Institution(id string) (*engine.InstitutionDetail, error) {
	return w.market().Institution(id)
}

func (w *fakeService) Rates(q engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	return w.market().Rates(q), w.err
}

func (w *fakeService) Ranking(q engine.RankingQuery) (*engine.Page[*engine.Rate], error) {
	return w.market().Ranking(q), w.err
}

func (w *fakeService) History(q engine.HistoryQuery) (*engine.Page[engine.HistoryEntry], error) {
	if q.Limit > engine.LimitMax {
		panic("a page of history is asked for that is longer than any answer")
	}
	return w.market().History(q), w.err
}

func (w *fakeService) config() pages.Config {
	return pages.Config{
		Service: w, Catalogue: w.catalogue, Clock: func() time.Time { return w.now }, PublicURL: "https://tasas.example.do",
		PerMinute: 1_000_000,
	}
}

func serve(c pages.Config) http.Handler {
	mux := http.NewServeMux()
	pages.New(c).Register(mux)
	return mux
}

// publicPaths are Spanish pages with some queries.
func publicPaths() []string {
	return []string{
		"/", "/?operation=sell", "/?amount=1,250.50&currency=EUR&days=7", "/?channel=digital", "/?currency=HTG", "/?currency=usd&amount=1,5&channel=x&days=8&operation=z",
		"/institutions", "/institutions/colon", "/institutions/colon?currency=EUR&days=365", "/institutions/duarte", "/institutions/bcrd", "/terms",
	}
}

func inBothLanguages(paths []string) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		all = append(all, strings.TrimSuffix(strings.Replace("/en"+path, "/en/?", "/en?", 1), "/"))
	}
	return all
}
