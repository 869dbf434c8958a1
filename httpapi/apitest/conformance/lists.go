package conformance

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/httpapi/client"
)

// pagedPaths returns one path for each list that has pages, and some paths with filters in the query.
func (k *ruleRun) pagedPaths() []string {
	currency := k.currencies()[0]
	return []string{
		"/v1/institutions", "/v1/rates", "/v1/rates?currency=" + currency, "/v1/rates/best?operation=buy&currency=" + currency,
		"/v1/convert?operation=sell&amount=1&currency=" + currency, "/v1/rates/history",
	}
}

func checkWalks(k *ruleRun) {
	for _, target := range k.pagedPaths() {
		want := getAllPages[any](k, target, 200)
		for _, limit := range []int{7, max(1, len(want)/2)} {
			if got := getAllPages[any](k, target, limit); !reflect.DeepEqual(got, want) {
				k.errorf("GET %s: %d items with limit %d, %d with limit 200, or they differ", target, len(got), limit, len(want))
			}
		}
		for _, cursor := range []int{len(want), len(want) + 1, 100_000} {
			page := getList[any](k, withParameters(target, "cursor=%d", cursor))
			if len(page.Data) != 0 || page.Meta.NextCursor != nil || page.Meta.Total != len(want) {
				k.errorf("GET %s from %d: %d items, total %d of %d, nextCursor %v", target, cursor, len(page.Data), page.Meta.Total, len(want), page.Meta.NextCursor)
			}
		}
	}
}

func checkTotals(k *ruleRun) {
	for _, target := range k.pagedPaths() {
		want := len(getAllPages[any](k, target, 200))
		for _, params := range []string{"limit=1", "limit=200", "limit=1&cursor=1"} {
			if got := getList[any](k, withParameters(target, "%s", params)).Meta.Total; got != want {
				k.errorf("GET %s: total is %d, all pages have %d items", withParameters(target, "%s", params), got, want)
			}
		}
	}
}

// checkSorted checks that items are in strictly ascending order.
func checkSorted[T any](k *ruleRun, name string, items []T, order func(a, b T) int) {
	for i := 1; i < len(items); i++ {
		if order(items[i-1], items[i]) >= 0 {
			k.errorf("%s: %v before %v", name, items[i-1], items[i])
		}
	}
}

func checkListOrders(k *ruleRun) {
	checkSorted(k, "currencies", k.catalogue(), func(a, b client.Currency) int { return cmp.Compare(a.Code, b.Code) })
	checkSorted(k, "institutions", k.institutions(""), func(a, b client.Institution) int { return cmp.Compare(a.ID, b.ID) })
	checkSorted(k, "rates", k.rates(client.Filter{}), func(a, b client.Rate) int {
		return cmp.Or(cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.InstitutionID, b.InstitutionID), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Kind, b.Kind))
	})
	checkSorted(k, "history", k.history(client.Date{}, client.Date{}), func(a, b client.HistoryEntry) int {
		return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.InstitutionID, b.InstitutionID), cmp.Compare(a.Currency, b.Currency),
			cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.SourceID, b.SourceID))
	})
}

const generatedAtLayout = "2006-01-02T15:04:05Z"

func checkGeneratedAt(k *ruleRun) {
	for _, target := range k.pagedPaths() {
		generatedAt := getList[any](k, target).Meta.GeneratedAt
		if _, err := time.Parse(generatedAtLayout, generatedAt); err != nil || len(generatedAt) != len(generatedAtLayout) {
			k.errorf("GET %s: generatedAt is %q", target, generatedAt)
		}
	}
}

// counts has the numbers of rates and currencies that belong to one currency or to one institution.
type counts struct {
	all, current int // rates
	currencies   int // currencies that have rates
}

