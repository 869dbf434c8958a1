package collectors

import (
	"maps"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// BuildRefreshes turns the results of a source's pages into refreshes for the engine: first the past days, oldest
// first, each observed at the end of its day in Santo Domingo but not after at; then the current observations,
// observed at at, for the slot.
//
// results[i] is the result of page i; the zero Result means that the page was not read. Current observations are
// Complete in each currency whose pages have all been read: only there does the engine treat a missing quote as lost.
// So there may be two current refreshes, without a common currency. Sides on different pages are joined. History has
// no slot and is never complete. An observation expires when its source says so, otherwise by the definition.
//
// BuildRefreshes does not change its arguments.
func BuildRefreshes(d *source.Definition, results []source.Result, at, slot time.Time) []engine.Refresh {
	refreshes := historyRefreshes(d, results, at)
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
			setExpiry(d, part.observations, at)
			refreshes = append(refreshes, engine.Refresh{
				SourceID: d.ID, ObservedAt: at, Observations: part.observations, Slot: slot, Complete: part.complete,
			})
		}
	}
	return refreshes
}

// historyRefreshes collects the history of all pages by day.
func historyRefreshes(d *source.Definition, results []source.Result, at time.Time) []engine.Refresh {
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
		observed := endOfDay(date)
		if observed.After(at) {
			observed = at
		}
		setExpiry(d, observations, observed)
		refreshes = append(refreshes, engine.Refresh{SourceID: d.ID, ObservedAt: observed, Observations: observations})
	}
	return refreshes
}

// endOfDay is the last second of a day in Santo Domingo.
func endOfDay(date engine.Date) time.Time { return date.AddDays(1).Start().Add(-time.Second).UTC() }

// setExpiry sets the expiry of observations without one, by the definition.
func setExpiry(d *source.Definition, observations []engine.Observation, checked time.Time) {
	for i := range observations {
		if o := &observations[i]; o.ExpiresAt.IsZero() {
			o.ExpiresAt = d.ExpiresAt(checked, o.EffectiveDate)
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
		names := func(t source.Target) bool { return t.Currency == currency }
		if missing && (page.Currency == currency || slices.ContainsFunc(d.Targets(page), names)) {
			return false
		}
	}
	return true
}

// trimHistory drops the days more than days before the day of at; 0 keeps all.
func trimHistory(results []source.Result, days int, at time.Time) []source.Result {
	if days == 0 {
		return results
	}
	oldest := engine.DateOf(at).AddDays(-days)
	trimmed := slices.Clone(results)
	for i := range trimmed {
		trimmed[i].History = slices.DeleteFunc(slices.Clone(trimmed[i].History), func(day source.HistoryDay) bool { return day.Date < oldest })
	}
	return trimmed
}

// selectUnpublished selects what one try of a slot publishes, of everything read in the slot so far. late are the
// results of this try.
//
// A quote with one side is skipped while a page that may have the other side is missing: it would remove a side that
// is still valid. The engine accepts a source and currency once for a slot, so quotes of a currency that was
// published for the slot are published without it, and only those that this try has read.
func selectUnpublished(refreshes []engine.Refresh, published map[string]bool, late []source.Result) []engine.Refresh {
	inLate := map[quoteID]bool{}
	for i := range late {
		for j := range late[i].Observations {
			inLate[quoteIDOf(&late[i].Observations[j])] = true
		}
	}
	var out []engine.Refresh
	for _, refresh := range refreshes {
		if refresh.Slot.IsZero() {
			out = append(out, refresh)
			continue
		}
		inSlot, after := refresh, refresh
		inSlot.Observations, after.Observations = nil, nil
		after.Slot, after.Complete = time.Time{}, false
		for _, observation := range refresh.Observations {
			half := (observation.Buy == "") != (observation.Sell == "")
			switch {
			case half && !refresh.Complete:
			case !published[observation.Currency]:
				inSlot.Observations = append(inSlot.Observations, observation)
			case inLate[quoteIDOf(&observation)]:
				after.Observations = append(after.Observations, observation)
			}
		}
		for _, part := range []engine.Refresh{inSlot, after} {
			if len(part.Observations) > 0 {
				out = append(out, part)
			}
		}
	}
	return out
}

// quoteID identifies a quote of any currency.
type quoteID struct {
	currency string
	key      engine.QuoteKey
}

func quoteIDOf(o *engine.Observation) quoteID { return quoteID{o.Currency, o.Key()} }

// withHistory returns all results with only the late history: the other history has been published.
func withHistory(results, late []source.Result) []source.Result {
	all := slices.Clone(results)
	for i := range all {
		all[i].History = late[i].History
	}
	return all
}
