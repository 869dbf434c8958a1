package engine

import (
	"cmp"
	"slices"
	"time"
)

// quarantineMax is the maximum number of observations in one currency's quarantine, enough for ten a day for a year.
// Beyond it the oldest are dropped from the store, but stay in the log.
const quarantineMax = 4096

// contents are the quotes, history and quarantine of one currency. A CurrencySnapshot shares the lists, so the
// quoteStore copies a list before the first change (copy on write).
type contents struct {
	quotes           []*quote       // sorted by key; after a withdrawal a quote may have no SourceQuote
	days             []*day         // sorted by date
	quarantine       []Quarantined  // oldest first
	slots            []AnsweredSlot // newest scheduled time of each source, sorted by source
	lastQuarantineID uint64
	newest           Date // newest day that ever had history
}

// quoteStore changes the contents of one currency.
type quoteStore struct {
	contents
	generation  uint64 // number of calls of share; quotes and days of an earlier generation are copied before a change
	owns        ownedLists
	historyDays int     // number of days of commercial history to keep, up to newest
	trimmed     Date    // commercial rows of earlier days are already dropped
	market      *market // see marketAt
	merged      *market // memory for withCandidates
}

// ownedLists tells which lists were copied since the newest call of share, and can be changed in place.
type ownedLists struct{ quotes, days, slots bool }

// quote holds one QuoteKey's source quotes (the newest accepted quote of each source) and pending confirmations.
type quote struct {
	key          QuoteKey
	generation   uint64         // quoteStore.generation when the quote was made
	sourceQuotes []*SourceQuote // sorted by source; immutable
	preferred    *SourceQuote   // source quote with the highest precedence; nil without source quotes
	pending      []PendingConfirmation
}

func newQuoteStore(historyDays int) *quoteStore {
	return &quoteStore{historyDays: historyDays, market: &market{}, merged: &market{}}
}

// share returns the contents. After this the store copies a list before it changes the list.
func (s *quoteStore) share() contents {
	s.generation++
	s.owns = ownedLists{}
	shared := s.contents
	shared.quarantine = slices.Clip(shared.quarantine) // the store may append to the array
	return shared
}

// restore replaces the contents by shared ones.
func (s *quoteStore) restore(shared contents) {
	s.contents = shared
	s.share()
	s.market.known = false
}

// mutableQuote returns the quote of a key, for changes.
func (s *quoteStore) mutableQuote(key QuoteKey) *quote {
	i, found := slices.BinarySearchFunc(s.quotes, key, compareQuoteKey)
	if found && s.quotes[i].generation == s.generation {
		return s.quotes[i]
	}
	if !s.owns.quotes {
		s.quotes, s.owns.quotes = slices.Clone(s.quotes), true
	}
	if !found {
		s.quotes = slices.Insert(s.quotes, i, &quote{key: key, generation: s.generation})
		return s.quotes[i]
	}
	q := *s.quotes[i]
	q.generation, q.sourceQuotes, q.pending = s.generation, slices.Clone(q.sourceQuotes), slices.Clone(q.pending)
	s.quotes[i] = &q
	return &q
}

func compareQuoteKey(q *quote, key QuoteKey) int { return q.key.Compare(key) }

// quote returns the quote of a key, or an empty quote. The caller must not change it.
func (s *quoteStore) quote(key QuoteKey) *quote {
	if i, found := slices.BinarySearchFunc(s.quotes, key, compareQuoteKey); found {
		return s.quotes[i]
	}
	return &quote{key: key}
}

// sourceQuote returns the quote of one source, or nil.
func (q *quote) sourceQuote(sourceID string) *SourceQuote {
	if i, found := slices.BinarySearchFunc(q.sourceQuotes, sourceID, compareSourceQuote); found {
		return q.sourceQuotes[i]
	}
	return nil
}

func compareSourceQuote(q *SourceQuote, sourceID string) int {
	return cmp.Compare(q.SourceID, sourceID)
}

func (q *quote) pendingOf(sourceID string) (PendingConfirmation, bool) {
	for _, pending := range q.pending {
		if pending.SourceID == sourceID {
			return pending, true
		}
	}
	return PendingConfirmation{}, false
}

// published returns the source quote to publish at a time, or nil if there are none. Of the quotes that are not stale,
// it chooses the one with the highest precedence. If all are stale, it chooses the one that expired last.
func (q *quote) published(now time.Time) *SourceQuote {
	if q.preferred == nil || !q.preferred.staleAt(now) {
		return q.preferred
	}
	best, stale := q.preferred, true
	for _, candidate := range q.sourceQuotes {
		if candidateStale := candidate.staleAt(now); candidate.precedes(candidateStale, best, stale) {
			best, stale = candidate, candidateStale
		}
	}
	return best
}

// precedes reports whether q is published rather than other. stale and otherStale tell which of the two are stale.
func (q *SourceQuote) precedes(stale bool, other *SourceQuote, otherStale bool) bool {
	if stale != otherStale {
		return otherStale
	}
	if stale {
		if order := q.ExpiresAt.Compare(other.ExpiresAt); order != 0 {
			return order > 0
		}
	}
	if a, b := precedence(q.Manual, q.Priority), precedence(other.Manual, other.Priority); a != b {
		return a < b
	}
	if order := q.LastCheckedAt.Compare(other.LastCheckedAt); order != 0 {
		return order > 0
	}
	return q.SourceID < other.SourceID
}

// staleAt reports whether the source quote is stale at a time.
func (q *SourceQuote) staleAt(now time.Time) bool { return !now.Before(q.ExpiresAt) }

// precedence returns the precedence of a source. The smaller number takes precedence; a manual rate has the smallest.
func precedence(manual bool, priority int64) int64 {
	if manual {
		return -1
	}
	return priority
}

// accept replaces the quote of one source, and removes the source's pending confirmation.
func (q *quote) accept(next *SourceQuote) {
	q.sourceQuotes = insertOrReplace(q.sourceQuotes, next, compareSourceQuote, next.SourceID)
	q.pending = slices.DeleteFunc(q.pending, func(p PendingConfirmation) bool { return p.SourceID == next.SourceID })
	switch {
	case q.preferred == nil || next.precedes(false, q.preferred, false):
		q.preferred = next
	case q.preferred.SourceID == next.SourceID: // another source may have a higher precedence now
		q.preferred = preferredOf(q.sourceQuotes)
	}
}

// preferredOf returns the source quote with the highest precedence, whether stale or not. It returns nil if there are
// none.
func preferredOf(quotes []*SourceQuote) *SourceQuote {
	var preferred *SourceQuote
	for _, q := range quotes {
		if preferred == nil || q.precedes(false, preferred, false) {
			preferred = q
		}
	}
	return preferred
}

func (q *quote) withdraw(sourceID string) {
	q.sourceQuotes = slices.DeleteFunc(q.sourceQuotes, func(s *SourceQuote) bool { return s.SourceID == sourceID })
	q.preferred = preferredOf(q.sourceQuotes)
}

func (q *quote) addPending(pending PendingConfirmation) {
	compare := func(p PendingConfirmation, sourceID string) int { return cmp.Compare(p.SourceID, sourceID) }
	q.pending = insertOrReplace(q.pending, pending, compare, pending.SourceID)
}

// insertOrReplace puts an item into a list sorted by source, with at most one item for each source.
func insertOrReplace[T any](list []T, item T, compare func(T, string) int, source string) []T {
	i, found := slices.BinarySearchFunc(list, source, compare)
	if found {
		list[i] = item
		return list
	}
	return slices.Insert(list, i, item)
}
