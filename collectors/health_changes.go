package collectors

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// changes remembers since when each page says the same: a source that is frozen answers every question, with 200 and a good
// document. It lives in memory; for a dated source the date tells how old its word was when it was first heard.
type changeDetector struct {
	pages map[int]unchangedPage
}

// unchangedPage is the values of a page and since when it says them.
type unchangedPage struct {
	values [sha256.Size]byte
	since  time.Time
}

func newChangeDetector() changeDetector { return changeDetector{pages: map[int]unchangedPage{}} }

// observe compares what the pages say now with what they said before.
func (w *changeDetector) observe(read pageResults, now time.Time) {
	for _, page := range read.succeeded() {
		said := read.results[page].Observations
		values := fingerprint(said)
		if last, known := w.pages[page]; known && last.values == values {
			continue
		}
		w.pages[page] = unchangedPage{values: values, since: valuesFrom(said, now)}
	}
}

// since is when anything changed last, zero while nothing was read.
func (w *changeDetector) since() time.Time {
	var newest time.Time
	for _, page := range w.pages {
		if page.since.After(newest) {
			newest = page.since
		}
	}
	return newest
}

// fingerprint names the values of a page, whatever their order and dates: a page that shows today's date above last year's
// rates is frozen too.
func fingerprint(observations []engine.Observation) [sha256.Size]byte {
	lines := make([]string, len(observations))
	for i := range observations {
		o := &observations[i]
		lines[i] = fmt.Sprintf("%s %s %s %s %q %q", o.InstitutionID, o.Currency, o.Channel, o.Kind, o.Buy, o.Sell)
	}
	slices.Sort(lines)
	return sha256.Sum256([]byte(strings.Join(lines, "\n")))
}

// valuesFrom is when values were said that are new to us: at the end of their newest date if all have one that is past, else now.
func valuesFrom(observations []engine.Observation, now time.Time) time.Time {
	var latest engine.Date
	for i := range observations {
		if observations[i].EffectiveDate.IsZero() {
			return now
		}
		latest = max(latest, observations[i].EffectiveDate)
	}
	if latest.IsZero() || endOfDay(latest).After(now) {
		return now
	}
	return endOfDay(latest)
}
