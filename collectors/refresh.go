package collectors

import (
	"maps"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// BuildRefreshes is what the answers of a source's pages become for the engine: first the days of the past, oldest first, each
// observed at the end of its day in Santo Domingo but never after at; then what is said now, observed at at, for the slot.
//
// answers[i] is what page i of the definition said; the zero Answer stands for a page that gave none. What is said now is
// Complete in each currency of which every page that may speak has answered: only there something missing is a loss (I3). So
// there may be two refreshes of now, which share no currency. Sides that stand on two pages are joined. History answers no slot
// and is never complete: a day that a workbook lacks is no loss. Every observation expires when the source says so, else by the
// definition (T3).
//
// It is pure, and leaves the answers as they are.
func BuildRefreshes(d *source.Definition, answers []source.Result, at, slot time.Time) []engine.Refresh {
	refreshes := historyRefreshes(d, answers, at)
	var whole, part []engine.Observation
	for i := range answers {
		for _, observation := range answers[i].Observations {
			if isCurrencyComplete(d, answers, observation.Currency) {
				whole = append(whole, observation)
			} else {
				part = append(part, observation)
			}
		}
	}
	for _, said := range []struct {
		observations []engine.Observation
		complete     bool
	}{{joinSides(whole), true}, {joinSides(part), false}} {
		if len(said.observations) > 0 {
			setExpiry(d, said.observations, at)
			refreshes = append(refreshes, engine.Refresh{
				SourceID: d.ID, ObservedAt: at, Observations: said.observations, Slot: slot, Complete: said.complete,
			})
		}
	}
	return refreshes
}

// historyRefreshes gathers the history of all pages by day.
func historyRefreshes(d *source.Definition, answers []source.Result, at time.Time) []engine.Refresh {
	days := map[engine.Date][]engine.Observation{}
	for i := range answers {
		for _, day := range answers[i].History {
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

// endOfDay is the last second of a day in Santo Domingo (T2).
func endOfDay(date engine.Date) time.Time { return date.AddDays(1).Start().Add(-time.Second).UTC() }

// setExpiry says how long each observation is believed, unless its source did (T3).
func setExpiry(d *source.Definition, observations []engine.Observation, checked time.Time) {
	for i := range observations {
		if o := &observations[i]; o.ExpiresAt.IsZero() {
			o.ExpiresAt = d.ExpiresAt(checked, o.EffectiveDate)
		}
	}
}

// isCurrencyComplete reports that every page that may speak of the currency has answered. Answers that do not fit the pages one by one
// prove nothing.
func isCurrencyComplete(d *source.Definition, answers []source.Result, currency string) bool {
	if len(answers) != len(d.Pages) {
		return false
	}
	for i := range d.Pages {
		page, silent := &d.Pages[i], len(answers[i].Observations) == 0 && len(answers[i].History) == 0
		speaks := func(t source.Target) bool { return t.Currency == currency }
		if silent && (page.Currency == currency || slices.ContainsFunc(d.Targets(page), speaks)) {
			return false
		}
	}
	return true
}

// trimHistory leaves out the days of the past that are more than days before the day of at; 0 leaves out none.
func trimHistory(answers []source.Result, days int, at time.Time) []source.Result {
	if days == 0 {
		return answers
	}
	oldest := engine.DateOf(at).AddDays(-days)
	cut := slices.Clone(answers)
	for i := range cut {
		cut[i].History = slices.DeleteFunc(slices.Clone(cut[i].History), func(day source.HistoryDay) bool { return day.Date < oldest })
	}
	return cut
}

// selectUnpublished is what one try of a slot hands over, of all that its pages have said so far. late are the pages that answered only now.
//
// A value that lacks a side is left out while a page that may have the other one is silent: it would take away a side that is
// good still (I4). What is said in a currency that the slot had already goes along without the slot, for which the engine hears
// a source and currency once; and only if a late page says it, for the rest is there.
func selectUnpublished(refreshes []engine.Refresh, heard map[string]bool, late []source.Result) []engine.Refresh {
	said := map[quoteID]bool{}
	for i := range late {
		for j := range late[i].Observations {
			said[quoteIDOf(&late[i].Observations[j])] = true
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
			case !heard[observation.Currency]:
				inSlot.Observations = append(inSlot.Observations, observation)
			case said[quoteIDOf(&observation)]:
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

// quoteID names a quote among those of all currencies.
type quoteID struct {
	currency string
	key      engine.QuoteKey
}

func quoteIDOf(o *engine.Observation) quoteID { return quoteID{o.Currency, o.Key()} }

// withHistory are all answers so far, of which only the late ones bring their days of the past along: the others were handed over.
func withHistory(answers, late []source.Result) []source.Result {
	all := slices.Clone(answers)
	for i := range all {
		all[i].History = late[i].History
	}
	return all
}
