package conformance

import (
	"reflect"
	"time"

	"github.com/tasard/tasard/httpapi/client"
)

const santoDomingoOffset = -4 * time.Hour // offset from UTC; there is no summer time

func (k *ruleRun) parseGeneratedAt(generatedAt string) time.Time {
	t, err := time.Parse(generatedAtLayout, generatedAt)
	if err != nil {
		k.fatalf("generatedAt is %q", generatedAt)
	}
	return t
}

// today returns the current day in Santo Domingo, by the clock of the server.
func (k *ruleRun) today() client.Date {
	page, err := k.dataClient.Rates(k.ctx, client.Filter{Limit: 1})
	return client.DateOf(must(k, page, err).Meta.GeneratedAt.UTC().Add(santoDomingoOffset))
}

func checkStale(k *ruleRun) {
	staleCount := 0
	for cursor := 0; ; {
		page, err := k.dataClient.Rates(k.ctx, client.Filter{Limit: 200, Cursor: cursor})
		page = must(k, page, err)
		generatedAt := page.Meta.GeneratedAt
		for i := range page.Data {
			r := &page.Data[i]
			if r.Stale {
				staleCount++
			}
			// The field generatedAt of the response is rounded down to whole seconds.
			if r.Stale && !generatedAt.Add(time.Second).After(r.ExpiresAt) || !r.Stale && !generatedAt.Before(r.ExpiresAt) {
				k.errorf("%s: stale is %v at %s, it expires %s", r.ID, r.Stale, generatedAt, r.ExpiresAt)
			}
		}
		if page.Meta.NextCursor == nil {
			break
		}
		cursor = *page.Meta.NextCursor
	}
	if staleCount == 0 {
		k.notef("no rate has expired")
	}
}

func checkTimestamps(k *ruleRun) {
	for _, r := range k.rates(client.Filter{}) {
		if r.CollectedAt.IsZero() || r.LastCheckedAt.Before(r.CollectedAt) {
			k.errorf("%s: collected %s, last checked %s", r.ID, r.CollectedAt, r.LastCheckedAt)
		}
	}
}

func checkRows(k *ruleRun) {
	type key struct {
		date                  client.Date
		institution, currency string
		channel               client.Channel
		kind                  client.Kind
	}
	seen := map[key]bool{}
	for _, r := range k.history(client.Date{}, client.Date{}) {
		id := key{r.Date, r.InstitutionID, r.Currency, r.Channel, r.Kind}
		if seen[id] {
			k.errorf("two rows of %v", id)
		}
		seen[id] = true
	}
	if len(seen) == 0 {
		k.notef("the last seven days have no rows")
	}
}

func checkRanges(k *ruleRun) {
	today, unset := k.today(), client.Date{}
	for _, c := range []struct{ given, full [2]client.Date }{
		{[2]client.Date{unset, unset}, [2]client.Date{today.AddDays(-6), today}},
		{[2]client.Date{today.AddDays(-3), unset}, [2]client.Date{today.AddDays(-3), today}},
		{[2]client.Date{unset, today.AddDays(-2)}, [2]client.Date{today.AddDays(-8), today.AddDays(-2)}},
	} {
		got, want := k.history(c.given[0], c.given[1]), k.history(c.full[0], c.full[1])
		if !reflect.DeepEqual(got, want) {
			k.errorf("history of %s has %d rows, of %s %d, or they differ", c.given, len(got), c.full, len(want))
		}
	}
	from, to := today.AddDays(-2), today.AddDays(-1)
	for _, r := range k.history(from, to) {
		if r.Date.Compare(from) < 0 || r.Date.Compare(to) > 0 {
			k.errorf("a row of %s in the range %s to %s", r.Date, from, to)
		}
	}
}

func checkLongRange(k *ruleRun) {
	k.wantBadParameter("/v1/rates/history?from=2024-01-01&to=2025-01-01", "from") // 366 days
	k.getOK("/v1/rates/history?from=2025-01-01&to=2026-01-01&limit=1")            // 365 days
}

func checkFuture(k *ruleRun) {
	today := k.today()
	future := client.Date{Year: today.Year + 1, Month: today.Month, Day: min(today.Day, 28)}
	for _, to := range []client.Date{future, {}} {
		page, err := k.dataClient.History(k.ctx, client.HistoryQuery{From: future, To: to})
		if rows := must(k, page, err).Data; len(rows) != 0 {
			k.errorf("history from %s on has %d rows", future, len(rows))
		}
	}
	k.getOK("/v1/rates/history?from=1990-01-01&to=1990-12-31") // a range before the first row is not an error
}

func checkDates(k *ruleRun) {
	k.wantBadParameter("/v1/rates/history?from=2025-02-29&to=2025-03-05", "from")
	for _, date := range []string{"2026-2-01", "20260201", "2026-02-01T00:00:00Z", "2026-13-01", "2026-00-10", "today", "%202026-02-01", ""} {
		k.wantBadParameter("/v1/rates/history?to=2026-02-05&from="+date, "from")
	}
	k.getOK("/v1/rates/history?from=2024-02-29&to=2024-02-29")
}
