package cmd

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/httpapi/client"
)

// contractRule is a rule of docs/decisions.md.
type contractRule struct {
	name     string
	check    func(*contract)
	accounts bool // it makes accounts
	clock    bool // it needs limits, and a clock that can be moved
}

// contractRules are the rules that a caller can see. Those about all answers come last.
func contractRules() []contractRule {
	return []contractRule{
		{name: "S1 a caller that buys pays sell, a caller that sells gets buy", check: checkSides},
		{name: "S2 S3 the best for the caller first, ties by priority, age, institution, channel and id", check: checkOrder},
		{name: "S4 S5 best has all current commercial rates with the side and no others", check: checkPopulation},
		{name: "S6 S8 S9 S10 convert has the rates of best or references, exact amounts, what was asked, and a notice", check: checkConversions},
		{name: "P1 P2 the pages make up the list whatever the limit, and total counts it", check: checkPages},
		{name: "P4 lists are ordered", check: checkListOrders},
		{name: "P6 P7 P8 counts, institutions and their currencies agree with the rates", check: checkCounts},
		{name: "P9 a value that matches nothing gives an empty list", check: checkNothingMatches},
		{name: "P10 T1 T4 ids, stale and times of rates", check: checkRates},
		{name: "T5 T6 T8 T9 history has one row for each day and quote, of the days asked for", check: checkHistory},
		{name: "Q5 Q6 HEAD is GET without its body, OPTIONS is 204, other methods are 405", check: checkMethods},
		{name: "Q11 Q12 Q13 compression, ETag and max-age of each operation", check: checkCaching},
		{name: "L2 a minute has a limit, and a 429 says when it ends", check: checkExhaust, clock: true},
		{name: "L3 L6 what counts as one request, and what as none", check: checkCosts, clock: true},
		{name: "K1 an e-mail address leads to a key", check: checkAccountFlow, accounts: true},
		{name: "K5 an account has two active keys, a revoked key is refused", check: checkTwoKeys, accounts: true},
		{name: "K9 there are no events", check: checkNoEvents},
		{name: "Q10 Q14 Q16 E1 E2 L5 every answer", check: checkAnswers},
	}
}

func checkSides(c *contract) {
	for _, r := range c.rankings() {
		for _, item := range c.conversions(r, "1", "") {
			if side := item.Quote.Side(r.operation); side == nil || *side != item.Rate {
				c.Errorf("convert %s %s: %s applies %s", r.currency, r.operation, item.Quote.ID, item.Rate)
			}
		}
	}
}

// better compares two rates of a ranking: negative if a is better for the caller, 0 for equal sides.
func better(operation client.Operation, a, b *client.Rate) int {
	order := a.Side(operation).Cmp(*b.Side(operation))
	if operation == client.Sell {
		return -order
	}
	return order
}

func checkOrder(c *contract) {
	pairs, ties := 0, 0
	for _, r := range c.rankings() {
		for i := 1; i < len(r.rates); i++ {
			a, b := &r.rates[i-1], &r.rates[i]
			if a.Side(r.operation) == nil || b.Side(r.operation) == nil {
				c.Fatalf("best %s %s: %s or %s has not the side", r.currency, r.operation, a.ID, b.ID)
			}
			order := better(r.operation, a, b)
			if pairs++; order == 0 {
				ties++
				order = cmp.Or(cmp.Compare(a.Priority, b.Priority), b.CollectedAt.Compare(a.CollectedAt), cmp.Compare(a.InstitutionID, b.InstitutionID),
					cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.ID, b.ID))
			}
			if order >= 0 {
				c.Errorf("best %s %s: %s before %s", r.currency, r.operation, a.ID, b.ID)
			}
		}
	}
	c.Logf("%d pairs, %d of them equal", pairs, ties)
}

