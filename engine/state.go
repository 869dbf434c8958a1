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
	slots  []HeardSlot        // by source; never changed, only replaced

	lastHeldID uint64
	newest     Date          // newest day of history
	depth      int           // days of commercial history that are kept, counted back from the newest
	dirty      map[Date]bool // days changed since the last board
	touched    []QuoteKey    // quotes changed since the last board, some of them twice; more than there are quotes: all may be
	pace       *pace
}

// quote is everything known of one quote; never changed, only replaced.
type quote struct {
	key      QuoteKey
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
		depth: depth, pace: &pace{},
		quotes: map[QuoteKey]*quote{}, days: map[Date]*day{}, seen: map[heldKey]uint64{}, dirty: map[Date]bool{},
	}
}

func (s *state) draft() *state {
	return &state{
		base: s, quotes: map[QuoteKey]*quote{}, days: map[Date]*day{}, seen: map[heldKey]uint64{}, dirty: map[Date]bool{},
		slots: s.slots, lastHeldID: s.lastHeldID, newest: s.newest, depth: s.depth, pace: s.pace,
	}
}

// set replaces a quote.
func (s *state) set(q *quote) {
	s.quotes[q.key] = q
	if len(s.touched) <= len(s.quotes) {
		s.touched = append(s.touched, q.key)
	}
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

// withOffer is the quote after one source's word; its suspicion ends with an accepted value.
func (q *quote) withOffer(offer *Offer) *quote {
	next := &quote{
		key:      q.key,
		offers:   placed(q.offers, offer, compareOfferSource, offer.SourceID),
		suspects: q.withoutSuspect(offer.SourceID),
	}
	switch {
	case q.lead == nil || offer.precedes(false, q.lead, false):
		next.lead = offer
	case q.lead.SourceID != offer.SourceID:
		next.lead = q.lead
	default: // it was the lead and has fallen behind itself, perhaps behind others
		next.lead = leading(next.offers)
	}
	return next
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

func (q *quote) withoutOffer(sourceID string) *quote {
	offers := slices.DeleteFunc(slices.Clone(q.offers), func(o *Offer) bool { return o.SourceID == sourceID })
	return &quote{key: q.key, offers: offers, lead: leading(offers), suspects: q.suspects}
}

func (q *quote) withSuspect(s Suspect) *quote {
	return &quote{
		key: q.key, offers: q.offers, lead: q.lead,
		suspects: placed(q.suspects, s, func(s Suspect, id string) int { return cmp.Compare(s.SourceID, id) }, s.SourceID),
	}
}

func (q *quote) withoutSuspect(sourceID string) []Suspect {
	if len(q.suspects) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(q.suspects), func(s Suspect) bool { return s.SourceID == sourceID })
}

// placed is a copy of a list sorted by source in which item stands for its source.
func placed[T any](list []T, item T, compare func(T, string) int, source string) []T {
	at, found := slices.BinarySearchFunc(list, source, compare)
	if found {
		list = slices.Clone(list)
		list[at] = item
		return list
	}
	grown := make([]T, len(list)+1)
	copy(grown, list[:at])
	grown[at] = item
	copy(grown[at+1:], list[at:])
	return grown
}
