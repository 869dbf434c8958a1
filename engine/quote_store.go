package engine

import (
	"cmp"
	"slices"
	"time"
)

// quarantineMax bounds the quarantine of one book: about a year of a market in which ten observations a day are held back.
// Older ones leave it; the log still has them.
const quarantineMax = 4096

// store is what a book knows. A state with a base is a draft: it sees the base's facts and keeps its own changes apart, so that
// a whole batch can be decided, each observation in sight of the ones before it, while nothing of it is true yet.
type quoteStore struct {
	base          *quoteStore
	quotes        map[QuoteKey]*quote
	days          map[Date]*day // one that is not in dirty is shared with boards and never changed
	quarantine    []Quarantined
	quarantineIDs map[quarantineKey]uint64 // what is in quarantine, so that a file that is read twice fills it once
	slots         []AnsweredSlot           // by source
	slotsShared   bool                     // slots are those of a board or a base too: never changed, only replaced

	lastQuarantineID uint64
	newest           Date          // newest day of history
	historyDays      int           // days of commercial history that are kept, counted back from the newest
	changedDays      map[Date]bool // days changed since the last board
	changedQuotes    []*quote      // quotes changed since the last board
	yielder          *yielder
}

// quote is everything known of one quote. Once a board has it, it is never changed, only replaced.
type quote struct {
	key          QuoteKey
	shared       bool                  // boards may have it
	sourceQuotes []*SourceQuote        // by source; shared with the quotes before and after
	preferred    *SourceQuote          // the one that takes precedence while it has not expired, nil without offers
	pending      []PendingConfirmation // by source
}

type quarantineKey struct {
	source, institution string
	channel             Channel
	kind                Kind
	buy, sell           string
	effective           Date
	published           int64
	observedAt          int64
}

func newQuoteStore(depth int) *quoteStore {
	return &quoteStore{
		historyDays: depth, yielder: &yielder{every: stepsPerYield},
		quotes: map[QuoteKey]*quote{}, days: map[Date]*day{}, quarantineIDs: map[quarantineKey]uint64{}, changedDays: map[Date]bool{},
	}
}

func (s *quoteStore) draft() *quoteStore {
	return &quoteStore{
		base: s, quotes: map[QuoteKey]*quote{}, days: map[Date]*day{}, quarantineIDs: map[quarantineKey]uint64{}, changedDays: map[Date]bool{},
		slots: s.slots, slotsShared: true, lastQuarantineID: s.lastQuarantineID, newest: s.newest, historyDays: s.historyDays, yielder: s.yielder,
	}
}

// mutableQuote is the quote of a key for whoever changes it: the state's, while no board has it, else a copy that takes its place.
func (s *quoteStore) mutableQuote(key QuoteKey) *quote {
	if q, mine := s.quotes[key]; mine && !q.shared {
		return q
	}
	old := s.quote(key)
	q := &quote{key: key, preferred: old.preferred, pending: slices.Clone(old.pending)}
	q.sourceQuotes = append(make([]*SourceQuote, 0, len(old.sourceQuotes)+1), old.sourceQuotes...)
	s.quotes[key] = q
	s.changedQuotes = append(s.changedQuotes, q)
	return q
}

// quote is never nil: an unknown one is empty.
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
		if _, mine := s.quotes[key]; !mine {
			s.yielder.step(q.weight())
			visit(q)
		}
	}
}

// quotesPerStep is how many offers of one quote are looked through in the time of one small step.
const quotesPerStep = 16

// weight is how long looking through the quote takes.
func (q *quote) weight() int { return 1 + len(q.sourceQuotes)/quotesPerStep }

// sourceQuote is what a source said, nil when it said nothing.
func (q *quote) sourceQuote(sourceID string) *SourceQuote {
	if at, known := slices.BinarySearchFunc(q.sourceQuotes, sourceID, compareSourceQuote); known {
		return q.sourceQuotes[at]
	}
	return nil
}

func compareSourceQuote(o *SourceQuote, sourceID string) int {
	return cmp.Compare(o.SourceID, sourceID)
}

func (q *quote) pendingOf(sourceID string) (PendingConfirmation, bool) {
	for _, s := range q.pending {
		if s.SourceID == sourceID {
			return s, true
		}
	}
	return PendingConfirmation{}, false
}

// published is the offer that stands for the quote at an instant (S11): of the current ones a manual one, else the lowest
// priority number; when all have expired, the one that expired last. Nil when there is none.
func (q *quote) published(now time.Time) *SourceQuote {
	if q.preferred == nil || !q.preferred.staleAt(now) {
		return q.preferred
	}
	best, stale := q.preferred, true
	for _, o := range q.sourceQuotes {
		if oStale := o.staleAt(now); o.precedes(oStale, best, stale) {
			best, stale = o, oStale
		}
	}
	return best
}

// precedes orders the offers of a quote; it is told which ones have expired.
func (o *SourceQuote) precedes(stale bool, other *SourceQuote, otherStale bool) bool {
	if stale != otherStale {
		return otherStale
	}
	if stale {
		if later := o.ExpiresAt.Compare(other.ExpiresAt); later != 0 {
			return later > 0
		}
	}
	if a, b := precedence(o.Manual, o.Priority), precedence(other.Manual, other.Priority); a != b {
		return a < b
	}
	if later := o.LastCheckedAt.Compare(other.LastCheckedAt); later != 0 {
		return later > 0
	}
	return o.SourceID < other.SourceID
}

// staleAt is the one place where expiry is decided (T1).
func (o *SourceQuote) staleAt(now time.Time) bool { return !now.Before(o.ExpiresAt) }

// precedence is a source's precedence: its priority, and a manual rate before all.
func precedence(manual bool, priority int64) int64 {
	if manual {
		return -1
	}
	return priority
}

// accept takes one source's word in; its suspicion ends with an accepted value.
func (q *quote) accept(offer *SourceQuote) {
	q.sourceQuotes = insertOrReplace(q.sourceQuotes, offer, compareSourceQuote, offer.SourceID)
	q.pending = slices.DeleteFunc(q.pending, func(s PendingConfirmation) bool { return s.SourceID == offer.SourceID })
	switch {
	case q.preferred == nil || offer.precedes(false, q.preferred, false):
		q.preferred = offer
	case q.preferred.SourceID == offer.SourceID: // it has fallen behind itself, perhaps behind others
		q.preferred = preferredOf(q.sourceQuotes)
	}
}

// preferredOf is the offer that takes precedence among current ones, nil when there is none.
func preferredOf(offers []*SourceQuote) *SourceQuote {
	var lead *SourceQuote
	for _, o := range offers {
		if lead == nil || o.precedes(false, lead, false) {
			lead = o
		}
	}
	return lead
}

func (q *quote) withdraw(sourceID string) {
	q.sourceQuotes = slices.DeleteFunc(q.sourceQuotes, func(o *SourceQuote) bool { return o.SourceID == sourceID })
	q.preferred = preferredOf(q.sourceQuotes)
}

func (q *quote) addPending(s PendingConfirmation) {
	q.pending = insertOrReplace(q.pending, s, comparePending, s.SourceID)
}

func comparePending(s PendingConfirmation, sourceID string) int {
	return cmp.Compare(s.SourceID, sourceID)
}

// insertOrReplace puts item into a list sorted by source, in place of what stood there for its source.
func insertOrReplace[T any](list []T, item T, compare func(T, string) int, source string) []T {
	at, found := slices.BinarySearchFunc(list, source, compare)
	if found {
		list[at] = item
		return list
	}
	return slices.Insert(list, at, item)
}
