package collectors

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Export returns the lines of an observation file. After an import of the file into an empty node, source quotes (the
// newest accepted quote of each source), history and API responses are the same.
//
// An import differs from the original in three ways. Export omits quarantined quotes that can't be confirmed. The
// import computes expiries and the publication times of old quotes again, because a file has no columns for them. The
// import checks all quotes, including quotes once released from quarantine.
//
// Each source quote becomes two lines: one at the time of its last price change, one at its last confirmation. Lines
// are ordered by time, so that the engine's rules give the same results. There is one exception: days of history
// directly before a source quote, with the same prices. Between them there were other prices that no line contains any
// more. In the order of time these days would become the start of the quote. They therefore come at the end, where an
// import only adds them to the history.
func Export(states []engine.SavedCurrency) []Observation {
	var inTime, late []Observation
	for i := range states {
		state := &states[i]
		quotes, rows := map[sourceQuoteKey]*engine.SourceQuote{}, map[sourceQuoteKey][]Observation{}
		for j := range state.SourceQuotes {
			quote := &state.SourceQuotes[j]
			quotes[sourceQuoteKey{quote.SourceID, quote.Key}] = quote
			inTime = append(inTime, quoteLine(state.Currency, quote, quote.CollectedAt))
			if !quote.LastCheckedAt.Equal(quote.CollectedAt) {
				inTime = append(inTime, quoteLine(state.Currency, quote, quote.LastCheckedAt))
			}
		}
		for j := range state.Quarantine { // without these values, an import would quarantine those that confirmed them
			if value := &state.Quarantine[j]; value.Reason == engine.Jump || value.Reason == engine.OffMarket {
				inTime = append(inTime, Observation{Observation: value.Observation, SourceID: value.SourceID, ObservedAt: value.ObservedAt.UTC()})
			}
		}
		for j := range state.History {
			row := &state.History[j]
			key := sourceQuoteKey{row.SourceID, engine.QuoteKey{Institution: row.InstitutionID, Channel: row.Channel, Kind: row.Kind}}
			if quote := quotes[key]; !confirms(row, quote) || !row.ObservedAt.Equal(quote.CollectedAt) && !row.ObservedAt.Equal(quote.LastCheckedAt) {
				rows[key] = append(rows[key], historyLine(row, quote)) // else a line of the quote makes the entry
			}
		}
		for key, lines := range rows {
			sortObservations(lines)
			start, end := repeatsRange(lines, quotes[key])
			inTime = append(append(inTime, lines[:start]...), lines[end:]...)
			late = append(late, lines[start:end]...)
		}
	}
	sortObservations(inTime)
	sortObservations(late)
	return append(inTime, late...)
}

// repeatsRange finds the lines for the end of the export: those directly before quote.CollectedAt with the quote's
// prices. The result is a range of indexes in lines, which must be sorted.
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
	parsed, err := engine.ParseDecimal(text) // of "" it is an error, and null
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

// historyLine returns the line from which an import creates a history entry. quote is the source's current quote, or
// nil. A history entry tells only whether the source gave a time of publication, not which. If so, the line has
// ObservedAt as the time of publication.
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

// confirms reports whether the entry's observation confirmed the quote, with the same prices.
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
