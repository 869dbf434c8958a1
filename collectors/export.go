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
func Export(states []engine.BookState) []Observation {
	var all, late []Observation
	for i := range states {
		book := newExported(&states[i])
		all = append(all, book.doubtful()...)
		rows, before := book.rows()
		all = append(all, rows...)
		late = append(late, before...)
		all = append(all, book.lines...)
	}
	SortObservations(all)
	SortObservations(late)
	return append(all, late...)
}

// ExportOffers is the part of Export that is published now or was last.
func ExportOffers(states []engine.BookState) []Observation {
	var all []Observation
	for i := range states {
		all = append(all, newExported(&states[i]).lines...)
	}
	SortObservations(all)
	return all
}

// ExportHistory is the rows of history alone, one line each.
func ExportHistory(states []engine.BookState) []Observation {
	var all []Observation
	for i := range states {
		for j := range states[i].History {
			all = append(all, fromRow(&states[i].History[j], nil))
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

// voice is one source on one quote.
type voice struct {
	source string
	key    engine.QuoteKey
}

// statement is what a voice said at an instant, in nanoseconds since 1970. A file can hold one.
type statement struct {
	voice
	at int64
}

// exported is a book on its way into a file.
type exported struct {
	book   *engine.BookState
	offers map[voice]*engine.Offer
	said   map[statement]bool
	lines  []Observation // of the offers
}

func newExported(book *engine.BookState) *exported {
	x := &exported{book: book, offers: map[voice]*engine.Offer{}, said: map[statement]bool{}}
	for i := range book.Offers {
		offer := &book.Offers[i]
		x.offers[voice{offer.SourceID, offer.Key}] = offer
		x.lines = x.add(x.lines, fromOffer(book.Currency, offer, offer.CollectedAt))
		x.lines = x.add(x.lines, fromOffer(book.Currency, offer, offer.LastCheckedAt))
	}
	return x
}

// add appends a line unless its voice has spoken at its instant already.
func (x *exported) add(lines []Observation, line Observation) []Observation {
	s := statementOf(&line)
	if x.said[s] {
		return lines
	}
	x.said[s] = true
	return append(lines, line)
}

func statementOf(o *Observation) statement {
	return statement{voice{o.SourceID, o.Key()}, o.ObservedAt.UnixNano()}
}

// doubtful are the values that were held back and that a later answer may have confirmed: without them the import would
// hold back the answer that was believed.
func (x *exported) doubtful() []Observation {
	var lines []Observation
	for i := range x.book.Held {
		held := &x.book.Held[i]
		if held.Reason == engine.Jump || held.Reason == engine.OffMarket {
			lines = x.add(lines, Observation{Observation: held.Observation, SourceID: held.SourceID, ObservedAt: held.ObservedAt.UTC()})
		}
	}
	return lines
}

// rows are the lines of history: those for their place in time, and those that must be read last.
func (x *exported) rows() (inTime, late []Observation) {
	byVoice := map[voice][]Observation{}
	for i := range x.book.History {
		row := &x.book.History[i]
		key := engine.QuoteKey{Institution: row.InstitutionID, Channel: row.Channel, Kind: row.Kind}
		v := voice{row.SourceID, key}
		line := fromRow(row, x.offers[v])
		if x.said[statementOf(&line)] && confirms(row, x.offers[v]) {
			continue // the line of the offer makes the row
		}
		for x.said[statementOf(&line)] { // of two days at one instant, or held at it
			line.ObservedAt = line.ObservedAt.Add(-1)
		}
		byVoice[v] = x.add(byVoice[v], line)
	}
	for v, lines := range byVoice {
		SortObservations(lines)
		from, to := sameBefore(lines, x.offers[v])
		inTime = append(append(inTime, lines[:from]...), lines[to:]...)
		late = append(late, lines[from:to]...)
	}
	return inTime, late
}

// sameBefore finds the lines that say what the offer says and stand directly before the moment at which that was new.
func sameBefore(lines []Observation, offer *engine.Offer) (from, to int) {
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
func repeats(o *Observation, offer *engine.Offer) bool {
	buy, buyErr := sideOf(o.Buy)
	sell, sellErr := sideOf(o.Sell)
	return buyErr == nil && sellErr == nil && buy.Equal(offer.Buy) && sell.Equal(offer.Sell) && o.EffectiveDate == offer.EffectiveDate
}

func sideOf(text string) (engine.Decimal, error) {
	if text == "" {
		return engine.Decimal{}, nil
	}
	return engine.ParseDecimal(text)
}

// fromOffer is the line that repeats an offer at an instant. Its expiry has no column.
func fromOffer(currency string, o *engine.Offer, at time.Time) Observation {
	return Observation{SourceID: o.SourceID, ObservedAt: at.UTC(), Observation: engine.Observation{
		InstitutionID: o.Key.Institution, Currency: currency, Channel: o.Key.Channel, Kind: o.Key.Kind,
		Buy: o.Buy.String(), Sell: o.Sell.String(),
		EffectiveDate: o.EffectiveDate, PublishedAt: o.PublishedAt,
	}}
}

// fromRow is the line that makes a row of history again. The row does not keep when its source published it, only that it
// said so: then the line says that it was published when it was observed.
func fromRow(row *engine.HistoryEntry, offer *engine.Offer) Observation {
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
func confirms(row *engine.HistoryEntry, offer *engine.Offer) bool {
	if offer == nil || row.ObservedAt.Before(offer.CollectedAt) || row.ObservedAt.After(offer.LastCheckedAt) {
		return false
	}
	date := offer.EffectiveDate
	if date.IsZero() {
		date = engine.DateOf(row.ObservedAt)
	}
	return date == row.Date && row.Buy.Equal(offer.Buy) && row.Sell.Equal(offer.Sell)
}
