package collectors

import (
	"maps"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// BuildRefreshes turns the results of a source's pages into refreshes. results[i] is the result of page i; the zero
// Result means an unread page.
//
// The first refreshes contain the past days, oldest first. Their ObservedAt is the end of the day in Santo Domingo, or
// now if the day has not ended. They have no slot and are not Complete.
//
// At most two current refreshes follow, with ObservedAt now and the given slot. The first is Complete: it contains the
// currencies for which all pages were read. The second contains the other currencies.
//
// BuildRefreshes joins the buy and sell sides of a quote from different pages. Observations without an expiry get one
// from the definition d.
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
	}{{source.JoinSides(complete), true}, {source.JoinSides(incomplete), false}} {
		if len(part.observations) > 0 {
			setExpiry(d, part.observations, now)
			refreshes = append(refreshes, engine.Refresh{
				SourceID: d.ID, ObservedAt: now, Observations: part.observations, Slot: slot, Complete: part.complete,
			})
		}
	}
	return refreshes
}

// historyRefreshes returns one refresh for each past day, with the observations of all pages.
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

// setExpiry sets missing expiries from the definition's lifetime of a quote.
func setExpiry(d *source.Definition, observations []engine.Observation, checkedAt time.Time) {
	for i := range observations {
		if o := &observations[i]; o.ExpiresAt.IsZero() {
			o.ExpiresAt = d.ExpiresAt(checkedAt, o.EffectiveDate)
		}
	}
}

// isCurrencyComplete reports whether every page that may contain the currency was read.
func isCurrencyComplete(d *source.Definition, results []source.Result, currency string) bool {
	if len(results) != len(d.Pages) {
		return false
	}
	for i := range d.Pages {
		page, missing := &d.Pages[i], len(results[i].Observations) == 0 && len(results[i].History) == 0
		if page.InsteadOf != "" {
			continue // its quotes are in the other page's result
		}
		hasCurrency := func(t source.Target) bool { return t.Currency == currency }
		if missing && (page.Currency == currency || slices.ContainsFunc(d.Targets(page), hasCurrency)) {
			return false
		}
	}
	return true
}

// trimHistory removes past days older than days before now. If days is 0, it keeps all.
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

// publishable removes quotes that must not be published: one-sided quotes of a currency with unread pages. Such a quote
// would replace the source's quote with both sides, although the other side may be on an unread page.
func publishable(refreshes []engine.Refresh) []engine.Refresh {
	isHalf := func(o engine.Observation) bool { return (o.Buy == "") != (o.Sell == "") }
	for i := range refreshes {
		if refresh := &refreshes[i]; !refresh.Slot.IsZero() && !refresh.Complete {
			refresh.Observations = slices.DeleteFunc(refresh.Observations, isHalf)
		}
	}
	return slices.DeleteFunc(refreshes, func(refresh engine.Refresh) bool { return len(refresh.Observations) == 0 })
}

// quoteID identifies a quote of any currency.
type quoteID struct {
	currency string
	key      engine.QuoteKey
}

func quoteIDOf(o *engine.Observation) quoteID { return quoteID{o.Currency, o.Key()} }
