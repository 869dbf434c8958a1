package collectors

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// changeDetector remembers since when each page has had the same values: a frozen source returns valid documents. The
// state is in memory; the dates of the values tell how old they were when first read.
type changeDetector struct {
	pages map[int]unchangedPage
}

type unchangedPage struct {
	values [sha256.Size]byte
	since  time.Time
}

func newChangeDetector() changeDetector { return changeDetector{pages: map[int]unchangedPage{}} }

// observe compares the values of the pages with the previous ones.
func (w *changeDetector) observe(read pageResults, now time.Time) {
	for _, page := range read.succeeded() {
		observations := read.results[page].Observations
		values := fingerprint(observations)
		if last, known := w.pages[page]; known && last.values == values {
			continue
		}
		w.pages[page] = unchangedPage{values: values, since: valuesFrom(observations, now)}
	}
}

// since returns when a value changed last, zero = nothing was read.
func (w *changeDetector) since() time.Time {
	var newest time.Time
	for _, page := range w.pages {
		if page.since.After(newest) {
			newest = page.since
		}
	}
	return newest
}

// fingerprint identifies the values of a page, regardless of order and dates: a page with today's date above last
// year's rates is frozen too.
func fingerprint(observations []engine.Observation) [sha256.Size]byte {
	lines := make([]string, len(observations))
	for i := range observations {
		o := &observations[i]
		lines[i] = fmt.Sprintf("%s %s %s %s %q %q", o.InstitutionID, o.Currency, o.Channel, o.Kind, o.Buy, o.Sell)
	}
	slices.Sort(lines)
	return sha256.Sum256([]byte(strings.Join(lines, "\n")))
}

// valuesFrom returns when new values were published: at the end of their newest date if all have one in the past,
// otherwise now.
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
