package httpapi

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// fakeNow is the clock of most tests: a Friday, 10:00:00 in Santo Domingo, two hours before a refresh slot.
func fakeNow() time.Time { return time.Date(2025, 11, 21, 14, 0, 0, 0, time.UTC) }

// fakeClock is set by tests.
type fakeClock struct{ nanoseconds atomic.Int64 }

func newFakeClock(at time.Time) *fakeClock {
	c := new(fakeClock)
	c.set(at)
	return c
}

func (c *fakeClock) now() time.Time   { return time.Unix(0, c.nanoseconds.Load()) }
func (c *fakeClock) set(at time.Time) { c.nanoseconds.Store(at.UnixNano()) }

// fakeService answers from literals, with the rules as simple as they can be. A page is made once for each question.
type fakeService struct {
	catalogue *engine.Catalogue
	published []*engine.Rate
	days      []engine.HistoryEntry

	mu    sync.Mutex
	pages map[any]any
	// fault, when set, is what every question that needs rates gets; panics says that each question panics.
	fault  error
	panics any
	asked  []any
}

func newFakeService() *fakeService {
	catalogue := fakeCatalogue()
	return &fakeService{catalogue: catalogue, published: fakeRates(catalogue), days: fakeDays(catalogue), pages: map[any]any{}}
}

// fakeCatalogue is a small one, so that the golden files do not hang on the real one's texts.
func fakeCatalogue() *engine.Catalogue {
	file, err := os.Open(filepath.Join("testdata", "catalogue.json"))
	if err != nil {
		panic(err)
	}
	defer file.Close()
	catalogue, err := new(engine.Catalogue).Extend(file, file.Name())
	if err != nil {
		panic(err)
	}
	return catalogue
}

func mustDecimal(text string) engine.Decimal {
	d, err := engine.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

func mustDate(text string) engine.Date {
	d, err := engine.ParseDate(text)
	if err != nil {
		panic(err)
	}
	return d
}

// fakeRate is a complete rate; tests change what they are about.
func fakeRate(institution *engine.Institution, currency, buy, sell string, channel engine.Channel, kind engine.Kind) *engine.Rate {
	r := &engine.Rate{
		ID:            engine.QuoteKey{Institution: institution.ID, Channel: channel, Kind: kind}.ID(currency),
		InstitutionID: institution.ID, InstitutionName: institution.Name, InstitutionType: institution.Type,
		Website: institution.Website, Currency: currency, Channel: channel, Kind: kind,
		SourceID: institution.ID + "-web", SourceName: "Página de " + institution.Name, SourceURL: institution.Website,
		CollectedAt: fakeNow().Add(-3 * time.Hour), LastCheckedAt: fakeNow().Add(-2 * time.Hour), ExpiresAt: fakeNow().Add(24 * time.Hour),
		Priority: engine.PriorityDefault, DatePrecision: engine.PrecisionUnknown,
	}
	if buy != "" {
		r.Buy = mustDecimal(buy)
	}
	if sell != "" {
		r.Sell = mustDecimal(sell)
	}
	return r
}

// fakeRates has each shape that a rate can take: one side only, reference, expired, dated, by hand, text that needs escaping.
func fakeRates(c *engine.Catalogue) []*engine.Rate {
	of := func(id, currency, buy, sell string, channel engine.Channel, kind engine.Kind) *engine.Rate {
		institution, known := c.Institution(id)
		if !known {
			panic("no institution " + id)
		}
		return fakeRate(institution, currency, buy, sell, channel, kind)
	}
	reference := of("bcrd", "USD", "58.8721", "59.2250", engine.Unspecified, engine.Reference)
	reference.EffectiveDate, reference.DatePrecision = mustDate("2025-11-20"), engine.PrecisionDay
	dated := of("bhd", "USD", "58.75", "59.3", engine.Branch, engine.Commercial)
	dated.PublishedAt, dated.DatePrecision = fakeNow().Add(-4*time.Hour+250*time.Millisecond), engine.PrecisionDatetime
	expired := of("popular", "EUR", "66.1", "70.55000000", engine.Unspecified, engine.Commercial)
	expired.ExpiresAt, expired.Stale = fakeNow().Add(-time.Hour), true
	typed := of("banreservas", "USD", "58.5", "59.30", engine.Unspecified, engine.Commercial)
	typed.Manual, typed.Priority = true, 0
	quoted := of("capla", "USD", "59.05", "", engine.Cash, engine.Commercial)
	quoted.UpstreamSource = "Lista \"A\" <&> \u2028 \\ \x01 \xff fin"
	return []*engine.Rate{
		expired, typed, reference, dated,
		of("bhd", "USD", "58.80", "59.25", engine.Digital, engine.Commercial),
		quoted, of("popular", "USD", "58.60", "59.40", engine.Unspecified, engine.Commercial),
		of("scotiabank", "EUR", "67", "71.2", engine.Digital, engine.Commercial),
	}
}

func fakeDays(c *engine.Catalogue) []engine.HistoryEntry {
	var days []engine.HistoryEntry
	for back := range 10 {
		for _, r := range fakeRates(c) {
			days = append(days, engine.HistoryEntry{
				Date: engine.DateOf(fakeNow()).AddDays(-back), InstitutionID: r.InstitutionID, Currency: r.Currency, Channel: r.Channel,
				Kind: r.Kind, Buy: r.Buy, Sell: r.Sell, SourceID: r.SourceID, DatePrecision: r.DatePrecision,
			})
		}
	}
	slices.SortStableFunc(days, func(a, b engine.HistoryEntry) int { return cmp.Compare(a.Date, b.Date) })
	return days
}

// paged answers a question once and remembers the page.
func paged[T any](f *fakeService, question any, cut engine.Cut, matches func() []T) (*engine.Page[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, question)
	if f.panics != nil {
		panic(f.panics)
	}
	if page, ok := f.pages[question]; ok {
		return page.(*engine.Page[T]), nil
	}
	all := matches()
	from := min(cut.Cursor, len(all))
	page := &engine.Page[T]{Items: all[from:min(from+cut.Limit, len(all))], Total: len(all), Next: engine.NoNext}
	if next := from + len(page.Items); next < len(all) {
		page.Next = next
	}
	f.pages[question] = page
	return page, nil
}

func matches(f engine.Filter, currency, institution string, channel engine.Channel, kind engine.Kind) bool {
	return (f.Currency == "" || f.Currency == currency) && (f.Institution == "" || f.Institution == institution) &&
		(f.Channel == "" || f.Channel == channel) && (f.Kind == "" || f.Kind == kind)
}

func (f *fakeService) Rates(q engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	if f.fault != nil {
		return nil, f.fault
	}
	return paged(f, q, q.Cut, func() (found []*engine.Rate) {
		for _, r := range f.published {
			if matches(q.Filter, r.Currency, r.InstitutionID, r.Channel, r.Kind) {
				found = append(found, r)
			}
		}
		return found
	})
}

func (f *fakeService) Ranking(q engine.RankingQuery) (*engine.Page[*engine.Rate], error) {
	if f.fault != nil {
		return nil, f.fault
	}
	return paged(f, q, q.Cut, func() (found []*engine.Rate) {
		filter := q.Filter
		if filter.Kind == "" {
			filter.Kind = engine.Commercial
		}
		for _, r := range f.published {
			fits := matches(filter, r.Currency, r.InstitutionID, r.Channel, r.Kind) && !r.Stale && !r.Side(q.Operation).IsNull()
			if fits && (q.Comparing || r.Kind == engine.Commercial) {
				found = append(found, r)
			}
		}
		slices.SortStableFunc(found, func(a, b *engine.Rate) int {
			if q.Operation == engine.Sell {
				a, b = b, a
			}
			return a.Side(q.Operation).Compare(b.Side(q.Operation))
		})
		return found
	})
}

func (f *fakeService) History(q engine.HistoryQuery) (*engine.Page[engine.HistoryEntry], error) {
	if f.fault != nil {
		return nil, f.fault
	}
	return paged(f, q, q.Cut, func() (found []engine.HistoryEntry) {
		for _, h := range f.days {
			if h.Date >= q.From && h.Date <= q.To && matches(q.Filter, h.Currency, h.InstitutionID, h.Channel, h.Kind) {
				found = append(found, h)
			}
		}
		return found
	})
}

func (f *fakeService) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	return paged(f, "currencies", engine.Cut{Limit: engine.LimitMax}, func() (found []engine.CurrencyItem) {
		for _, c := range f.catalogue.Currencies() {
			item := engine.CurrencyItem{Currency: *c}
			for _, r := range f.published {
				if r.Currency == c.Code {
					item.QuoteCount++
					if !r.Stale {
						item.CurrentQuoteCount++
					}
				}
			}
			found = append(found, item)
		}
		return found
	})
}

