package conformance

import (
	"reflect"
	"time"

	"github.com/tasard/tasard/httpapi/client"
)

// santoDomingoOffset is the offset of America/Santo_Domingo, which has no summer time.
const santoDomingoOffset = -4 * time.Hour

// parseGeneratedAt parses meta.generatedAt.
func (k *ruleRun) parseGeneratedAt(generatedAt string) time.Time {
	at, err := time.Parse(generatedAtLayout, generatedAt)
	if err != nil {
		k.fatalf("generatedAt is %q", generatedAt)
	}
	return at
}

// today returns the current day in Santo Domingo, by the clock of the server.
func (k *ruleRun) today() client.Date {
	page, err := k.data.Rates(k.ctx, client.Filter{Limit: 1})
	return client.DateOf(must(k, page, err).Meta.GeneratedAt.UTC().Add(santoDomingoOffset))
}

func checkStale(k *ruleRun) {
	stale := 0
	for cursor := 0; ; {
		answer, err := k.data.Rates(k.ctx, client.Filter{Limit: 200, Cursor: cursor})
		page := must(k, answer, err)
		at := page.Meta.GeneratedAt
		for i := range page.Data {
			r := &page.Data[i]
			if r.Stale {
				stale++
			}
			// generatedAt is rounded down to a second.
			if r.Stale && !at.Add(time.Second).After(r.ExpiresAt) || !r.Stale && !at.Before(r.ExpiresAt) {
				k.errorf("%s: stale is %v at %s, it expires %s", r.ID, r.Stale, at, r.ExpiresAt)
			}
		}
		if page.Meta.NextCursor == nil {
			break
		}
		cursor = *page.Meta.NextCursor
	}
	if stale == 0 {
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
	today, none := k.today(), client.Date{}
	for _, c := range []struct{ open, closed [2]client.Date }{
		{[2]client.Date{none, none}, [2]client.Date{today.AddDays(-6), today}},
		{[2]client.Date{today.AddDays(-3), none}, [2]client.Date{today.AddDays(-3), today}},
		{[2]client.Date{none, today.AddDays(-2)}, [2]client.Date{today.AddDays(-8), today.AddDays(-2)}},
	} {
		got, want := k.history(c.open[0], c.open[1]), k.history(c.closed[0], c.closed[1])
		if !reflect.DeepEqual(got, want) {
			k.errorf("history of %s has %d rows, of %s %d, or they differ", c.open, len(got), c.closed, len(want))
		}
	}
	from, to := today.AddDays(-2), today.AddDays(-1)
	for _, r := range k.history(from, to) {
		if r.Date.Compare(from) < 0 || r.Date.Compare(to) > 0 {
			k.errorf("a row of %s in %s to %s: both ends are in, and nothing beyond", r.Date, from, to)
		}
	}
}

func checkLongRange(k *ruleRun) {
	k.wantBadParameter("/v1/rates/history?from=2024-01-01&to=2025-01-01", "from") // 366 days
	k.getOK("/v1/rates/history?from=2025-01-01&to=2026-01-01&limit=1")            // 365
}

func checkFuture(k *ruleRun) {
	today := k.today()
	ahead := client.Date{Year: today.Year + 1, Month: today.Month, Day: min(today.Day, 28)}
	for _, to := range []client.Date{ahead, {}} {
		page, err := k.data.History(k.ctx, client.HistoryQuery{From: ahead, To: to})
		if rows := must(k, page, err).Data; len(rows) != 0 {
			k.errorf("history from %s on has %d rows", ahead, len(rows))
		}
	}
	k.getOK("/v1/rates/history?from=1990-01-01&to=1990-12-31") // before the first day: not an error
}

func checkDates(k *ruleRun) {
	k.wantBadParameter("/v1/rates/history?from=2025-02-29&to=2025-03-05", "from")
	for _, date := range []string{"2026-2-01", "20260201", "2026-02-01T00:00:00Z", "2026-13-01", "2026-00-10", "today", "%202026-02-01", ""} {
		k.wantBadParameter("/v1/rates/history?to=2026-02-05&from="+date, "from")
	}
	k.getOK("/v1/rates/history?from=2024-02-29&to=2024-02-29")
}
