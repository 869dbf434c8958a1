package collectors

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// FromState is everything that a file of observations can keep of a book: each offer and each row of history, but nothing
// twice, in the order of SortObservations. An import of it into an empty book gives the same history and the same offers;
// what it has no column for is made anew: expiry, the moment of the last change, and the precision of a publication time
// that is left only in the history. Quarantine is left out. What an operator released is judged again.
func FromState(state engine.BookState) []Observation {
	type statement struct {
		source string
		at     time.Time
		key    engine.QuoteKey
	}
	said := make(map[statement]bool, len(state.Offers))
	rows := make([]Observation, 0, len(state.Offers)+len(state.History))
	for _, offer := range state.Offers {
		row := FromOffer(state.Currency, offer)
		said[statement{row.SourceID, row.ObservedAt, row.Key()}] = true
		rows = append(rows, row)
	}
	for _, entry := range state.History {
		row := FromHistory(entry)
		if !said[statement{row.SourceID, row.ObservedAt, row.Key()}] {
			rows = append(rows, row)
		}
	}
	SortObservations(rows)
	return rows
}

// SortObservations orders by instant, source and quote: the order of a file whose lines group into whole refreshes.
func SortObservations(observations []Observation) {
	slices.SortStableFunc(observations, func(a, b Observation) int {
		return cmp.Or(
			a.ObservedAt.Compare(b.ObservedAt),
			cmp.Compare(a.SourceID, b.SourceID),
			cmp.Compare(a.InstitutionID, b.InstitutionID),
			cmp.Compare(a.Currency, b.Currency),
			cmp.Compare(a.Channel, b.Channel),
			cmp.Compare(a.Kind, b.Kind),
		)
	})
}

// FromOffer is the line that repeats an offer: observed when it was last checked. Its expiry has no column.
func FromOffer(currency string, o engine.Offer) Observation {
	return Observation{
		SourceID: o.SourceID, ObservedAt: o.LastCheckedAt.UTC(),
		Observation: engine.Observation{
			InstitutionID: o.Key.Institution, Currency: currency, Channel: o.Key.Channel, Kind: o.Key.Kind,
			Buy: o.Buy.String(), Sell: o.Sell.String(),
			EffectiveDate: o.EffectiveDate, PublishedAt: o.PublishedAt,
		},
	}
}

// FromHistory is the line that makes a row of history again: the same value on the same day. A row keeps the day of a
// publication time, not the time: after an import its precision is the day.
func FromHistory(e engine.HistoryEntry) Observation {
	observation := Observation{
		SourceID: e.SourceID, ObservedAt: e.ObservedAt.UTC(),
		Observation: engine.Observation{
			InstitutionID: e.InstitutionID, Currency: e.Currency, Channel: e.Channel, Kind: e.Kind,
			Buy: e.Buy.String(), Sell: e.Sell.String(),
		},
	}
	if e.DatePrecision != engine.PrecisionUnknown {
		observation.EffectiveDate = e.Date
	}
	return observation
}
