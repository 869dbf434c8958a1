package collectors

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Export returns the lines of an observation file. An import of the file into an empty node restores the newest
// accepted quote of each source (engine.SourceQuote), the history, and so the API responses.
//
// An import differs from the original in three ways. It lacks quarantined quotes that can't be confirmed. It computes
// expiries, and publication times of old quotes, again: a file has no columns for them. It checks all quotes, also
// those that an operator released from quarantine.
//
// A source quote becomes two lines: one at its last price change, one at its last confirmation. A history entry becomes
// one line, unless a line of the quote makes the entry. An import must give the engine the lines in the order of time,
// with one exception. Some history entries directly before a source quote have its prices, although other prices came
// between. No line has those other prices any more, so the import would let the quote begin with these entries. Their
// lines come at the end of the file, where an import only adds them to the history.
func Export(states []engine.SavedCurrency) []Observation {
	var lines, last []Observation
	for i := range states {
		state := &states[i]
		quotes, rows := map[sourceQuoteKey]*engine.SourceQuote{}, map[sourceQuoteKey][]Observation{}
		for j := range state.SourceQuotes {
			quote := &state.SourceQuotes[j]
			quotes[sourceQuoteKey{quote.SourceID, quote.Key}] = quote
			lines = append(lines, quoteLine(state.Currency, quote, quote.CollectedAt))
			if !quote.LastCheckedAt.Equal(quote.CollectedAt) {
				lines = append(lines, quoteLine(state.Currency, quote, quote.LastCheckedAt))
			}
		}
		for j := range state.Quarantine { // without these values, an import would quarantine the later, accepted ones
			if value := &state.Quarantine[j]; value.Reason == engine.Jump || value.Reason == engine.OffMarket {
				lines = append(lines, Observation{Observation: value.Observation, SourceID: value.SourceID, ObservedAt: value.ObservedAt.UTC()})
			}
		}
		for j := range state.History {
			entry := &state.History[j]
			key := sourceQuoteKey{entry.SourceID, engine.QuoteKey{Institution: entry.InstitutionID, Channel: entry.Channel, Kind: entry.Kind}}
			quote := quotes[key]
			if confirms(entry, quote) && (entry.ObservedAt.Equal(quote.CollectedAt) || entry.ObservedAt.Equal(quote.LastCheckedAt)) {
				continue // a line of the quote makes the entry
			}
			rows[key] = append(rows[key], historyLine(entry, quote))
		}
		for key, own := range rows {
			sortObservations(own)
			start, end := repeatsRange(own, quotes[key])
			lines = append(append(lines, own[:start]...), own[end:]...)
			last = append(last, own[start:end]...)
		}
	}
	sortObservations(lines)
	sortObservations(last)
	return append(lines, last...)
}

// repeatsRange finds the lines for the end of the export: those directly before quote.CollectedAt with the quote's
// prices. It returns a range of indexes in lines. The lines must be sorted by time.
func repeatsRange(lines []Observation, quote *engine.SourceQuote) (start, end int) {
	if quote == nil {
		return 0, 0
	}
	end, _ = slices.BinarySearchFunc(lines, quote.CollectedAt, func(o Observation, t time.Time) int { return o.ObservedAt.Compare(t) })
	isRepeat := func(o *Observation) bool {
		return samePrice(o.Buy, quote.Buy) && samePrice(o.Sell, quote.Sell) && o.EffectiveDate == quote.EffectiveDate
	}
	for start = end; start > 0 && isRepeat(&lines[start-1]); {
		start--
	}
	return start, end
}

func samePrice(text string, price engine.Decimal) bool {
	parsed, err := engine.ParseDecimal(text) // for "": null and an error
	return parsed.Equal(price) && (err == nil || text == "")
}

// sortObservations sorts by time, source and quote. A Reader turns consecutive observations of the same time and source
// into one refresh.
func sortObservations(observations []Observation) {
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

// sourceQuoteKey identifies a quote of one source.
type sourceQuoteKey struct {
	source string
	key    engine.QuoteKey
}

func quoteLine(currency string, quote *engine.SourceQuote, observedAt time.Time) Observation {
	return Observation{SourceID: quote.SourceID, ObservedAt: observedAt.UTC(), Observation: engine.Observation{
		InstitutionID: quote.Key.Institution, Currency: currency, Channel: quote.Key.Channel, Kind: quote.Key.Kind,
		Buy: quote.Buy.String(), Sell: quote.Sell.String(),
		EffectiveDate: quote.EffectiveDate, PublishedAt: quote.PublishedAt,
	}}
}

// historyLine returns the line of a history entry. quote is the source's current quote, or nil. An entry tells whether
// the source gave a time of publication, but not which: the line then has ObservedAt in its place.
func historyLine(row *engine.HistoryEntry, quote *engine.SourceQuote) Observation {
	line := Observation{SourceID: row.SourceID, ObservedAt: row.ObservedAt.UTC(), Observation: engine.Observation{
		InstitutionID: row.InstitutionID, Currency: row.Currency, Channel: row.Channel, Kind: row.Kind,
		Buy: row.Buy.String(), Sell: row.Sell.String(),
	}}
	if confirms(row, quote) {
		line.EffectiveDate, line.PublishedAt = quote.EffectiveDate, quote.PublishedAt
		return line
	}
	if row.DatePrecision == engine.PrecisionDay || row.Date != engine.DateOf(row.ObservedAt) {
		line.EffectiveDate = row.Date
	}
	if row.DatePrecision == engine.PrecisionDatetime {
		line.PublishedAt = line.ObservedAt
	}
	return line
}

// confirms reports whether the history entry is an observation of the quote: between CollectedAt and LastCheckedAt,
// with the same prices and date.
func confirms(row *engine.HistoryEntry, quote *engine.SourceQuote) bool {
	if quote == nil || row.ObservedAt.Before(quote.CollectedAt) || row.ObservedAt.After(quote.LastCheckedAt) {
		return false
	}
	date := quote.EffectiveDate
	if date.IsZero() {
		date = engine.DateOf(row.ObservedAt)
	}
	return date == row.Date && row.Buy.Equal(quote.Buy) && row.Sell.Equal(quote.Sell)
}
