package engine

import (
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
	quotes    []*quote // of the last board, in list order
	days      []*day   // of the last board, by date
	oldest    Date     // from this day on the last board keeps all rows
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
		book.state.own(offer.Key).accept(&offer)
	}
	book.state.restoreRows(from.History)
	for _, suspect := range from.Suspects {
		book.state.own(suspect.Key).doubt(suspect)
	}
	for _, held := range from.Held {
		book.state.held = append(book.state.held, held)
		book.state.seen[held.key()] = held.ID
	}
	book.state.slots, book.state.lent = from.Slots, true
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
	b.freezeQuotes()
	b.freezeDays()
	b.state.lent = true
	held := b.state.held
	b.board = &Board{
		currency: b.currency, catalogue: b.catalogue, quotes: b.quotes, days: b.days,
		held:  held[:len(held):len(held)], // later ones are appended behind it
		slots: b.state.slots, lastHeldID: b.state.lastHeldID,
	}
	return b.board
}

// freezeQuotes makes a list of quotes in which those that have changed stand for the ones before; boards handed out before keep
// theirs.
func (b *Book) freezeQuotes() {
	s := b.state
	if len(s.touched) == 0 {
		return
	}
	list, known := slices.Clone(b.quotes), len(b.quotes)
	for _, q := range s.touched {
		s.pace.step(1)
		q.frozen = true
		if at, found := slices.BinarySearchFunc(list[:known], q.key, compareQuoteKey); found {
			list[at] = q
		} else {
			list = append(list, q)
		}
	}
	if len(list) > known { // the rest is in order already
		s.pace.step(len(list))
		slices.SortFunc(list, compareQuotes)
	}
	b.quotes, s.touched = list, s.touched[:0]
}

func compareQuotes(a, b *quote) int { return a.key.Compare(b.key) }

func compareQuoteKey(q *quote, key QuoteKey) int { return q.key.Compare(key) }