func countsOf(rates []client.Rate, keyOf func(*client.Rate) string) map[string]counts {
	byKey, seen := map[string]counts{}, map[string]bool{}
	for i := range rates {
		r := &rates[i]
		c := byKey[keyOf(r)]
		c.all++
		if !r.Stale {
			c.current++
		}
		if pair := keyOf(r) + " " + r.Currency; !seen[pair] {
			seen[pair] = true
			c.currencies++
		}
		byKey[keyOf(r)] = c
	}
	return byKey
}

func checkCounts(k *ruleRun) {
	rates := k.rates(client.Filter{})
	byCurrency := countsOf(rates, func(r *client.Rate) string { return r.Currency })
	for _, c := range k.catalogue() {
		if want := byCurrency[c.Code]; c.QuoteCount != want.all || c.CurrentQuoteCount != want.current {
			k.errorf("currency %s: %d rates, %d current; counted %d, %d", c.Code, c.QuoteCount, c.CurrentQuoteCount, want.all, want.current)
		}
		delete(byCurrency, c.Code)
	}
	for code := range byCurrency {
		k.errorf("currency %s has rates and is not listed", code)
	}
	byInstitution := countsOf(rates, func(r *client.Rate) string { return r.InstitutionID })
	for _, i := range k.institutions("") {
		if want := byInstitution[i.ID]; i.CurrentQuoteCount != want.current || len(i.Currencies) != want.currencies {
			k.errorf("institution %s: %d current rates in %q; counted %d in %d currencies", i.ID, i.CurrentQuoteCount, i.Currencies, want.current, want.currencies)
		}
	}
}

func checkListedInstitutions(k *ruleRun) {
	listed := map[string]bool{}
	for _, i := range k.institutions("") {
		listed[i.ID] = true
		if !i.Active {
			k.errorf("institution %s is listed and inactive", i.ID)
		}
	}
	for _, r := range k.rates(client.Filter{}) {
		if !listed[r.InstitutionID] {
			k.errorf("%s is of an institution that is not listed", r.ID)
		}
	}
	for id := range listed {
		detail, err := k.dataClient.Institution(k.ctx, id)
		if got, want := idsOf(must(k, detail, err).Rates), idsOf(k.rates(client.Filter{Institution: id})); !slices.Equal(got, want) {
			k.errorf("institution %s has the rates %q, the list %q", id, got, want)
		}
		break // one institution is enough, because the check costs three requests
	}
	k.wantError("/v1/institutions/no-such-institution", http.StatusNotFound, "institution_not_found")
}

func checkInstitutionsOfCurrency(k *ruleRun) {
	published := k.rates(client.Filter{})
	for _, code := range k.currencies() {
		var want, got []string
		for i := range published {
			if published[i].Currency == code {
				want = append(want, published[i].InstitutionID)
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		for _, i := range k.institutions(code) {
			got = append(got, i.ID)
			if !slices.IsSorted(i.Currencies) || !slices.Contains(i.Currencies, code) {
				k.errorf("institution %s, listed for %s, has the currencies %q", i.ID, code, i.Currencies)
			}
		}
		if !slices.Equal(got, want) {
			k.errorf("institutions of %s: %q, want %q", code, got, want)
		}
	}
}

func checkNothingMatches(k *ruleRun) {
	for _, target := range []string{
		"/v1/rates?currency=XXX", "/v1/rates?institution=no-such-bank", "/v1/institutions?currency=XXX", "/v1/rates/best?currency=XXX&operation=buy",
		"/v1/rates/history?institution=no-such-bank", "/v1/convert?currency=XXX&operation=sell&amount=1",
	} {
		if page := getList[any](k, target); len(page.Data) != 0 || page.Meta.Total != 0 || page.Meta.NextCursor != nil {
			k.errorf("GET %s: %d items, total %d", target, len(page.Data), page.Meta.Total)
		}
	}
}

func checkIDs(k *ruleRun) {
	for _, r := range k.rates(client.Filter{}) {
		if want := strings.Join([]string{r.InstitutionID, r.Currency, string(r.Channel), string(r.Kind)}, ":"); r.ID != want {
			k.errorf("a rate has the id %q, want %q", r.ID, want)
		}
	}
}
