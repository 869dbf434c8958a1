package collectors

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Export returns everything that an observation file can hold of currency states: each source quote, each row of
// history, and the values that wait for confirmation. Importing it into an empty node gives the same quotes, history
// and answers. Expiry and the publication time of old values have no column and are computed again. The rest of the
// quarantine is left out, and released values are judged again.
//
// The rules judge the imported lines as they judged the originals, so each line has the instant of its observation,
// and lines are in the order of these instants, with two exceptions:
//
//   - A source quote becomes two lines: when its value was new, and when it was last confirmed.
//   - Rows with the value of the source quote from before that value was new come last. Between them and the quote
//     was another value of which no row is left. Read late, they fill the history and do not change the quote.
func Export(states []engine.SavedCurrency) []Observation {
	var all, late []Observation
	for i := range states {
		state := newCurrencyExport(&states[i])
		all = append(all, state.pendingConfirmation()...)
		rows, before := state.historyLines()
		all = append(all, rows...)
		late = append(late, before...)
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

// sourceInstant identifies an observation of a quote: a file can hold one for each instant (nanoseconds since 1970).
type sourceInstant struct {
	sourceQuoteKey
	at int64
}

// currencyExport is the export of one currency.
type currencyExport struct {
	state      *engine.SavedCurrency
	quotes     map[sourceQuoteKey]*engine.SourceQuote
	written    map[sourceInstant]bool
	quoteLines []Observation // of the source quotes
}

func newCurrencyExport(state *engine.SavedCurrency) *currencyExport {
	x := &currencyExport{state: state, quotes: map[sourceQuoteKey]*engine.SourceQuote{}, written: map[sourceInstant]bool{}}
	for i := range state.SourceQuotes {
		quote := &state.SourceQuotes[i]
		x.quotes[sourceQuoteKey{quote.SourceID, quote.Key}] = quote
		x.quoteLines = x.add(x.quoteLines, quoteLine(state.Currency, quote, quote.CollectedAt))
		x.quoteLines = x.add(x.quoteLines, quoteLine(state.Currency, quote, quote.LastCheckedAt))
	}
	return x
}

// add appends a line unless there is one of the same quote and instant.
func (x *currencyExport) add(lines []Observation, line Observation) []Observation {
	s := sourceInstantOf(&line)
	if x.written[s] {
		return lines
	}
	x.written[s] = true
	return append(lines, line)
}

func sourceInstantOf(o *Observation) sourceInstant {
	return sourceInstant{sourceQuoteKey{o.SourceID, o.Key()}, o.ObservedAt.UnixNano()}
}

// pendingConfirmation returns the quarantined values that a later observation may have confirmed. Without them the
// import would quarantine that observation.
func (x *currencyExport) pendingConfirmation() []Observation {
	var lines []Observation
	for i := range x.state.Quarantine {
		value := &x.state.Quarantine[i]
		if value.Reason == engine.Jump || value.Reason == engine.OffMarket {
			lines = x.add(lines, Observation{Observation: value.Observation, SourceID: value.SourceID, ObservedAt: value.ObservedAt.UTC()})
		}
	}
	return lines
}

// historyLines returns the lines of history: those in order of time, and those that must be read last.
func (x *currencyExport) historyLines() (inTime, late []Observation) {
	byQuote := map[sourceQuoteKey][]Observation{}
	for i := range x.state.History {
		row := &x.state.History[i]
		quote := engine.QuoteKey{Institution: row.InstitutionID, Channel: row.Channel, Kind: row.Kind}
		key := sourceQuoteKey{row.SourceID, quote}
		line := historyLine(row, x.quotes[key])
		if x.written[sourceInstantOf(&line)] && confirms(row, x.quotes[key]) {
			continue // the line of the source quote creates the row
		}
		for x.written[sourceInstantOf(&line)] { // two days at one instant, or a quarantined value
			line.ObservedAt = line.ObservedAt.Add(-1)
		}
		byQuote[key] = x.add(byQuote[key], line)
	}
	for key, lines := range byQuote {
		sortObservations(lines)
		from, to := repeatsBefore(lines, x.quotes[key])
		inTime = append(append(inTime, lines[:from]...), lines[to:]...)
		late = append(late, lines[from:to]...)
	}
	return inTime, late
}

// repeatsBefore finds the lines with the value of the quote directly before that value was new.
func repeatsBefore(lines []Observation, quote *engine.SourceQuote) (from, to int) {
	if quote == nil {
		return 0, 0
	}
	to, _ = slices.BinarySearchFunc(lines, quote.CollectedAt, func(o Observation, at time.Time) int { return o.ObservedAt.Compare(at) })
	for from = to; from > 0 && repeats(&lines[from-1], quote); {
		from--
	}
	return from, to
}

// repeats reports that a line would be taken for a check of the quote. The sides of both are in the form that
// decimals give.
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

// quoteLine returns the line that repeats a source quote at an instant.
func quoteLine(currency string, o *engine.SourceQuote, at time.Time) Observation {
	return Observation{SourceID: o.SourceID, ObservedAt: at.UTC(), Observation: engine.Observation{
		InstitutionID: o.Key.Institution, Currency: currency, Channel: o.Key.Channel, Kind: o.Key.Kind,
		Buy: o.Buy.String(), Sell: o.Sell.String(),
		EffectiveDate: o.EffectiveDate, PublishedAt: o.PublishedAt,
	}}
}

// historyLine returns the line that creates a row of history. A row knows only that its source gave a time of
// publication; the line then uses the instant of observation.
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