// eligible are the sorted ids of the rates that a ranking must have.
func eligible(rates []client.Rate, r ranking, kind client.Kind) (ids []string) {
	for i := range rates {
		if one := &rates[i]; one.Currency == r.currency && one.Kind == kind && !one.Stale && one.Side(r.operation) != nil {
			ids = append(ids, one.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func idsOf(rates []client.Rate) (ids []string) {
	for i := range rates {
		ids = append(ids, rates[i].ID)
	}
	slices.Sort(ids)
	return ids
}

func checkPopulation(c *contract) {
	rates := c.rates()
	for _, r := range c.rankings() {
		if got, want := idsOf(r.rates), eligible(rates, r, client.Commercial); !slices.Equal(got, want) {
			c.Errorf("best %s %s has %q, want %q", r.currency, r.operation, got, want)
		}
		page := c.list("/v1/rates/best", "currency", r.currency, "operation", r.operation, "kind", client.Reference)
		if len(page.Data) > 0 || page.Meta.Total != 0 {
			c.Errorf("best of reference rates has %d items", page.Meta.Total)
		}
	}
}

// expectedAmount is amount times rate, rounded half up to two decimals.
func expectedAmount(amount, rate client.Decimal) client.Decimal {
	cents := new(big.Rat).Mul(amount.Rat(), rate.Rat())
	cents.Mul(cents, big.NewRat(100, 1)).Add(cents, big.NewRat(1, 2))
	digits := fmt.Sprintf("%03s", new(big.Int).Quo(cents.Num(), cents.Denom()).String())
	return client.Decimal(digits[:len(digits)-2] + "." + digits[len(digits)-2:])
}

func checkConversions(c *contract) {
	rates := c.rates()
	for _, r := range c.rankings() {
		for _, kind := range []client.Kind{"", client.Commercial, client.Reference} {
			var quotes []client.Rate
			for _, item := range c.conversions(r, "1", kind) {
				quotes = append(quotes, item.Quote)
			}
			if got, want := idsOf(quotes), eligible(rates, r, cmp.Or(kind, client.Commercial)); !slices.Equal(got, want) {
				c.Errorf("convert %s %s %s has %q, want %q", r.currency, r.operation, kind, got, want)
			}
			if !slices.IsSortedFunc(quotes, func(a, b client.Rate) int { return better(r.operation, &a, &b) }) {
				c.Errorf("convert %s %s %s is not ordered", r.currency, r.operation, kind)
			}
		}
		for _, amount := range []client.Decimal{"0", "0.01", "0.25", "1.15", "2.05", "7.0", "100.00", "33.33", "000000000007.1", "999999999999.99"} {
			for _, i := range c.conversions(r, amount, "") {
				if want := expectedAmount(amount, i.Rate); i.AmountDOP != want {
					c.Errorf("%s: %s at %s is %s, want %s", i.Quote.ID, amount, i.Rate, i.AmountDOP, want)
				}
				if i.ForeignAmount != amount || i.Operation != r.operation || i.Currency != r.currency || i.FeesIncluded || i.FeeNotice == "" {
					c.Errorf("convert %s %s %s: %+v", r.currency, r.operation, amount, i)
				}
			}
		}
	}
}

// pagedPaths are the lists that have pages.
func (c *contract) pagedPaths() []string {
	currency := c.currencies()[0]
	return []string{
		"/v1/institutions", "/v1/rates", "/v1/rates?currency=" + currency, "/v1/rates/best?operation=buy&currency=" + currency,
		"/v1/convert?operation=sell&amount=1&currency=" + currency, "/v1/rates/history",
	}
}

func checkPages(c *contract) {
	for _, target := range c.pagedPaths() {
		want := c.walk(target, 200)
		for _, limit := range []int{7, max(1, len(want)/2)} {
			if got := c.walk(target, limit); !slices.Equal(got, want) {
				c.Errorf("GET %s: %d items with limit %d, %d with limit 200, or they differ", target, len(got), limit, len(want))
			}
		}
		for _, cursor := range []int{1, len(want), len(want) + 1, 100_000} {
			page := c.list(target, "cursor", cursor, "limit", 1)
			if cursor >= len(want) && (len(page.Data) != 0 || page.Meta.NextCursor != nil) || page.Meta.Total != len(want) {
				c.Errorf("GET %s from %d: %d items, total %d of %d, nextCursor %v", target, cursor, len(page.Data), page.Meta.Total, len(want), page.Meta.NextCursor)
			}
		}
	}
}

// sorted checks that items are in strictly ascending order.
func sorted[T any](c *contract, name string, items []T, order func(a, b T) int) {
	c.Helper()
	for i := 1; i < len(items); i++ {
		if order(items[i-1], items[i]) >= 0 {
			c.Errorf("%s: %v before %v", name, items[i-1], items[i])
		}
	}
}

func (c *contract) catalogue() []client.Currency {
	c.Helper()
	list, err := c.client.Currencies(c.Context())
	noError(c, err)
	return list
}

func (c *contract) institutions(currency string) []client.Institution {
	c.Helper()
	return all(c, client.All(client.Filter{Currency: currency}, func(f client.Filter) (*client.Page[client.Institution], error) {
		return c.client.Institutions(c.Context(), f)
	}))
}

func (c *contract) history(from, to string) []client.HistoryEntry {
	c.Helper()
	return all(c, client.All(client.Filter{}, func(f client.Filter) (*client.Page[client.HistoryEntry], error) {
		return c.client.History(c.Context(), client.HistoryQuery{Filter: f, From: from, To: to})
	}))
}

func checkListOrders(c *contract) {
	sorted(c, "currencies", c.catalogue(), func(a, b client.Currency) int { return cmp.Compare(a.Code, b.Code) })
	sorted(c, "institutions", c.institutions(""), func(a, b client.Institution) int { return cmp.Compare(a.ID, b.ID) })
	sorted(c, "rates", c.rates(), func(a, b client.Rate) int {
		return cmp.Or(cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.InstitutionID, b.InstitutionID), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Kind, b.Kind))
	})
	sorted(c, "history", c.history("", ""), func(a, b client.HistoryEntry) int {
		return cmp.Or(cmp.Compare(a.Date, b.Date), cmp.Compare(a.InstitutionID, b.InstitutionID), cmp.Compare(a.Currency, b.Currency),
			cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.SourceID, b.SourceID))
	})
}

func checkCounts(c *contract) {
	type counts struct{ all, current, institutions int }
	byCurrency, current, currencies, rates := map[string]counts{}, map[string]int{}, map[string][]string{}, c.rates()
	for i := range rates {
		r := &rates[i]
		n := byCurrency[r.Currency]
		if n.all++; !r.Stale {
			n.current++
			current[r.InstitutionID]++
		}
		if !slices.Contains(currencies[r.InstitutionID], r.Currency) {
			currencies[r.InstitutionID] = append(currencies[r.InstitutionID], r.Currency) // sorted, as the list of rates is
			n.institutions++
		}
		byCurrency[r.Currency] = n
	}
	for _, one := range c.catalogue() {
		want := byCurrency[one.Code]
		if one.QuoteCount != want.all || one.CurrentQuoteCount != want.current || want.all > 0 && len(c.institutions(one.Code)) != want.institutions {
			c.Errorf("currency %s: %d rates, %d current; counted %+v", one.Code, one.QuoteCount, one.CurrentQuoteCount, want)
		}
		delete(byCurrency, one.Code)
	}
	if len(byCurrency) > 0 {
		c.Errorf("currencies with rates that are not listed: %v", byCurrency)
	}
	listed := c.institutions("")
	for _, i := range listed {
		if i.CurrentQuoteCount != current[i.ID] || !slices.Equal(i.Currencies, currencies[i.ID]) && len(i.Currencies)+len(currencies[i.ID]) > 0 || !i.Active {
			c.Errorf("institution %s: %d current rates in %q, active %t; counted %d in %q", i.ID, i.CurrentQuoteCount, i.Currencies, i.Active, current[i.ID], currencies[i.ID])
		}
		delete(currencies, i.ID)
	}
	if len(currencies) > 0 {
		c.Errorf("institutions with rates that are not listed: %v", currencies)
	}
	detail, err := c.client.Institution(c.Context(), rates[0].InstitutionID)
	noError(c, err)
	if got, want := idsOf(detail.Rates), idsOf(all(c, c.client.AllRates(c.Context(), client.Filter{Institution: detail.ID}))); !slices.Equal(got, want) {
		c.Errorf("institution %s has the rates %q, the list %q", detail.ID, got, want)
	}
}

func checkNothingMatches(c *contract) {
	for _, target := range []string{
		"/v1/rates?currency=XXX", "/v1/rates?institution=no-such-bank", "/v1/institutions?currency=XXX", "/v1/rates/best?currency=XXX&operation=buy",
		"/v1/rates/history?institution=no-such-bank", "/v1/convert?currency=XXX&operation=sell&amount=1",
	} {
		if page := c.list(target); len(page.Data) != 0 || page.Meta.Total != 0 || page.Meta.NextCursor != nil {
			c.Errorf("GET %s: %d items, total %d", target, len(page.Data), page.Meta.Total)
		}
	}
}

func checkRates(c *contract) {
	page, err := c.client.Rates(c.Context(), client.Filter{Limit: 200})
	noError(c, err)
	for i := range page.Data {
		r := &page.Data[i]
		if want := strings.Join([]string{r.InstitutionID, r.Currency, string(r.Channel), string(r.Kind)}, ":"); r.ID != want {
			c.Errorf("a rate has the id %q, want %q", r.ID, want)
		}
		now := page.Meta.GeneratedAt // rounded down to whole seconds
		if r.Stale && !now.Add(time.Second).After(r.ExpiresAt) || !r.Stale && !now.Before(r.ExpiresAt) {
			c.Errorf("%s: stale is %v at %s, it expires %s", r.ID, r.Stale, now, r.ExpiresAt)
		}
		if r.CollectedAt.IsZero() || r.LastCheckedAt.Before(r.CollectedAt) {
			c.Errorf("%s: collected %s, last checked %s", r.ID, r.CollectedAt, r.LastCheckedAt)
		}
	}
}

func checkHistory(c *contract) {
	page, err := c.client.Rates(c.Context(), client.Filter{Limit: 1})
	noError(c, err)
	day := func(days int) string { // in Santo Domingo, which has no summer time
		return page.Meta.GeneratedAt.UTC().Add(-4*time.Hour).AddDate(0, 0, days).Format(time.DateOnly)
	}
	seen := map[string]bool{}
	for _, r := range c.history("", "") {
		id := fmt.Sprint(r.Date, r.InstitutionID, r.Currency, r.Channel, r.Kind)
		if seen[id] {
			c.Errorf("two rows of %s", id)
		}
		seen[id] = true
	}
	for _, t := range [][4]string{ // what is given, and what it means
		{"", "", day(-6), day(0)}, {day(-3), "", day(-3), day(0)}, {"", day(-2), day(-8), day(-2)},
	} {
		if got, want := c.history(t[0], t[1]), c.history(t[2], t[3]); !reflect.DeepEqual(got, want) {
			c.Errorf("history of %q has %d rows, or others than %q with %d", t[:2], len(got), t[2:], len(want))
		}
	}
	for _, r := range c.history(day(-2), day(-1)) {
		if r.Date < day(-2) || r.Date > day(-1) {
			c.Errorf("a row of %s in the range %s to %s", r.Date, day(-2), day(-1))
		}
	}
	if rows := len(c.history(day(300), "")) + len(c.history(day(300), day(300))); rows != 0 {
		c.Errorf("the future has %d rows", rows)
	}
	c.getOK("/v1/rates/history?from=1990-01-01&to=1990-12-31")         // a range before the first row is not an error
	c.getOK("/v1/rates/history?from=2025-01-01&to=2026-01-01&limit=1") // 365 days
	if a := c.send(http.MethodGet, "/v1/rates/history?from=2024-01-01&to=2025-01-01", ""); a.status != http.StatusBadRequest {
		c.Errorf("%s of 366 days", a)
	}
}

// operationPaths are one request for each operation of the data.
func (c *contract) operationPaths() []string {
	r := c.rates()[0]
	return []string{
		"/v1/currencies", "/v1/institutions", "/v1/institutions/" + r.InstitutionID, "/v1/rates", "/v1/rates/best?operation=buy&currency=" + r.Currency,
		"/v1/rates/history", "/v1/convert?operation=buy&amount=1&currency=" + r.Currency,
	}
}

func checkMethods(c *contract) {
	for _, target := range c.operationPaths() {
		get, head := c.getOK(target), c.send(http.MethodHead, target, "")
		if head.status != http.StatusOK || len(head.body) > 0 || head.header.Get("ETag") != get.header.Get("ETag") || head.header.Get("Content-Length") != strconv.Itoa(len(get.body)) {
			c.Errorf("%s with %v", head, head.header)
		}
		if a := c.send(http.MethodOptions, target, ""); a.status != http.StatusNoContent || a.header.Get("Allow") != "GET, HEAD, OPTIONS" || a.header.Get("Access-Control-Allow-Methods") == "" {
			c.Errorf("%s: Allow %q, Access-Control-Allow-Methods %q", a, a.header.Get("Allow"), a.header.Get("Access-Control-Allow-Methods"))
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if a := c.send(method, target, ""); a.status != http.StatusMethodNotAllowed || !strings.HasPrefix(a.header.Get("Allow"), "GET, HEAD") {
				c.Errorf("%s: Allow is %q", a, a.header.Get("Allow"))
			}
		}
	}
}

var (
	generatedAt = regexp.MustCompile(`"generatedAt":"[^"]*"`)
	maxAge      = regexp.MustCompile(`^(?:private|public), max-age=(\d+)(?:, stale-while-revalidate=(\d+))?$`)
)

func checkCaching(c *contract) {
	for _, target := range c.operationPaths() {
		plain, compressed := c.getOK(target), c.getOK(target, "Accept-Encoding", "gzip")
		body := compressed.body
		if isGzip := compressed.header.Get("Content-Encoding") == "gzip"; isGzip != (len(plain.body) >= 1<<10) {
			c.Errorf("%s: %d bytes, Content-Encoding %q", compressed, len(plain.body), compressed.header.Get("Content-Encoding"))
		} else if isGzip {
			reader, err := gzip.NewReader(bytes.NewReader(body))
			if err == nil {
				body, err = io.ReadAll(reader)
			}
			if err != nil {
				c.Errorf("%s: %v", compressed, err)
			}
		}
		if !bytes.Equal(generatedAt.ReplaceAll(body, nil), generatedAt.ReplaceAll(plain.body, nil)) || !strings.Contains(plain.header.Get("Vary"), "Accept-Encoding") {
			c.Errorf("%s: Vary %q, or another body than the plain one", compressed, plain.header.Get("Vary"))
		}
		tag := plain.header.Get("ETag")
		for _, condition := range []string{tag, `"other", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
			if a := c.send(http.MethodGet, target, "", "If-None-Match", condition); a.status != http.StatusNotModified || len(a.body) > 0 || a.header.Get("ETag") != tag {
				c.Errorf("%s with If-None-Match %s", a, condition)
			}
		}
		found := maxAge.FindStringSubmatch(plain.header.Get("Cache-Control"))
		if found == nil || !strings.HasPrefix(tag, `W/"`) {
			c.Errorf("%s: Cache-Control %q, ETag %s", plain, plain.header.Get("Cache-Control"), tag)
			continue
		}
		c.checkMaxAge(plain, found[1:])
	}
	if c.advance != nil {
		before := c.getOK("/v1/rates")
		c.advance(2 * time.Second)
		if after := c.getOK("/v1/rates"); after.header.Get("ETag") != before.header.Get("ETag") || bytes.Equal(after.body, before.body) {
			c.Error("the ETag changes with generatedAt, or generatedAt does not change")
		}
	}
}

// checkMaxAge checks that no cache keeps a rate after it has expired.
func (c *contract) checkMaxAge(a *answered, seconds []string) {
	c.Helper()
	var until time.Duration
	for _, text := range seconds {
		n, _ := strconv.Atoi(text) // "" is 0
		if n > 60 {
			c.Errorf("%s: max-age or stale-while-revalidate is %d s", a, n)
		}
		until += time.Duration(n) * time.Second
	}
	if page := asJSON[list](c.TB, regexp.MustCompile(`"data":\{`).ReplaceAllString(string(a.body), `"one":{`)); page.Meta.GeneratedAt != "" {
		for _, raw := range page.Data {
			r := asJSON[client.Rate](c.TB, string(raw))
			now, err := time.Parse("2006-01-02T15:04:05Z", page.Meta.GeneratedAt)
			if err != nil || r.ID != "" && !r.ExpiresAt.IsZero() && !r.Stale && now.Add(until).After(r.ExpiresAt.Add(time.Second)) {
				c.Errorf("%s of %s may be kept for %s, but %s expires %s (%v)", a, page.Meta.GeneratedAt, until, r.ID, r.ExpiresAt, err)
			}
		}
	}
}

func checkExhaust(c *contract) {
	left := c.getOK("/v1/currencies").remaining()
	for ; left > 0; left-- {
		c.getOK("/v1/currencies")
	}
	a := c.send(http.MethodGet, "/v1/currencies", "")
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if a.status != http.StatusTooManyRequests || a.remaining() != 0 || err != nil || seconds < 1 || seconds > 60 {
		c.Errorf("%s after the last request of a minute: %v", a, a.header)
	}
	c.advance(time.Duration(seconds) * time.Second)
	c.getOK("/v1/currencies")
}

func checkCosts(c *contract) {
	tag := c.getOK("/v1/rates").header.Get("ETag")
	for _, t := range []struct {
		method, target, tag string
		status, cost        int
	}{
		{http.MethodGet, "/v1/rates", "", 200, 1}, {http.MethodHead, "/v1/rates", "", 200, 1}, {http.MethodGet, "/v1/rates", tag, 304, 1},
		{http.MethodGet, "/v1/rates?limit=0", "", 400, 1}, {http.MethodGet, "/v1/institutions/no-such-bank", "", 404, 1},
		{http.MethodGet, "/v1/nothing", "", 404, 0}, {http.MethodPost, "/v1/rates", "", 405, 0}, {http.MethodOptions, "/v1/rates", "", 204, 0},
	} {
		before := c.getOK("/v1/currencies").remaining()
		if a := c.send(t.method, t.target, "", "If-None-Match", t.tag); a.status != t.status {
			c.Errorf("%s, want %d", a, t.status)
		}
		if spent := before - c.getOK("/v1/currencies").remaining(); spent != t.cost+1 {
			c.Errorf("%s %s (%d) costs %d requests, want %d", t.method, t.target, t.status, spent-1, t.cost)
		}
	}
}

// signIn requests a code and opens a session with it.
func (c *contract) signIn(email string) string {
	c.Helper()
	_, err := c.client.RequestCode(c.Context(), email)
	noError(c, err)
	session, err := c.client.SignIn(c.Context(), email, c.code(email))
	noError(c, err)
	return session.Token
}

func (c *contract) newKey(session string) *client.NewKey {
	c.Helper()
	key, err := c.client.CreateKey(c.Context(), session, "kit")
	noError(c, err)
	return key
}

func checkAccountFlow(c *contract) {
	session := c.signIn(c.newEmail())
	key := c.newKey(session)
	if !regexp.MustCompile(`^[a-z0-9]+_[a-z0-9]+_[0-9A-Za-z]{36}$`).MatchString(key.Secret) || key.Hint == "" || !strings.HasSuffix(key.Secret, key.Hint) {
		c.Errorf("a new key has the hint %q, or no form of a key", key.Hint)
	}
	keys, err := c.client.Keys(c.Context(), session)
	if err != nil || len(keys) != 1 || keys[0].ID != key.ID || keys[0].Status != "active" || bytes.Contains((*c.answers)[len(*c.answers)-1].body, []byte(key.Secret)) {
		c.Errorf("the keys are %+v, %v", keys, err)
	}
	for _, secret := range []string{session, key.Secret} {
		if _, err := c.client.Usage(c.Context(), secret); err != nil {
			c.Error(err)
		}
	}
	_, err = c.client.Keys(c.Context(), key.Secret)
	c.refused(err, http.StatusUnauthorized, client.CodeInvalidSession)
	if err := c.client.SignOut(c.Context(), session); err != nil {
		c.Error(err)
	}
	_, err = c.client.Keys(c.Context(), session)
	c.refused(err, http.StatusUnauthorized, client.CodeInvalidSession)
}

func checkTwoKeys(c *contract) {
	session := c.signIn(c.newEmail())
	first := c.newKey(session)
	c.newKey(session)
	_, err := c.client.CreateKey(c.Context(), session, "")
	c.refused(err, http.StatusConflict, client.CodeKeyLimitReached)
	for range 2 {
		if err := c.client.RevokeKey(c.Context(), session, first.ID); err != nil {
			c.Error(err)
		}
	}
	_, err = c.client.Usage(c.Context(), first.Secret)
	c.refused(err, http.StatusUnauthorized, client.CodeRevokedKey)
	c.newKey(session)
	c.refused(c.client.RevokeKey(c.Context(), session, "key_none"), http.StatusNotFound, "not_found")
}

func checkNoEvents(c *contract) {
	for _, target := range []string{"/v1/events", "/v1/webhooks", "/v1/notifications", "/v1/rates/stream", "/v1/institutions/no-such-bank"} {
		if a := c.send(http.MethodGet, target, ""); a.status != http.StatusNotFound {
			c.Errorf("%s, want 404", a)
		}
	}
}

// contractCodes are the values of error.code, by status.
var contractCodes = map[int]string{
	400: "invalid_parameters malformed_request", 401: "missing_key invalid_key revoked_key account_suspended invalid_code invalid_session",
	404: "not_found institution_not_found", 405: "method_not_allowed", 408: "request_timeout", 409: "key_limit_reached", 413: "payload_too_large",
	415: "unsupported_media_type", 429: "rate_limited quota_exceeded code_requested_too_soon", 431: "headers_too_large",
	500: "internal_error", 503: "data_unavailable overloaded read_only no_majority",
}

// checkAnswers checks every answer that the other rules got.
func checkAnswers(c *contract) {
	type failure struct {
		Error struct {
			Code, Message, RequestID string
			Details                  []client.Detail
		}
	}
	seen := map[string]bool{}
	for _, a := range *c.answers {
		h := a.header
		id := h.Get("X-Request-Id")
		hasBody := a.status != http.StatusNoContent && a.status != http.StatusNotModified
		if id == "" || seen[id] || h.Get("X-Content-Type-Options") != "nosniff" || hasBody && h.Get("Content-Type") != "application/json; charset=utf-8" || h.Get("Access-Control-Allow-Credentials") != "" {
			c.Errorf("%s: request id %q seen %t, or another header: %v", &a, id, seen[id], h)
		}
		seen[id] = true
		if origin := h.Get("Access-Control-Allow-Origin"); isAccountPath(a.target) && (origin != "" || h.Get("Cache-Control") != "no-store") || !isAccountPath(a.target) && origin != "*" {
			c.Errorf("%s: Access-Control-Allow-Origin %q, Cache-Control %q", &a, origin, h.Get("Cache-Control"))
		}
		if again := a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable; again != (h.Get("Retry-After") != "") {
			c.Errorf("%s: Retry-After is %q", &a, h.Get("Retry-After"))
		}
		if a.status < http.StatusBadRequest || a.method == http.MethodHead {
			continue
		}
		f := asJSON[failure](c.TB, string(a.body)).Error
		if !slices.Contains(strings.Fields(contractCodes[a.status]), f.Code) || f.Message == "" || f.RequestID != id || (len(f.Details) > 0) != (f.Code == "invalid_parameters") {
			c.Errorf("%s: %.300s", &a, a.body)
		}
		if a.status == http.StatusUnauthorized && !strings.HasPrefix(h.Get("WWW-Authenticate"), "Bearer realm=") {
			c.Errorf("%s: WWW-Authenticate is %q", &a, h.Get("WWW-Authenticate"))
		}
	}
}
