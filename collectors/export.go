package collectors

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Export returns the observations from which an import into an empty node creates the same source quotes, history and
// responses: each source quote, each row of history, and the quarantined values that may still be confirmed. Other
// quarantined values are omitted. Expiry and the publication time of old values have no column and are computed again.
// Values that an operator released from quarantine are checked again.
//
// Each line has the time of its observation, and lines are in the order of time, so that the rules give the same
// results as for the originals. There are two exceptions:
//
//   - A source quote becomes two lines: when its value was new, and when it was last confirmed.
//   - Rows with the value of the source quote that are directly before that value was new come last. Another value was
//     between them and the quote, but it has no row any more. Read last, they add history and do not change the quote.
func Export(states []engine.SavedCurrency) []Observation {
	var all, late []Observation
	for i := range states {
		state := newCurrencyExport(&states[i])
		all = append(all, state.pendingConfirmation()...)
		rows, repeats := state.historyLines()
		all = append(all, rows...)
		late = append(late, repeats...)
		all = append(all, state.quoteLines...)
	}
	sortObservations(all)
	sortObservations(late)
	return append(all, late...)
}

// ExportSourceQuotes returns only the source quotes, current or last published.
func ExportSourceQuotes(states []engine.SavedCurrency) []Observation {
	var all []Observation
	for i := range states {
		all = append(all, newCurrencyExport(&states[i]).quoteLines...)
	}
	sortObservations(all)
	return all
}

// ExportHistory returns only the rows of history, one line each.
func ExportHistory(states []engine.SavedCurrency) []Observation {
	var all []Observation
	for i := range states {
		for j := range states[i].History {
			all = append(all, historyLine(&states[i].History[j], nil))
		}
	}
	sortObservations(all)
	return all
}

// sortObservations sorts by instant, source and quote, so that the lines of a file group into whole refreshes.
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

// sourceInstant identifies an observation of a quote. A file can have only one for each time.
type sourceInstant struct {
	sourceQuoteKey
	unixNano int64
}

// currencyExport is the export of one currency.
type currencyExport struct {
	state      *engine.SavedCurrency
	quotes     map[sourceQuoteKey]*engine.SourceQuote
	written    map[sourceInstant]bool
	quoteLines []Observation // of the source quotes
}

func newCurrencyExport(state *engine.SavedCurrency) *currencyExport {
	e := &currencyExport{state: state, quotes: map[sourceQuoteKey]*engine.SourceQuote{}, written: map[sourceInstant]bool{}}
	for i := range state.SourceQuotes {
		quote := &state.SourceQuotes[i]
		e.quotes[sourceQuoteKey{quote.SourceID, quote.Key}] = quote
		e.quoteLines = e.add(e.quoteLines, quoteLine(state.Currency, quote, quote.CollectedAt))
		e.quoteLines = e.add(e.quoteLines, quoteLine(state.Currency, quote, quote.LastCheckedAt))
	}
	return e
}

// add appends a line, unless a line with the same quote and time has been added.
func (e *currencyExport) add(lines []Observation, line Observation) []Observation {
	key := sourceInstantOf(&line)
	if e.written[key] {
		return lines
	}
	e.written[key] = true
	return append(lines, line)
}

func sourceInstantOf(o *Observation) sourceInstant {
	return sourceInstant{sourceQuoteKey{o.SourceID, o.Key()}, o.ObservedAt.UnixNano()}
}

// pendingConfirmation returns the quarantined values that a later observation may have confirmed. Without these lines
// the import would quarantine that observation.
func (e *currencyExport) pendingConfirmation() []Observation {
	var lines []Observation
	for i := range e.state.Quarantine {
		value := &e.state.Quarantine[i]
		if value.Reason == engine.Jump || value.Reason == engine.OffMarket {
			lines = e.add(lines, Observation{Observation: value.Observation, SourceID: value.SourceID, ObservedAt: value.ObservedAt.UTC()})
		}
	}
	return lines
}

// historyLines returns the lines of history that are in order of time, and those that must be read last.
func (e *currencyExport) historyLines() (inTime, late []Observation) {
	byQuote := map[sourceQuoteKey][]Observation{}
	for i := range e.state.History {
		row := &e.state.History[i]
		quote := engine.QuoteKey{Institution: row.InstitutionID, Channel: row.Channel, Kind: row.Kind}
		key := sourceQuoteKey{row.SourceID, quote}
		line := historyLine(row, e.quotes[key])
		if e.written[sourceInstantOf(&line)] && confirms(row, e.quotes[key]) {
			continue // importing the line of the source quote creates this row
		}
		for e.written[sourceInstantOf(&line)] { // the line of another day or of a quarantined value has the same time
			line.ObservedAt = line.ObservedAt.Add(-1)
		}
		byQuote[key] = e.add(byQuote[key], line)
	}
	for key, lines := range byQuote {
		sortObservations(lines)
		start, end := repeatsRange(lines, e.quotes[key])
		inTime = append(append(inTime, lines[:start]...), lines[end:]...)
		late = append(late, lines[start:end]...)
	}
	return inTime, late
}

// repeatsRange returns the range of lines directly before the value of the quote was new that have the same value.
func repeatsRange(lines []Observation, quote *engine.SourceQuote) (start, end int) {
	if quote == nil {
		return 0, 0
	}
	end, _ = slices.BinarySearchFunc(lines, quote.CollectedAt, func(o Observation, t time.Time) int { return o.ObservedAt.Compare(t) })
	for start = end; start > 0 && repeats(&lines[start-1], quote); {
		start--
	}
	return start, end
}

// repeats reports whether an import would treat a line as a confirmation of the quote.
func repeats(o *Observation, quote *engine.SourceQuote) bool {
	buy, buyErr := parseSide(o.Buy)
	sell, sellErr := parseSide(o.Sell)
	return buyErr == nil && sellErr == nil && buy.Equal(quote.Buy) && sell.Equal(quote.Sell) && o.EffectiveDate == quote.EffectiveDate
}

func parseSide(text string) (engine.Decimal, error) {
	if text == "" {
		return engine.Decimal{}, nil
	}
	return engine.ParseDecimal(text)
}

// quoteLine returns the line of a source quote at a time.
func quoteLine(currency string, quote *engine.SourceQuote, observedAt time.Time) Observation {
	return Observation{SourceID: quote.SourceID, ObservedAt: observedAt.UTC(), Observation: engine.Observation{
		InstitutionID: quote.Key.Institution, Currency: currency, Channel: quote.Key.Channel, Kind: quote.Key.Kind,
		Buy: quote.Buy.String(), Sell: quote.Sell.String(),
		EffectiveDate: quote.EffectiveDate, PublishedAt: quote.PublishedAt,
	}}
}

// historyLine returns the line that creates a row of history. A row does not have the time of publication, only whether
// the source gave one. If so, PublishedAt of the line is ObservedAt.
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

// confirms reports whether the row came from an observation that only confirmed the quote.
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
