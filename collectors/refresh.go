package collectors

import (
	"maps"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// BuildRefreshes turns the results of a source's pages into refreshes for the engine. The first refreshes are the past
// days, oldest first. Their ObservedAt is the end of the day in Santo Domingo, or now if that is earlier. They have no
// slot and are never Complete. Then come the current observations, with ObservedAt now and the given slot.
//
// results[i] is the result of page i; the zero Result means that the page was not read. There may be two current
// refreshes: a Complete one with the currencies of which all pages have been read, and one with the other currencies.
// The engine removes quotes only if they are missing in a Complete refresh. Sides on different pages are joined. An
// observation without an expiry of its own expires by the definition.
//
// BuildRefreshes does not change its arguments.
func BuildRefreshes(d *source.Definition, results []source.Result, now, slot time.Time) []engine.Refresh {
	refreshes := historyRefreshes(d, results, now)
	var complete, incomplete []engine.Observation
	for i := range results {
		for _, observation := range results[i].Observations {
			if isCurrencyComplete(d, results, observation.Currency) {
				complete = append(complete, observation)
			} else {
				incomplete = append(incomplete, observation)
			}
		}
	}
	for _, part := range []struct {
		observations []engine.Observation
		complete     bool
	}{{joinSides(complete), true}, {joinSides(incomplete), false}} {
		if len(part.observations) > 0 {
			setExpiry(d, part.observations, now)
			refreshes = append(refreshes, engine.Refresh{
				SourceID: d.ID, ObservedAt: now, Observations: part.observations, Slot: slot, Complete: part.complete,
			})
		}
	}
	return refreshes
}

// historyRefreshes collects the history of all pages by day.
func historyRefreshes(d *source.Definition, results []source.Result, now time.Time) []engine.Refresh {
	days := map[engine.Date][]engine.Observation{}
	for i := range results {
		for _, day := range results[i].History {
			days[day.Date] = append(days[day.Date], day.Observations...)
		}
	}
	refreshes := make([]engine.Refresh, 0, len(days)+2)
	for _, date := range slices.Sorted(maps.Keys(days)) {
		observations := days[date]
		if date.IsZero() || len(observations) == 0 {
			continue
		}
		for i := range observations {
			if observations[i].EffectiveDate.IsZero() {
				observations[i].EffectiveDate = date
			}
		}
		observedAt := endOfDay(date)
		if observedAt.After(now) {
			observedAt = now
		}
		setExpiry(d, observations, observedAt)
		refreshes = append(refreshes, engine.Refresh{SourceID: d.ID, ObservedAt: observedAt, Observations: observations})
	}
	return refreshes
}

// endOfDay returns the last second of a day in Santo Domingo.
func endOfDay(date engine.Date) time.Time { return date.AddDays(1).Start().Add(-time.Second).UTC() }

// setExpiry sets the expiry of observations that have none, by the definition.
func setExpiry(d *source.Definition, observations []engine.Observation, checkedAt time.Time) {
	for i := range observations {
		if o := &observations[i]; o.ExpiresAt.IsZero() {
			o.ExpiresAt = d.ExpiresAt(checkedAt, o.EffectiveDate)
		}
	}
}

// isCurrencyComplete reports whether every page that may have the currency was read.
func isCurrencyComplete(d *source.Definition, results []source.Result, currency string) bool {
	if len(results) != len(d.Pages) {
		return false
	}
	for i := range d.Pages {
		page, missing := &d.Pages[i], len(results[i].Observations) == 0 && len(results[i].History) == 0
		hasCurrency := func(t source.Target) bool { return t.Currency == currency }
		if missing && (page.Currency == currency || slices.ContainsFunc(d.Targets(page), hasCurrency)) {
			return false
		}
	}
	return true
}

// trimHistory removes history that is more than days before the day of now. If days is 0, it removes nothing.
func trimHistory(results []source.Result, days int, now time.Time) []source.Result {
	if days == 0 {
		return results
	}
	oldest := engine.DateOf(now).AddDays(-days)
	trimmed := slices.Clone(results)
	for i := range trimmed {
		trimmed[i].History = slices.DeleteFunc(slices.Clone(trimmed[i].History), func(day source.HistoryDay) bool { return day.Date < oldest })
	}
	return trimmed
}

// selectUnpublished selects the observations that one try publishes from everything read in the slot so far. published
// has the currencies that were published for the slot, newResults the results of this try.
//
// A quote with one side is skipped while a page that may have the other side is missing, because it would remove a side
// that is still valid. The engine accepts a source and currency once for a slot. If a currency has been published for
// the slot, only its quotes from newResults are published, in a refresh without a slot.
func selectUnpublished(refreshes []engine.Refresh, published map[string]bool, newResults []source.Result) []engine.Refresh {
	isNew := map[quoteID]bool{}
	for i := range newResults {
		for j := range newResults[i].Observations {
			isNew[quoteIDOf(&newResults[i].Observations[j])] = true
		}
	}
	var selected []engine.Refresh
	for _, refresh := range refreshes {
		if refresh.Slot.IsZero() {
			selected = append(selected, refresh)
			continue
		}
		slotRefresh, lateRefresh := refresh, refresh
		slotRefresh.Observations, lateRefresh.Observations = nil, nil
		lateRefresh.Slot, lateRefresh.Complete = time.Time{}, false
		for _, observation := range refresh.Observations {
			oneSided := (observation.Buy == "") != (observation.Sell == "")
			switch {
			case oneSided && !refresh.Complete:
			case !published[observation.Currency]:
				slotRefresh.Observations = append(slotRefresh.Observations, observation)
			case isNew[quoteIDOf(&observation)]:
				lateRefresh.Observations = append(lateRefresh.Observations, observation)
			}
		}
		for _, part := range []engine.Refresh{slotRefresh, lateRefresh} {
			if len(part.Observations) > 0 {
				selected = append(selected, part)
			}
		}
	}
	return selected
}

// quoteID identifies a quote of any currency.
type quoteID struct {
	currency string
	key      engine.QuoteKey
}

func quoteIDOf(o *engine.Observation) quoteID { return quoteID{o.Currency, o.Key()} }

// withHistory returns results with the history of newResults, because earlier history of the slot has been published.
func withHistory(results, newResults []source.Result) []source.Result {
	all := slices.Clone(results)
	for i := range all {
		all[i].History = newResults[i].History
	}
	return all
}
