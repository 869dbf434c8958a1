package collectors

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// changeDetector finds sources that still return valid documents, but always with the same prices. It remembers in
// memory when the prices of each page last changed. When a page is read for the first time after a start, the dates of
// its quotes say how old the prices are.
type changeDetector struct {
	pages map[int]unchangedPage // by index in Definition.Pages
}

type unchangedPage struct {
	prices [sha256.Size]byte // result of fingerprint
	since  time.Time         // since when the page has these prices
}

func newChangeDetector() changeDetector { return changeDetector{pages: map[int]unchangedPage{}} }

// observe compares the prices of the pages that an attempt to read the source has read with their previous prices. If
// they differ, it remembers since when the page has its new prices.
func (d *changeDetector) observe(outcome pageResults, now time.Time) {
	for _, page := range outcome.succeeded() {
		observations := outcome.results[page].Observations
		prices := fingerprint(observations)
		if previous, known := d.pages[page]; known && previous.prices == prices {
			continue
		}
		d.pages[page] = unchangedPage{prices: prices, since: pricesFrom(observations, now)}
	}
}

// since returns when a price last changed, or zero if no page was read yet.
func (d *changeDetector) since() time.Time {
	var newest time.Time
	for _, page := range d.pages {
		if page.since.After(newest) {
			newest = page.since
		}
	}
	return newest
}

// fingerprint returns a hash of the quotes of a page. It ignores their order and their dates, because a page may show
// old prices with today's date.
func fingerprint(observations []engine.Observation) [sha256.Size]byte {
	lines := make([]string, len(observations))
	for i := range observations {
		o := &observations[i]
		lines[i] = fmt.Sprintf("%s %s %s %s %q %q", o.InstitutionID, o.Currency, o.Channel, o.Kind, o.Buy, o.Sell)
	}
	slices.Sort(lines)
	return sha256.Sum256([]byte(strings.Join(lines, "\n")))
}

// pricesFrom returns the time from which a page has had its prices. If all quotes are dated before today, that is the
// end of the newest date; otherwise it is now.
func pricesFrom(observations []engine.Observation, now time.Time) time.Time {
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
