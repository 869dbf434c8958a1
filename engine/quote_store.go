package engine

import (
	"cmp"
	"slices"
	"time"
)

// quarantineMax is the maximum number of observations in the quarantine of one currency, enough for ten a day for a
// year. If there are more, the oldest are dropped from the store, but stay in the log.
const quarantineMax = 4096

// quoteStore holds the quotes, history and quarantine of one currency. A draft is a store with a base (another store):
// it has only changes, and reads everything else from the base. If a command has several refreshes (a refresh is all
// observations of one source at one time), each refresh is checked against a draft with the refreshes before it,
// because those are not durable yet.
type quoteStore struct {
	base          *quoteStore
	quotes        map[QuoteKey]*quote
	days          map[Date]*day            // days not in changedDays are shared with a CurrencySnapshot; copy to change
	quarantine    []Quarantined            // oldest first
	quarantineIDs map[quarantineKey]uint64 // detects observations that are in quarantine already
	slots         []AnsweredSlot           // newest scheduled time of each source, sorted by source
	slotsShared   bool                     // a CurrencySnapshot or the base has the same slots; copy to change

	quotesOf         map[string]int // number of quotes of each source; in a draft, how many more than in the base
	lastQuarantineID uint64
	newest           Date          // newest day that has history
	historyDays      int           // number of days of commercial history that is kept, up to newest
	changedDays      map[Date]bool // days changed since the newest CurrencySnapshot
	changedQuotes    []*quote      // quotes changed since the newest CurrencySnapshot
	market           *market       // see marketAt
	scratch, merged  *market       // memory for the market of a draft, and for withCandidates
}

// quote has the source quotes (the newest accepted quote of each source) and the pending confirmations of one QuoteKey.
type quote struct {
	key          QuoteKey
	shared       bool           // a CurrencySnapshot has the quote, so the quote must be replaced instead of changed
	sourceQuotes []*SourceQuote // sorted by source; immutable
	preferred    *SourceQuote   // source quote with the highest precedence; nil without source quotes
	pending      []PendingConfirmation
}

// quarantineKey identifies an observation in quarantine, so that a file that is read twice is quarantined once.
type quarantineKey struct {
	source, institution string
	channel             Channel
	kind                Kind
	buy, sell           string
	effective           Date
	published           int64
	observedAt          int64
}

func newQuoteStore(historyDays int) *quoteStore {
	return &quoteStore{
		historyDays: historyDays, quotes: map[QuoteKey]*quote{}, quotesOf: map[string]int{},
		market: &market{}, merged: &market{}, days: map[Date]*day{}, quarantineIDs: map[quarantineKey]uint64{}, changedDays: map[Date]bool{},
	}
}

func (s *quoteStore) draft() *quoteStore {
	draft := newQuoteStore(s.historyDays)
	if s.scratch == nil {
		s.scratch = &market{}
	}
	draft.base, draft.market, draft.merged = s, s.scratch, s.merged
	draft.market.copyFrom(s.market)
	draft.slots, draft.slotsShared = s.slots, true
	draft.lastQuarantineID, draft.newest = s.lastQuarantineID, s.newest
	return draft
}

// mutableQuote returns the quote of a key, for changes. If the quote is shared or in the base, it is copied first.
func (s *quoteStore) mutableQuote(key QuoteKey) *quote {
	if q, ok := s.quotes[key]; ok && !q.shared {
		return q
	}
	old := s.quote(key)
	q := &quote{key: key, preferred: old.preferred, pending: slices.Clone(old.pending)}
	q.sourceQuotes = append(make([]*SourceQuote, 0, len(old.sourceQuotes)+1), old.sourceQuotes...)
	s.quotes[key] = q
	s.changedQuotes = append(s.changedQuotes, q)
	return q
}

// countOf returns the number of quotes of a source.
func (s *quoteStore) countOf(sourceID string) int {
	if s.base == nil {
		return s.quotesOf[sourceID]
	}
	return s.quotesOf[sourceID] + s.base.countOf(sourceID)
}

// quote returns the quote of a key, or an empty quote. The caller must not change it.
func (s *quoteStore) quote(key QuoteKey) *quote {
	if q, ok := s.quotes[key]; ok {
		return q
	}
	if s.base != nil {
		return s.base.quote(key)
	}
	return &quote{key: key}
}

func (s *quoteStore) quarantineID(key quarantineKey) (uint64, bool) {
	id, ok := s.quarantineIDs[key]
	if !ok && s.base != nil {
		return s.base.quarantineID(key)
	}
	return id, ok
}

// eachQuote calls visit for every quote once, in no particular order.
func (s *quoteStore) eachQuote(visit func(*quote)) {
	for _, q := range s.quotes {
		visit(q)
	}
	if s.base == nil {
		return
	}
	for key, q := range s.base.quotes {
		if _, replaced := s.quotes[key]; !replaced {
			visit(q)
		}
	}
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

// published returns the source quote that is published at a time, or nil. It is the one with the highest precedence
// that is not stale. If all are stale, it is the one with the latest expiry.
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

// precedes reports whether q is published rather than other. stale and otherStale say which of the two are stale.
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

// accept replaces the quote of one source and removes its pending confirmation (a refused value that waits to be
// repeated).
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

// insertOrReplace puts an item into a list that is sorted by source and has at most one item for each source.
func insertOrReplace[T any](list []T, item T, compare func(T, string) int, source string) []T {
	i, found := slices.BinarySearchFunc(list, source, compare)
	if found {
		list[i] = item
		return list
	}
	return slices.Insert(list, i, item)
}
