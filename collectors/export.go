package collectors

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Export is everything that a file of observations can keep of books: each offer, each row of history, and the values that
// were held as implausible. An import of it into empty books gives the same offers and the same history, so the same
// answers. What the file has no column for is made anew: expiry, and the hour of publication of what is no longer current.
// The rest of the quarantine is left out; what an operator released is judged again.
//
// The rules judge the lines of an import as they judged the originals, so each line stands at the instant of the
// observation that it came from, and in the order of these instants, but for two cases.
//
//   - An offer becomes two lines: when its value was new, and when it was last confirmed.
//   - Rows that say what the offer says, but from before its value was new, come last: between them and the offer was
//     another value, of which no row is left. Read late they fill history and leave the offer alone (X4).
func Export(states []engine.SavedCurrency) []Observation {
	var all, late []Observation
	for i := range states {
		book := newCurrencyExport(&states[i])
		all = append(all, book.pendingConfirmation()...)
		rows, before := book.historyLines()
		all = append(all, rows...)
		late = append(late, before...)
		all = append(all, book.offerLines...)
	}
	SortObservations(all)
	SortObservations(late)
	return append(all, late...)
}

// ExportOffers is the part of Export that is published now or was last.
func ExportOffers(states []engine.SavedCurrency) []Observation {
	var all []Observation
	for i := range states {
		all = append(all, newCurrencyExport(&states[i]).offerLines...)
	}
	SortObservations(all)
	return all
}

// ExportHistory is the rows of history alone, one line each.
func ExportHistory(states []engine.SavedCurrency) []Observation {
	var all []Observation
	for i := range states {
		for j := range states[i].History {
			all = append(all, historyLine(&states[i].History[j], nil))
		}
	}
	SortObservations(all)
	return all
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

// sourceQuoteKey is one source on one quote.
type sourceQuoteKey struct {
	source string
	key    engine.QuoteKey
}

// sourceInstant is what a voice said at an instant, in nanoseconds since 1970. A file can hold one.
type sourceInstant struct {
	sourceQuoteKey
	at int64
}

// currencyExport is a book on its way into a file.
type currencyExport struct {
	book       *engine.SavedCurrency
	offers     map[sourceQuoteKey]*engine.SourceQuote
	written    map[sourceInstant]bool
	offerLines []Observation // of the offers
}

func newCurrencyExport(book *engine.SavedCurrency) *currencyExport {
	x := &currencyExport{book: book, offers: map[sourceQuoteKey]*engine.SourceQuote{}, written: map[sourceInstant]bool{}}
	for i := range book.SourceQuotes {
		offer := &book.SourceQuotes[i]
		x.offers[sourceQuoteKey{offer.SourceID, offer.Key}] = offer
		x.offerLines = x.add(x.offerLines, offerLine(book.Currency, offer, offer.CollectedAt))
		x.offerLines = x.add(x.offerLines, offerLine(book.Currency, offer, offer.LastCheckedAt))
	}
	return x
}

// add appends a line unless its voice has spoken at its instant already.
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

// pendingConfirmation are the values that were held back and that a later answer may have confirmed: without them the import would
// hold back the answer that was believed.
func (x *currencyExport) pendingConfirmation() []Observation {
	var lines []Observation
	for i := range x.book.Quarantine {
		held := &x.book.Quarantine[i]
		if held.Reason == engine.Jump || held.Reason == engine.OffMarket {
			lines = x.add(lines, Observation{Observation: held.Observation, SourceID: held.SourceID, ObservedAt: held.ObservedAt.UTC()})
		}
	}
	return lines
}

// historyLines are the lines of history: those for their place in time, and those that must be read last.
func (x *currencyExport) historyLines() (inTime, late []Observation) {
	byVoice := map[sourceQuoteKey][]Observation{}
	for i := range x.book.History {
		row := &x.book.History[i]
		key := engine.QuoteKey{Institution: row.InstitutionID, Channel: row.Channel, Kind: row.Kind}
		v := sourceQuoteKey{row.SourceID, key}
		line := historyLine(row, x.offers[v])
		if x.written[sourceInstantOf(&line)] && confirms(row, x.offers[v]) {
			continue // the line of the offer makes the row
		}
		for x.written[sourceInstantOf(&line)] { // of two days at one instant, or held at it
			line.ObservedAt = line.ObservedAt.Add(-1)
		}
		byVoice[v] = x.add(byVoice[v], line)
	}
	for v, lines := range byVoice {
		SortObservations(lines)
		from, to := repeatsBefore(lines, x.offers[v])
		inTime = append(append(inTime, lines[:from]...), lines[to:]...)
		late = append(late, lines[from:to]...)
	}
	return inTime, late
}

// repeatsBefore finds the lines that say what the offer says and stand directly before the moment at which that was new.
func repeatsBefore(lines []Observation, offer *engine.SourceQuote) (from, to int) {
	if offer == nil {
		return 0, 0
	}
	to, _ = slices.BinarySearchFunc(lines, offer.CollectedAt, func(o Observation, at time.Time) int { return o.ObservedAt.Compare(at) })
	for from = to; from > 0 && repeats(&lines[from-1], offer); {
		from--
	}
	return from, to
}

// repeats reports that a line would be taken for a check of the offer. The sides of both are in the form that decimals give.
func repeats(o *Observation, offer *engine.SourceQuote) bool {
	buy, buyErr := parseSide(o.Buy)
	sell, sellErr := parseSide(o.Sell)
	return buyErr == nil && sellErr == nil && buy.Equal(offer.Buy) && sell.Equal(offer.Sell) && o.EffectiveDate == offer.EffectiveDate
}

func parseSide(text string) (engine.Decimal, error) {
	if text == "" {
		return engine.Decimal{}, nil
	}
	return engine.ParseDecimal(text)
}

// offerLine is the line that repeats an offer at an instant. Its expiry has no column.
func offerLine(currency string, o *engine.SourceQuote, at time.Time) Observation {
	return Observation{SourceID: o.SourceID, ObservedAt: at.UTC(), Observation: engine.Observation{
		InstitutionID: o.Key.Institution, Currency: currency, Channel: o.Key.Channel, Kind: o.Key.Kind,
		Buy: o.Buy.String(), Sell: o.Sell.String(),
		EffectiveDate: o.EffectiveDate, PublishedAt: o.PublishedAt,
	}}
}

// historyLine is the line that makes a row of history again. The row does not keep when its source published it, only that it
// said so: then the line says that it was published when it was observed.
func historyLine(row *engine.HistoryEntry, offer *engine.SourceQuote) Observation {
	line := Observation{SourceID: row.SourceID, ObservedAt: row.ObservedAt.UTC(), Observation: engine.Observation{
		InstitutionID: row.InstitutionID, Currency: row.Currency, Channel: row.Channel, Kind: row.Kind,
		Buy: row.Buy.String(), Sell: row.Sell.String(),
	}}
	if confirms(row, offer) {
		line.EffectiveDate, line.PublishedAt = offer.EffectiveDate, offer.PublishedAt
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

// confirms reports that the row came from an observation that only confirmed the offer.
func confirms(row *engine.HistoryEntry, offer *engine.SourceQuote) bool {
	if offer == nil || row.ObservedAt.Before(offer.CollectedAt) || row.ObservedAt.After(offer.LastCheckedAt) {
		return false
	}
	date := offer.EffectiveDate
	if date.IsZero() {
		date = engine.DateOf(row.ObservedAt)
	}
	return date == row.Date && row.Buy.Equal(offer.Buy) && row.Sell.Equal(offer.Sell)
}
