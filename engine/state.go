package engine

import (
	"cmp"
	"slices"
	"time"
)

// heldMax bounds the quarantine of one book: about a year of a market in which ten observations a day are held back.
// Older ones leave it; the log still has them.
const heldMax = 4096

// state is what a book knows. A state with a base is a draft: it sees the base's facts and keeps its own changes apart, so that
// a whole batch can be decided, each observation in sight of the ones before it, while nothing of it is true yet.
type state struct {
	base   *state
	quotes map[QuoteKey]*quote
	days   map[Date]*day // one that is not in dirty is shared with boards and never changed
	held   []Held
	seen   map[heldKey]uint64 // what is in quarantine, so that a file that is read twice fills it once
	slots  []HeardSlot        // by source
	lent   bool               // slots are those of a board or a base too: never changed, only replaced

	lastHeldID uint64
	newest     Date          // newest day of history
	depth      int           // days of commercial history that are kept, counted back from the newest
	dirty      map[Date]bool // days changed since the last board
	touched    []*quote      // quotes changed since the last board
	pace       *pace
}

// quote is everything known of one quote. Once a board has it, it is never changed, only replaced.
type quote struct {
	key      QuoteKey
	frozen   bool      // boards may have it
	offers   []*Offer  // by source; shared with the quotes before and after
	lead     *Offer    // the one that takes precedence while it has not expired, nil without offers
	suspects []Suspect // by source
}

type heldKey struct {
	source, institution string
	channel             Channel
	kind                Kind
	buy, sell           string
	effective           Date
	published           int64
	observedAt          int64
}

func newState(depth int) *state {
	return &state{
		depth: depth, pace: &pace{piece: pieceMax},
		quotes: map[QuoteKey]*quote{}, days: map[Date]*day{}, seen: map[heldKey]uint64{}, dirty: map[Date]bool{},
	}
}

func (s *state) draft() *state {
	return &state{
		base: s, quotes: map[QuoteKey]*quote{}, days: map[Date]*day{}, seen: map[heldKey]uint64{}, dirty: map[Date]bool{},
		slots: s.slots, lent: true, lastHeldID: s.lastHeldID, newest: s.newest, depth: s.depth, pace: s.pace,
	}
}

// own is the quote of a key for whoever changes it: the state's, while no board has it, else a copy that takes its place.
func (s *state) own(key QuoteKey) *quote {
	if q, mine := s.quotes[key]; mine && !q.frozen {
		return q
	}
	old := s.quote(key)
	q := &quote{key: key, lead: old.lead, suspects: slices.Clone(old.suspects)}
	q.offers = append(make([]*Offer, 0, len(old.offers)+1), old.offers...)
	s.quotes[key] = q
	s.touched = append(s.touched, q)
	return q
}

// quote is never nil: an unknown one is empty.
func (s *state) quote(key QuoteKey) *quote {
	if q, ok := s.quotes[key]; ok {
		return q
	}
	if s.base != nil {
		return s.base.quote(key)
	}
	return &quote{key: key}
}

func (s *state) heldAs(key heldKey) (uint64, bool) {
	id, ok := s.seen[key]
	if !ok && s.base != nil {
		return s.base.heldAs(key)
	}
	return id, ok
}

// eachQuote visits every quote once, in no order.
func (s *state) eachQuote(visit func(*quote)) {
	for _, q := range s.quotes {
		s.pace.step(q.weight())
		visit(q)
	}
	if s.base == nil {
		return
	}
	for key, q := range s.base.quotes {
		if _, mine := s.quotes[key]; !mine {
			s.pace.step(q.weight())
			visit(q)
		}
	}
}

// offersInStep is how many offers of one quote are looked through in the time of one small step.
const offersInStep = 16

// weight is how long looking through the quote takes.
func (q *quote) weight() int { return 1 + len(q.offers)/offersInStep }

// offer is what a source said, nil when it said nothing.
func (q *quote) offer(sourceID string) *Offer {
	if at, known := slices.BinarySearchFunc(q.offers, sourceID, compareOfferSource); known {
		return q.offers[at]
	}
	return nil
}

func compareOfferSource(o *Offer, sourceID string) int { return cmp.Compare(o.SourceID, sourceID) }

func (q *quote) suspect(sourceID string) (Suspect, bool) {
	for _, s := range q.suspects {
		if s.SourceID == sourceID {
			return s, true
		}
	}
	return Suspect{}, false
}

// published is the offer that stands for the quote at an instant (S11): of the current ones a manual one, else the lowest
// priority number; when all have expired, the one that expired last. Nil when there is none.
func (q *quote) published(now time.Time) *Offer {
	if q.lead == nil || !q.lead.staleAt(now) {
		return q.lead
	}
	best, stale := q.lead, true
	for _, o := range q.offers {
		if oStale := o.staleAt(now); o.precedes(oStale, best, stale) {
			best, stale = o, oStale
		}
	}
	return best
}

// precedes orders the offers of a quote; it is told which ones have expired.
func (o *Offer) precedes(stale bool, other *Offer, otherStale bool) bool {
	if stale != otherStale {
		return otherStale
	}
	if stale {
		if later := o.ExpiresAt.Compare(other.ExpiresAt); later != 0 {
			return later > 0
		}
	}
	if a, b := rank(o.Manual, o.Priority), rank(other.Manual, other.Priority); a != b {
		return a < b
	}
	if later := o.LastCheckedAt.Compare(other.LastCheckedAt); later != 0 {
		return later > 0
	}
	return o.SourceID < other.SourceID
}

// staleAt is the one place where expiry is decided (T1).
func (o *Offer) staleAt(now time.Time) bool { return !now.Before(o.ExpiresAt) }

// rank is a source's precedence: its priority, and a manual rate before all.
func rank(manual bool, priority int64) int64 {
	if manual {
		return -1
	}
	return priority
}

// accept takes one source's word in; its suspicion ends with an accepted value.
func (q *quote) accept(offer *Offer) {
	q.offers = placed(q.offers, offer, compareOfferSource, offer.SourceID)
	q.suspects = slices.DeleteFunc(q.suspects, func(s Suspect) bool { return s.SourceID == offer.SourceID })
	switch {
	case q.lead == nil || offer.precedes(false, q.lead, false):
		q.lead = offer
	case q.lead.SourceID == offer.SourceID: // it has fallen behind itself, perhaps behind others
		q.lead = leading(q.offers)
	}
}

// leading is the offer that takes precedence among current ones, nil when there is none.
func leading(offers []*Offer) *Offer {
	var lead *Offer
	for _, o := range offers {
		if lead == nil || o.precedes(false, lead, false) {
			lead = o
		}
	}
	return lead
}

func (q *quote) withdraw(sourceID string) {
	q.offers = slices.DeleteFunc(q.offers, func(o *Offer) bool { return o.SourceID == sourceID })
	q.lead = leading(q.offers)
}

func (q *quote) doubt(s Suspect) {
	q.suspects = placed(q.suspects, s, compareSuspectSource, s.SourceID)
}

func compareSuspectSource(s Suspect, sourceID string) int { return cmp.Compare(s.SourceID, sourceID) }

// placed puts item into a list sorted by source, in place of what stood there for its source.
func placed[T any](list []T, item T, compare func(T, string) int, source string) []T {
	at, found := slices.BinarySearchFunc(list, source, compare)
	if found {
		list[at] = item
		return list
	}
	return slices.Insert(list, at, item)
}
