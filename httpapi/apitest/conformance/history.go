package conformance

import (
	"fmt"
	"slices"
	"time"
)

// dominican is the offset of America/Santo_Domingo, which has no summer time (T2).
const dominican = -4 * time.Hour

// moment is when an answer was cut.
func (k *trial) moment(generatedAt string) time.Time {
	at, err := time.Parse(wholeSecond, generatedAt)
	if err != nil {
		k.fatalf("generatedAt is %q (P5)", generatedAt)
	}
	return at
}

// today is the server's Dominican day.
func (k *trial) today() time.Time {
	now := k.moment(listOf[rate](k, "/v1/rates?limit=1").Meta.GeneratedAt)
	return now.Add(dominican).Truncate(24 * time.Hour)
}

func checkStale(k *trial) {
	stale := 0
	for cursor := 0; ; {
		page := listOf[rate](k, fmt.Sprintf("/v1/rates?limit=200&cursor=%d", cursor))
		at := k.moment(page.Meta.GeneratedAt)
		for _, r := range page.Data {
			if r.Stale {
				stale++
			}
			// The answer was cut within the second that generatedAt names.
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

func checkMoments(k *trial) {
	for _, r := range k.rates("") {
		if r.CollectedAt.IsZero() || r.LastCheckedAt.Before(r.CollectedAt) {
			k.errorf("%s: collected %s, last checked %s", r.ID, r.CollectedAt, r.LastCheckedAt)
		}
	}
}

func checkRows(k *trial) {
	type key struct{ date, institution, currency, channel, kind string }
	seen := map[key]bool{}
	for _, r := range walk[row](k, "/v1/rates/history", 200) {
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

func checkRanges(k *trial) {
	today := k.today()
	day := func(n int) string { return today.AddDate(0, 0, n).Format(time.DateOnly) }
	for _, c := range []struct{ open, closed string }{
		{"", "from=" + day(-6) + "&to=" + day(0)},
		{"from=" + day(-3), "from=" + day(-3) + "&to=" + day(0)},
		{"to=" + day(-2), "from=" + day(-8) + "&to=" + day(-2)},
	} {
		got, want := walk[row](k, "/v1/rates/history?"+c.open, 200), walk[row](k, "/v1/rates/history?"+c.closed, 200)
		if !slices.Equal(got, want) {
			k.errorf("history of %q has %d rows, of %q %d, or they differ", c.open, len(got), c.closed, len(want))
		}
	}
	for _, r := range walk[row](k, "/v1/rates/history?from="+day(-2)+"&to="+day(-1), 200) {
		if r.Date < day(-2) || r.Date > day(-1) {
			k.errorf("a row of %s in %s to %s: both ends are in, and nothing beyond", r.Date, day(-2), day(-1))
		}
	}
}

func checkBackwards(k *trial) {
	k.badParameter("/v1/rates/history?from=2026-02-02&to=2026-02-01", "from")
}

func checkLongRange(k *trial) {
	k.badParameter("/v1/rates/history?from=2024-01-01&to=2025-01-01", "from") // 366 days
	k.ok("/v1/rates/history?from=2025-01-01&to=2026-01-01&limit=1")           // 365
}

func checkFuture(k *trial) {
	ahead := k.today().AddDate(1, 0, 0).Format(time.DateOnly)
	for _, target := range []string{"/v1/rates/history?from=" + ahead + "&to=" + ahead, "/v1/rates/history?from=" + ahead} {
		if page := listOf[row](k, target); len(page.Data) != 0 {
			k.errorf("GET %s has %d rows", target, len(page.Data))
		}
	}
	k.ok("/v1/rates/history?from=1990-01-01&to=1990-12-31") // before what is kept: no error
}

func checkDates(k *trial) {
	k.badParameter("/v1/rates/history?from=2025-02-29&to=2025-03-05", "from")
	for _, date := range []string{"2026-2-01", "20260201", "2026-02-01T00:00:00Z", "2026-13-01", "2026-00-10", "today", "%202026-02-01", ""} {
		k.badParameter("/v1/rates/history?to=2026-02-05&from="+date, "from")
	}
	k.ok("/v1/rates/history?from=2024-02-29&to=2024-02-29")
}
