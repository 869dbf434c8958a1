package httpapi

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// fakeNow is the clock of most tests: a Friday, 10:00:00 in Santo Domingo, two hours before a refresh slot.
func fakeNow() time.Time { return time.Date(2025, 11, 21, 14, 0, 0, 0, time.UTC) }

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
}

func newFakeService() *fakeService {
	catalogue := fakeCatalogue()
	return &fakeService{catalogue: catalogue, published: fakeRates(catalogue), days: fakeDays(catalogue), pages: map[any]any{}}
}

// fakeCatalogue is a small one, so that the golden files do not hang on the real one's texts.
var fakeCatalogue = sync.OnceValue(func() *engine.Catalogue {
	file := must(os.Open(filepath.Join("testdata", "catalogue.json")))
	defer file.Close()
	return must(new(engine.Catalogue).Extend(file, file.Name()))
})

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
		r.Buy = must(engine.ParseDecimal(buy))
	}
	if sell != "" {
		r.Sell = must(engine.ParseDecimal(sell))
	}
	return r
}

// fakeRates has each shape that a rate can take: one side only, reference, expired, dated, by hand, text that needs
// escaping.
func fakeRates(c *engine.Catalogue) []*engine.Rate {
	of := func(id, currency, buy, sell string, channel engine.Channel, kind engine.Kind) *engine.Rate {
		institution, _ := c.Institution(id)
		return fakeRate(institution, currency, buy, sell, channel, kind)
	}
	reference := of("bcrd", "USD", "58.8721", "59.2250", engine.Unspecified, engine.Reference)
	reference.EffectiveDate, reference.DatePrecision = must(engine.ParseDate("2025-11-20")), engine.PrecisionDay
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

// paged answers a question once and remembers the page. fault, when set, is the answer.
func paged[T any](f *fakeService, fault error, question any, cut engine.PageRequest, matches func() []T) (*engine.Page[T], error) {
	if fault != nil {
		return nil, fault
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics != nil {
		panic(f.panics)
	}
	if page, ok := f.pages[question]; ok {
		return page.(*engine.Page[T]), nil
	}
	all := matches()
	from := min(cut.Cursor, len(all))
	page := &engine.Page[T]{Items: all[from:min(from+cut.Limit, len(all))], Total: len(all), NextCursor: engine.NoNextCursor}
	if next := from + len(page.Items); next < len(all) {
		page.NextCursor = next
	}
	f.pages[question] = page
	return page, nil
}

func matches(f engine.Filter, currency, institution string, channel engine.Channel, kind engine.Kind) bool {
	return (f.Currency == "" || f.Currency == currency) && (f.Institution == "" || f.Institution == institution) &&
		(f.Channel == "" || f.Channel == channel) && (f.Kind == "" || f.Kind == kind)
}

func (f *fakeService) Rates(q engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	return paged(f, f.fault, q, q.PageRequest, func() (found []*engine.Rate) {
		for _, r := range f.published {
			if matches(q.Filter, r.Currency, r.InstitutionID, r.Channel, r.Kind) {
				found = append(found, r)
			}
		}
		return found
	})
}

func (f *fakeService) Ranking(q engine.RankingQuery) (*engine.Page[*engine.Rate], error) {
	return paged(f, f.fault, q, q.PageRequest, func() (found []*engine.Rate) {
		filter := q.Filter
		if filter.Kind == "" {
			filter.Kind = engine.Commercial
		}
		for _, r := range f.published {
			fits := matches(filter, r.Currency, r.InstitutionID, r.Channel, r.Kind) && !r.Stale && !r.Side(q.Operation).IsNull()
			if fits && (q.ForConvert || r.Kind == engine.Commercial) {
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
	return paged(f, f.fault, q, q.PageRequest, func() (found []engine.HistoryEntry) {
		for _, h := range f.days {
			if h.Date >= q.From && h.Date <= q.To && matches(q.Filter, h.Currency, h.InstitutionID, h.Channel, h.Kind) {
				found = append(found, h)
			}
		}
		return found
	})
}

func (f *fakeService) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	return paged(f, nil, "currencies", engine.PageRequest{Limit: engine.LimitMax}, func() (found []engine.CurrencyItem) {
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
	return paged(f, nil, q, q.PageRequest, func() (found []engine.InstitutionItem) {
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
			detail.Items = append(detail.Items, r)
		}
	}
	f.pages["institution "+id] = detail
	return detail, nil
}

// fakeAdmitter knows keys by its own lists, and counts with the engine's table of addresses: an account has an
// address of its own.
type fakeAdmitter struct {
	clock      func() time.Time
	allowance  account.Quota
	transition account.KeyPolicy
	off        bool  // limits=off
	fault      error // what every admission gets
	panics     any

	mu       sync.Mutex
	accounts map[account.Digest]uint64      // whose key it is
	refused  map[account.Digest]engine.Code // keys that open nothing once keys are required
	quota    *account.AnonymousTable
	charges  map[string]int
	callers  []account.Caller
	granted  int // answers that were not errors
	refunds  int
}

func newFakeAdmitter(clock func() time.Time) *fakeAdmitter {
	return &fakeAdmitter{
		clock: clock, allowance: account.DefaultQuota(),
		accounts: map[account.Digest]uint64{digestOf(testKey(1)): 1, digestOf(testKey(2)): 1},
		refused: map[account.Digest]engine.Code{
			digestOf(testKey(8)): engine.CodeRevokedKey, digestOf(testKey(9)): engine.CodeAccountSuspended,
		},
		quota: newQuota(), charges: map[string]int{},
	}
}

func newQuota() *account.AnonymousTable {
	return account.NewAnonymousTable(8, func(key uint64) uint64 { return key })
}

func (g *fakeAdmitter) LimitsEnforced() bool         { return !g.off }
func (g *fakeAdmitter) KeyPolicy() account.KeyPolicy { return g.transition }

func (g *fakeAdmitter) Admit(c account.Caller) (account.Admission, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.callers = append(g.callers, c)
	if g.panics != nil {
		panic(g.panics)
	}
	if g.fault != nil {
		return account.Admission{}, g.fault
	}
	grant := account.Admission{Account: g.accounts[c.Key], Address: c.Address, At: clockReadingAt(g.clock())}
	if grant.Account == 0 && g.transition.Required(grant.At.Wall) {
		return account.Admission{}, g.refuse(c)
	}
	g.granted++
	grant.QuotaResult = g.quota.Admit(callerAddressOf(grant), grant.At, g.allowance)
	if grant.Admitted {
		g.charges[callerAddressOf(grant).String()]++
	}
	return grant, nil
}

func (g *fakeAdmitter) refuse(c account.Caller) error {
	code := engine.CodeInvalidKey
	if !c.HasKey && !c.HasMalformedKey {
		code = engine.CodeMissingKey
	} else if named, ok := g.refused[c.Key]; ok {
		code = named
	}
	return &engine.Error{Code: code, Message: "A valid key is needed: " + string(code) + "."}
}

func (g *fakeAdmitter) Refund(grant account.Admission) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refunds++
	g.quota.Refund(callerAddressOf(grant), grant.At)
	g.charges[callerAddressOf(grant).String()]--
}

func clockReadingAt(at time.Time) account.ClockReading {
	return account.ClockReading{Wall: at, Monotonic: at.Sub(fakeNow().AddDate(0, 0, -1))}
}

// Identities that requests are charged to: the default peer's address, and that of the first account.
const (
	peerDefault = "192.0.2.7"
	account1    = "240.0.0.1"
)

func callerAddressOf(grant account.Admission) netip.Addr {
	if grant.Account != 0 {
		return netip.AddrFrom4([4]byte{240, 0, 0, byte(grant.Account)})
	}
	return grant.Address
}

func (g *fakeAdmitter) charged(who string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.charges[who]
}

func (g *fakeAdmitter) spend(who string, count int, at time.Time) {
	for range count {
		g.quota.Admit(netip.MustParseAddr(who), clockReadingAt(at), account.Quota{Day: 1 << 30, Minute: 1 << 30})
	}
	g.charges[who] += count
}

func (g *fakeAdmitter) lastCaller(t testing.TB) account.Caller {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.callers) == 0 {
		t.Fatal("the admitter was not asked")
	}
	return g.callers[len(g.callers)-1]
}

func keysRequiredIn(away time.Duration) account.KeyPolicy {
	return account.KeyPolicy{AnnouncedAt: fakeNow().Add(away - 20*24*time.Hour), RequiredAt: fakeNow().Add(away), By: "operator"}
}

// goodCode is the code that the fake accounts expect in the email to ana@example.do.
const goodCode = "00712345"

// fakeAccounts has one account, ana@example.do, with session 100, key 1 in use and key 8 revoked. It remembers nothing.
type fakeAccounts struct {
	clock func() time.Time
	fault error  // what every question gets
	work  func() // runs with each question

	mu    sync.Mutex
	asked int
	done  int // changes that were carried out
	from  netip.Addr
}

func newFakeAccounts(clock func() time.Time) *fakeAccounts { return &fakeAccounts{clock: clock} }

func email(text string) account.Email { return must(account.ParseEmail(text)) }

func (f *fakeAccounts) begin(session *account.Digest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.work != nil {
		f.work()
	}
	if f.fault == nil && session != nil && *session != digestOf(testSession(100)) {
		return &engine.Error{Code: engine.CodeInvalidSession, Message: "The session is not valid, or over."}
	}
	return f.fault
}

func (f *fakeAccounts) change(session *account.Digest) error {
	err := f.begin(session)
	if err == nil {
		f.done++
	}
	return err
}

func (f *fakeAccounts) RequestCode(_ account.Email, from account.Requester) error {
	f.from = from.Address
	return f.change(nil)
}

func (f *fakeAccounts) OpenSession(_ account.Email, code string, from account.Requester) (account.Secret, time.Time, error) {
	f.from = from.Address
	if err := f.change(nil); err != nil {
		return account.Secret{}, time.Time{}, err
	}
	if code != goodCode {
		return account.Secret{}, time.Time{}, &engine.Error{Code: engine.CodeInvalidCode, Message: "The code is not valid."}
	}
	return account.SecretOf(testSession(1)), f.clock().Add(account.SessionLifetime), nil
}

func (f *fakeAccounts) CloseSession(token account.Digest) error { return f.change(&token) }

func (f *fakeAccounts) Keys(token account.Digest) ([]account.KeyRecord, error) {
	if err := f.begin(&token); err != nil {
		return nil, err
	}
	now := fakeNow()
	return []account.KeyRecord{
		{ID: "k8", Name: "old", Hint: "abcd", CreatedAt: now.AddDate(0, -2, 0), RevokedAt: now.AddDate(0, -1, 0), LastUsed: now.AddDate(0, -1, -1)},
		{ID: "k1", Name: "servidor «A» & B", Hint: "wxyz", CreatedAt: now.AddDate(0, -1, 0)},
	}, nil
}

func (f *fakeAccounts) CreateKey(token account.Digest, name string) (account.KeyRecord, account.Secret, error) {
	if err := f.change(&token); err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	secret := account.SecretOf(testKey(201))
	return account.KeyRecord{ID: "k201", Name: name, Hint: secret.Hint(), Digest: secret.Digest(), CreatedAt: f.clock()}, secret, nil
}

func (f *fakeAccounts) RevokeKey(token account.Digest, id string) error {
	if err := f.change(&token); err != nil || id == "k1" || id == "k8" {
		return err
	}
	return &engine.Error{Code: engine.CodeNotFound, Message: "The account has no key with this id."}
}

func (f *fakeAccounts) Usage(token account.Digest) (account.QuotaResult, error) {
	if err := f.begin(&token); err != nil {
		return account.QuotaResult{}, err
	}
	now := f.clock()
	return account.QuotaResult{
		Day:    account.Window{Limit: 1000, Remaining: 991, Reset: engine.NextMidnight(now)},
		Minute: account.Window{Limit: 60, Remaining: 58, Reset: now.Add(31500 * time.Millisecond)},
	}, nil
}

func (f *fakeAccounts) KeyUsage(digest account.Digest) (account.QuotaResult, error) {
	switch err := f.begin(nil); {
	case err != nil:
		return account.QuotaResult{}, err
	case digest == digestOf(testKey(1)):
		known := digestOf(testSession(100))
		return f.Usage(known)
	case digest == digestOf(testKey(8)):
		return account.QuotaResult{}, &engine.Error{Code: engine.CodeRevokedKey, Message: "The key is revoked."}
	}
	return account.QuotaResult{}, &engine.Error{Code: engine.CodeInvalidKey, Message: "The key is not known."}
}

func testKey(number int) string {
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	text := fmt.Sprintf("%s%030d", account.KeyPrefixTest, number)
	sum := crc32.ChecksumIEEE([]byte(text))
	var check [6]byte
	for i := range check {
		check[len(check)-1-i] = base62[sum%62]
		sum /= 62
	}
	return text + string(check[:])
}

func testSession(number int) string { return fmt.Sprintf("%s%030d", account.SessionPrefix, number) }

func bearer(token string) string { return "Authorization: Bearer " + token }

func digestOf(text string) account.Digest { return account.SecretOf(text).Digest() }
