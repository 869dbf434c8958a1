package collectors

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// changeDetector finds frozen sources, which return valid documents with old values. It remembers when the values of
// each page last changed. The state is in memory. For values read first after a start, their dates say how old they
// are.
type changeDetector struct {
	pages map[int]unchangedPage
}

type unchangedPage struct {
	values [sha256.Size]byte
	since  time.Time
}

func newChangeDetector() changeDetector { return changeDetector{pages: map[int]unchangedPage{}} }

// observe compares the values of the pages with the previous ones.
func (d *changeDetector) observe(outcome pageResults, now time.Time) {
	for _, page := range outcome.succeeded() {
		observations := outcome.results[page].Observations
		values := fingerprint(observations)
		if previous, known := d.pages[page]; known && previous.values == values {
			continue
		}
		d.pages[page] = unchangedPage{values: values, since: valuesFrom(observations, now)}
	}
}

// since returns when a value last changed, zero = nothing was read.
func (d *changeDetector) since() time.Time {
	var newest time.Time
	for _, page := range d.pages {
		if page.since.After(newest) {
			newest = page.since
		}
	}
	return newest
}

// fingerprint returns a hash of the values of a page, without their order and dates: a page with last year's rates
// under today's date is frozen too.
func fingerprint(observations []engine.Observation) [sha256.Size]byte {
	lines := make([]string, len(observations))
	for i := range observations {
		o := &observations[i]
		lines[i] = fmt.Sprintf("%s %s %s %s %q %q", o.InstitutionID, o.Currency, o.Channel, o.Kind, o.Buy, o.Sell)
	}
	slices.Sort(lines)
	return sha256.Sum256([]byte(strings.Join(lines, "\n")))
}

// valuesFrom returns when new values were published: the end of their newest date if all have a date in the past,
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
