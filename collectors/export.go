package collectors

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Export returns the lines of an observation file, each with a quote of one source at one time. From these observations
// an import into an empty node creates the same source quotes, the same history and the same API responses. A source
// quote is the newest accepted quote of one source. Export includes each source quote, each history entry, and the
// quarantined quotes (held back because they looked implausible) that a later observation may confirm.
//
// An import differs from the original in three ways. Quarantined quotes that can't be confirmed are omitted. The import
// computes expiries and the publication times of old quotes again, because a file has no columns for them. The import
// checks all quotes, also those that an operator had released from quarantine.
//
// Observations are in the order of their times, so that the rules of the engine give the same results as originally.
// There are two exceptions:
//
//   - A source quote becomes two observations: one at the time when its prices were new, one at its last confirmation.
//   - History entries directly before a source quote may have the same prices as the quote. Originally, other prices
//     came between them, but those have no entry any more. So an import in the order of time would take the quote for
//     a confirmation of the entries. Therefore these entries are at the end, where an import only adds them to the
//     history.
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

// ExportSourceQuotes returns only the source quotes: current and expired ones.
func ExportSourceQuotes(states []engine.SavedCurrency) []Observation {
	var all []Observation
	for i := range states {
		all = append(all, newCurrencyExport(&states[i]).quoteLines...)
	}
	sortObservations(all)
	return all
}

// ExportHistory returns one observation for each history entry.
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

// sourceInstant identifies a quote of one source at one time. The export has at most one line for it.
type sourceInstant struct {
	sourceQuoteKey
	unixNano int64
}

// currencyExport collects the lines of one currency.
type currencyExport struct {
	state      *engine.SavedCurrency
	quotes     map[sourceQuoteKey]*engine.SourceQuote
	written    map[sourceInstant]bool // quotes and times for which add has added a line
	quoteLines []Observation          // lines of the source quotes
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

// add appends a line to lines, unless it has added a line with the same quote and time before.
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

// pendingConfirmation returns lines for the quarantined quotes that a later observation may confirm or has confirmed.
// Without these lines, an import would quarantine the later observation.
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

// historyLines returns the lines of the history entries: those in the order of time, and those that must come at the
// end (see Export).
func (e *currencyExport) historyLines() (inTime, late []Observation) {
	byQuote := map[sourceQuoteKey][]Observation{}
	for i := range e.state.History {
		row := &e.state.History[i]
		quote := engine.QuoteKey{Institution: row.InstitutionID, Channel: row.Channel, Kind: row.Kind}
		key := sourceQuoteKey{row.SourceID, quote}
		line := historyLine(row, e.quotes[key])
		if e.written[sourceInstantOf(&line)] && confirms(row, e.quotes[key]) {
			continue // an import creates this entry from the line of the source quote
		}
		for e.written[sourceInstantOf(&line)] { // the line of another day or of a quarantined quote has the same time
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

// repeatsRange finds the lines that must come at the end of the export. They have the prices of the quote, and come
// directly before quote.CollectedAt, the time when these prices were new. The result is a range of indexes in lines,
// which must be sorted.
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

// repeats reports whether an import would treat a line as a confirmation of the quote, because prices and date are the
// same.
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

func quoteLine(currency string, quote *engine.SourceQuote, observedAt time.Time) Observation {
	return Observation{SourceID: quote.SourceID, ObservedAt: observedAt.UTC(), Observation: engine.Observation{
		InstitutionID: quote.Key.Institution, Currency: currency, Channel: quote.Key.Channel, Kind: quote.Key.Kind,
		Buy: quote.Buy.String(), Sell: quote.Sell.String(),
		EffectiveDate: quote.EffectiveDate, PublishedAt: quote.PublishedAt,
	}}
}

// historyLine returns the line from which an import creates a history entry. quote is the current quote of the source,
// or nil. A history entry says whether the source gave a time of publication, but not which. If the source gave one,
// the line has ObservedAt as the time of publication.
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

// confirms reports whether the entry comes from an observation that confirmed the quote, which means that it had the
// same prices.
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