func (f *fakeService) Institutions(q engine.InstitutionsQuery) (*engine.Page[engine.InstitutionItem], error) {
	return paged(f, q, q.Cut, func() (found []engine.InstitutionItem) {
		for _, i := range f.catalogue.Institutions() {
			item := engine.InstitutionItem{Institution: i}
			for _, r := range f.published {
				if r.InstitutionID == i.ID {
					item.Currencies = append(item.Currencies, r.Currency)
					if !r.Stale {
						item.CurrentQuoteCount++
					}
				}
			}
			slices.Sort(item.Currencies)
			item.Currencies = slices.Compact(item.Currencies)
			if i.Active && (q.Currency == "" || slices.Contains(item.Currencies, q.Currency)) {
				found = append(found, item)
			}
		}
		return found
	})
}

func (f *fakeService) Institution(id string) (*engine.InstitutionDetail, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, id)
	if f.panics != nil {
		panic(f.panics)
	}
	institution, known := f.catalogue.Institution(id)
	if !known || !institution.Active {
		return nil, &engine.Error{Code: engine.CodeInstitutionNotFound, Message: "No active institution has this id."}
	}
	if detail, ok := f.pages["institution "+id]; ok {
		return detail.(*engine.InstitutionDetail), nil
	}
	detail := &engine.InstitutionDetail{Institution: institution}
	for _, r := range f.published {
		if r.InstitutionID == id {
			detail.Rates = append(detail.Rates, r)
		}
	}
	f.pages["institution "+id] = detail
	return detail, nil
}

// lastAsked is the last question that reached the service.
func (f *fakeService) lastAsked() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return nil
	}
	return f.asked[len(f.asked)-1]
}

// counted gives the ids 0000000000000001, 0000000000000002, …
func counted() func() string {
	var count atomic.Uint64
	return func() string {
		digits := strconv.FormatUint(count.Add(1), 10)
		return "0000000000000000"[len(digits):] + digits
	}
}

// fixture is a server over a fake service with a clock that stands.
type fixture struct {
	server  *Server
	service *fakeService
	clock   *fakeClock
}

// newFixture starts nothing. change may alter the configuration; nil leaves it.
func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	service, clock := newFakeService(), newFakeClock(fakeNow())
	config := Config{Service: service, Catalogue: service.catalogue, Clock: clock.now, RequestID: counted()}
	if change != nil {
		change(&config)
	}
	return &fixture{New(config), service, clock}
}
