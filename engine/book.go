package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// DefaultRules are limits that hold back every error of the four years of real observations and next to no good value.
func DefaultRules() Rules {
	return Rules{
		JumpPermille: 50, MedianPermille: 100, MedianQuotes: 5,
		MemorySpan: 7 * 24 * time.Hour, AheadDays: 7, HistoryDays: 5 * 366,
	}
}

// Book is the mutable state of one currency: offers, history, quarantine. It has one owner, which is the only caller of its
// methods; what it hands out (Decision, Board, BookState) is immutable and may be read by anyone.
type Book struct {
	currency  string
	catalogue *Catalogue
	rules     Rules
	state     *state
	board     *Board
	days      []*day // of the last board, by date
}

// NewBook is a book without facts.
func NewBook(currency string, catalogue *Catalogue, rules Rules) *Book {
	rules.HistoryDays = max(rules.HistoryDays, HistoryDaysMin)
	// Days ahead are counted on top: the newest day may be one of them.
	return &Book{currency: currency, catalogue: catalogue, rules: rules, state: newState(rules.HistoryDays + rules.AheadDays)}
}

// Restore is the book that a snapshot describes.
func Restore(from BookState, catalogue *Catalogue, rules Rules) *Book {
	book := NewBook(from.Currency, catalogue, rules)
	for _, offer := range from.Offers {
		book.state.quotes[offer.Key] = book.state.quote(offer.Key).withOffer(offer)
	}
	for _, row := range from.History {
		book.state.setRow(row)
		book.state.newest = max(book.state.newest, row.Date)
	}
	for _, suspect := range from.Suspects {
		book.state.quotes[suspect.Key] = book.state.quote(suspect.Key).withSuspect(suspect)
	}
	for _, held := range from.Held {
		book.state.held = append(book.state.held, held)
		book.state.seen[held.key()] = held.ID
	}
	book.state.slots = from.Slots
	book.state.lastHeldID = from.LastHeldID
	return book
}

// Apply makes a durable event true. It depends on nothing but the event and the state.
func (b *Book) Apply(event Event) {
	b.state.apply(event)
	b.board = nil
}

// State is the book as a snapshot keeps it.
func (b *Book) State() BookState { return b.Board().State() }

// Board is the immutable state of the book; the same one until an event is applied.
func (b *Book) Board() *Board {
	if b.board != nil {
		return b.board
	}
	b.freezeDays()
	held := b.state.held
	b.board = &Board{
		currency: b.currency, catalogue: b.catalogue, quotes: sortedQuotes(b.state.quotes), days: b.days,
		held:  held[:len(held):len(held)], // later ones are appended behind it
		slots: b.state.slots, lastHeldID: b.state.lastHeldID,
	}
	return b.board
}

func sortedQuotes(quotes map[QuoteKey]*quote) []*quote {
	return slices.SortedFunc(maps.Values(quotes), func(a, b *quote) int { return a.key.Compare(b.key) })
}

// freezeDays builds anew only the days that have changed; boards handed out before keep theirs.
func (b *Book) freezeDays() {
	if len(b.state.dirty) == 0 {
		return
	}
	oldest := b.state.oldest()
	days := make([]*day, 0, len(b.days)+len(b.state.dirty))
	for _, old := range b.days {
		switch {
		case old.date < oldest:
			delete(b.state.rows, old.date)
		case !b.state.dirty[old.date]:
			days = append(days, old)
		}
	}
	for date := range b.state.dirty {
		if date < oldest {
			delete(b.state.rows, date)
		}
		if rows := b.state.rows[date]; len(rows) > 0 {
			days = append(days, &day{date, slices.SortedFunc(maps.Values(rows), compareRows)})
		}
	}
	slices.SortFunc(days, func(a, b *day) int { return cmp.Compare(a.date, b.date) })
	b.days = days
	clear(b.state.dirty)
}

// compareRows is the order of rows within one day (P4).
func compareRows(a, b HistoryEntry) int {
	return cmp.Or(
		cmp.Compare(a.InstitutionID, b.InstitutionID),
		cmp.Compare(a.Currency, b.Currency),
		cmp.Compare(a.Channel, b.Channel),
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.SourceID, b.SourceID),
	)
}
