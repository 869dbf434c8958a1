package engine

import (
	"slices"
	"time"
)

// DefaultRules are limits that hold back every error of the four years of real observations and next to no good value.
func DefaultRules() Rules {
	return Rules{
		JumpPermille: 50, MedianPermille: 100, MedianQuotesMin: 5,
		LastGoodAgeMax: 7 * 24 * time.Hour, FutureDaysMax: 7, HistoryDays: 5 * 366,
	}
}

// CurrencyState is the mutable state of one currency: offers, history, quarantine. It has one owner, which is the only caller of its
// methods; what it hands out (Decision, CurrencySnapshot, SavedCurrency) is immutable and may be read by anyone.
type CurrencyState struct {
	currency   string
	catalogue  *Catalogue
	rules      Rules
	store      *quoteStore
	snapshot   *CurrencySnapshot
	quotes     []*quote // of the last board, in list order
	days       []*day   // of the last board, by date
	oldestFull Date     // from this day on the last board keeps all rows
}

// NewCurrencyState is a book without facts.
func NewCurrencyState(currency string, catalogue *Catalogue, rules Rules) *CurrencyState {
	rules.HistoryDays = max(rules.HistoryDays, HistoryDaysMin)
	// Days ahead are counted on top: the newest day may be one of them.
	return &CurrencyState{currency: currency, catalogue: catalogue, rules: rules, store: newQuoteStore(rules.HistoryDays + rules.FutureDaysMax)}
}

// RestoreCurrencyState is the book that a snapshot describes.
func RestoreCurrencyState(from SavedCurrency, catalogue *Catalogue, rules Rules) *CurrencyState {
	book := NewCurrencyState(from.Currency, catalogue, rules)
	for _, offer := range from.SourceQuotes {
		book.store.mutableQuote(offer.Key).accept(&offer)
	}
	book.store.restoreRows(from.History)
	for _, suspect := range from.Pending {
		book.store.mutableQuote(suspect.Key).addPending(suspect)
	}
	for _, held := range from.Quarantine {
		book.store.quarantine = append(book.store.quarantine, held)
		book.store.quarantineIDs[held.key()] = held.ID
	}
	book.store.slots, book.store.slotsShared = from.Slots, true
	book.store.lastQuarantineID = from.LastQuarantineID
	return book
}

// Apply makes a durable event true. It depends on nothing but the event and the state.
func (b *CurrencyState) Apply(event Event) {
	b.store.apply(event)
	b.snapshot = nil
}

// Saved is the book as a snapshot keeps it.
func (b *CurrencyState) Saved() SavedCurrency { return b.Snapshot().Saved() }

// CurrencySnapshot is the immutable state of the book; the same one until an event is applied.
func (b *CurrencyState) Snapshot() *CurrencySnapshot {
	if b.snapshot != nil {
		return b.snapshot
	}
	b.snapshotQuotes()
	b.snapshotDays()
	b.store.slotsShared = true
	held := b.store.quarantine
	b.snapshot = &CurrencySnapshot{
		currency: b.currency, catalogue: b.catalogue, quotes: b.quotes, days: b.days,
		quarantine: held[:len(held):len(held)], // later ones are appended behind it
		slots:      b.store.slots, lastQuarantineID: b.store.lastQuarantineID,
	}
	return b.snapshot
}

// snapshotQuotes makes a list of quotes in which those that have changed stand for the ones before; boards handed out before keep
// theirs.
func (b *CurrencyState) snapshotQuotes() {
	s := b.store
	if len(s.changedQuotes) == 0 {
		return
	}
	list, known := slices.Clone(b.quotes), len(b.quotes)
	for _, q := range s.changedQuotes {
		s.yielder.step(1)
		q.shared = true
		if at, found := slices.BinarySearchFunc(list[:known], q.key, compareQuoteKey); found {
			list[at] = q
		} else {
			list = append(list, q)
		}
	}
	if len(list) > known { // the rest is in order already
		s.yielder.step(len(list))
		slices.SortFunc(list, compareQuotes)
	}
	b.quotes, s.changedQuotes = list, s.changedQuotes[:0]
}

func compareQuotes(a, b *quote) int { return a.key.Compare(b.key) }

func compareQuoteKey(q *quote, key QuoteKey) int { return q.key.Compare(key) }
