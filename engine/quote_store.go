package engine

import (
	"cmp"
	"slices"
	"time"
)

// quarantineMax bounds the quarantine of one currency: ten observations a day for a year. Older ones are dropped; the
// log still has them.
const quarantineMax = 4096

// quoteStore holds the quotes, history and quarantine of one currency. A draft is a store with a base: it sees the base
// and keeps its own changes apart, so that each refresh of a batch is checked against the ones before it although none
// of them is durable yet.
type quoteStore struct {
	base          *quoteStore
	quotes        map[QuoteKey]*quote
	days          map[Date]*day // those not in changedDays are shared with snapshots and never changed
	quarantine    []Quarantined // oldest first
	quarantineIDs map[quarantineKey]uint64
	slots         []AnsweredSlot // by source
	slotsShared   bool           // a snapshot or base has the same slots: copy before a change

	lastQuarantineID uint64
	newest           Date          // newest day of history
	historyDays      int           // days of commercial history that are kept, counted back from newest
	changedDays      map[Date]bool // since the last snapshot
	changedQuotes    []*quote      // since the last snapshot
	yielder          *yielder
}

// quote is everything known of one quote.
type quote struct {
	key          QuoteKey
	shared       bool           // a snapshot has it: it is replaced, never changed
	sourceQuotes []*SourceQuote // by source; immutable
	preferred    *SourceQuote   // published unless it has expired; nil without source quotes
	pending      []PendingConfirmation
}

// quarantineKey tells whether an observation is in quarantine already, so that a file which is read twice fills it
// once.
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
		historyDays: historyDays, yielder: &yielder{every: stepsPerYield}, quotes: map[QuoteKey]*quote{},
		days: map[Date]*day{}, quarantineIDs: map[quarantineKey]uint64{}, changedDays: map[Date]bool{},
	}
}

func (s *quoteStore) draft() *quoteStore {
	draft := newQuoteStore(s.historyDays)
	draft.base, draft.yielder = s, s.yielder
	draft.slots, draft.slotsShared = s.slots, true
	draft.lastQuarantineID, draft.newest = s.lastQuarantineID, s.newest
	return draft
}

// mutableQuote returns the quote of a key for a change, a copy where the present one is shared.
func (s *quoteStore) mutableQuote(key QuoteKey) *quote {
	if q, own := s.quotes[key]; own && !q.shared {
		return q
	}
	old := s.quote(key)
	q := &quote{key: key, preferred: old.preferred, pending: slices.Clone(old.pending)}
	q.sourceQuotes = append(make([]*SourceQuote, 0, len(old.sourceQuotes)+1), old.sourceQuotes...)
	s.quotes[key] = q
	s.changedQuotes = append(s.changedQuotes, q)
	return q
}

// quote returns the quote of a key for reading, an empty one when it is unknown.
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

// eachQuote visits every quote once, in no order.
func (s *quoteStore) eachQuote(visit func(*quote)) {
	for _, q := range s.quotes {
		s.yielder.step(q.weight())
		visit(q)
	}
	if s.base == nil {
		return
	}
	for key, q := range s.base.quotes {
		if _, own := s.quotes[key]; !own {
			s.yielder.step(q.weight())
			visit(q)
		}
	}
}

// quotesPerStep is how many source quotes are compared in one step of a yielder.
const quotesPerStep = 16

// weight is the cost of looking through the quote, in steps of a yielder.
func (q *quote) weight() int { return 1 + len(q.sourceQuotes)/quotesPerStep }

// sourceQuote returns the quote of one source, nil when there is none.
func (q *quote) sourceQuote(sourceID string) *SourceQuote {
	if at, known := slices.BinarySearchFunc(q.sourceQuotes, sourceID, compareSourceQuote); known {
		return q.sourceQuotes[at]
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

// published returns the source quote that is published at an instant, nil when there is none: of the current ones that
// with the highest precedence; when all have expired, the one that expired last.
func (q *quote) published(now time.Time) *SourceQuote {
	if q.preferred == nil || !q.preferred.staleAt(now) {
		return q.preferred
	}
	best, stale := q.preferred, true
	for _, one := range q.sourceQuotes {
		if oneStale := one.staleAt(now); one.precedes(oneStale, best, stale) {
			best, stale = one, oneStale
		}
	}
	return best
}

// precedes orders the source quotes of one quote, given which of them are stale.
func (q *SourceQuote) precedes(stale bool, other *SourceQuote, otherStale bool) bool {
	if stale != otherStale {
		return otherStale
	}
	if stale {
		if later := q.ExpiresAt.Compare(other.ExpiresAt); later != 0 {
			return later > 0
		}
	}
	if a, b := precedence(q.Manual, q.Priority), precedence(other.Manual, other.Priority); a != b {
		return a < b
	}
	if later := q.LastCheckedAt.Compare(other.LastCheckedAt); later != 0 {
		return later > 0
	}
	return q.SourceID < other.SourceID
}

// staleAt is the only place where expiry is decided.
func (q *SourceQuote) staleAt(now time.Time) bool { return !now.Before(q.ExpiresAt) }

// precedence returns the precedence of a source; a smaller number takes precedence, and a manual rate before all
// others.
func precedence(manual bool, priority int64) int64 {
	if manual {
		return -1
	}
	return priority
}

// accept replaces the quote of one source, which ends its pending confirmation.
func (q *quote) accept(next *SourceQuote) {
	q.sourceQuotes = insertOrReplace(q.sourceQuotes, next, compareSourceQuote, next.SourceID)
	q.pending = slices.DeleteFunc(q.pending, func(p PendingConfirmation) bool { return p.SourceID == next.SourceID })
	switch {
	case q.preferred == nil || next.precedes(false, q.preferred, false):
		q.preferred = next
	case q.preferred.SourceID == next.SourceID: // its precedence has fallen, perhaps below that of another source
		q.preferred = preferredOf(q.sourceQuotes)
	}
}

// preferredOf returns the source quote with the highest precedence, as if none were stale; nil when there is none.
func preferredOf(quotes []*SourceQuote) *SourceQuote {
	var preferred *SourceQuote
	for _, one := range quotes {
		if preferred == nil || one.precedes(false, preferred, false) {
			preferred = one
		}
	}
	return preferred
}

func (q *quote) withdraw(sourceID string) {
	q.sourceQuotes = slices.DeleteFunc(q.sourceQuotes, func(one *SourceQuote) bool { return one.SourceID == sourceID })
	q.preferred = preferredOf(q.sourceQuotes)
}

func (q *quote) addPending(pending PendingConfirmation) {
	compare := func(p PendingConfirmation, sourceID string) int { return cmp.Compare(p.SourceID, sourceID) }
	q.pending = insertOrReplace(q.pending, pending, compare, pending.SourceID)
}

// insertOrReplace puts item into a list with one item for each source, sorted by source.
func insertOrReplace[T any](list []T, item T, compare func(T, string) int, source string) []T {
	at, found := slices.BinarySearchFunc(list, source, compare)
	if found {
		list[at] = item
		return list
	}
	return slices.Insert(list, at, item)
}
