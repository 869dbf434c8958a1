package engine

import (
	"fmt"
	"slices"
	"time"
)

// apply makes an event true of the state. It is the only writer of a state, live and at recovery.
func (s *state) apply(event Event) {
	switch e := event.(type) {
	case *Refreshed:
		from := origin{e.SourceID, e.UpstreamSource, e.ObservedAt, e.Priority, e.Manual}
		for i := range e.Quotes {
			s.accept(e.Currency, from, &e.Quotes[i])
		}
		for i := range e.Held {
			s.hold(e.Held[i])
		}
		s.hear(HeardSlot{e.SourceID, e.Slot, e.Currencies})
	case *Released:
		s.drop(e.HeldID)
		s.accept(e.Currency, origin{e.SourceID, e.UpstreamSource, e.ObservedAt, e.Priority, e.Manual}, &e.Quote)
	case *Rejected:
		s.drop(e.HeldID)
	case *Withdrawn:
		s.withdraw(e)
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

// origin is who said something, when, and with which precedence.
type origin struct {
	sourceID, upstream string
	observedAt         time.Time
	priority           int64
	manual             bool
}

func (s *state) accept(currency string, from origin, quoted *Quoted) {
	s.pace.step(1)
	if !quoted.Backfill {
		q := s.own(quoted.Key)
		q.accept(q.nextOffer(from, quoted))
	}
	s.record(historyRow(currency, from, quoted))
}

// nextOffer keeps CollectedAt while neither a side nor the date changes (T4).
func (q *quote) nextOffer(from origin, quoted *Quoted) *Offer {
	next := &Offer{
		Key: quoted.Key, SourceID: from.sourceID, Buy: quoted.Buy, Sell: quoted.Sell,
		EffectiveDate: quoted.EffectiveDate, PublishedAt: quoted.PublishedAt, UpstreamSource: from.upstream,
		CollectedAt: from.observedAt, LastCheckedAt: from.observedAt, ExpiresAt: quoted.ExpiresAt,
		Priority: from.priority, Manual: from.manual,
	}
	if last := q.offer(from.sourceID); last != nil && last.sameValue(quoted) {
		next.CollectedAt = last.CollectedAt
	}
	return next
}

func (o *Offer) sameValue(quoted *Quoted) bool {
	return o.Buy.Equal(quoted.Buy) && o.Sell.Equal(quoted.Sell) && o.EffectiveDate == quoted.EffectiveDate
}

func (s *state) hold(held Held) {
	s.pace.step(1)
	s.held = append(s.held, held)
	s.seen[held.key()] = held.ID
	s.lastHeldID = max(s.lastHeldID, held.ID)
	if len(s.held) > heldMax {
		delete(s.seen, s.held[0].key())
		s.held = s.held[1:]
	}
	s.suspect(held)
}

// suspect remembers an implausible value, which the next answer of its source may confirm.
func (s *state) suspect(held Held) {
	if held.Reason != Jump && held.Reason != OffMarket {
		return
	}
	key := held.Observation.Key()
	if last := s.quote(key).offer(held.SourceID); last != nil && !held.ObservedAt.After(last.LastCheckedAt) {
		return
	}
	buy, _ := readSide(held.Observation.Buy)
	sell, _ := readSide(held.Observation.Sell)
	s.own(key).doubt(Suspect{key, held.SourceID, held.ObservedAt, buy, sell})
}

func (h *Held) key() heldKey {
	key := h.Observation.Key()
	return heldKey{
		h.SourceID, key.Institution, key.Channel, key.Kind, h.Observation.Buy, h.Observation.Sell,
		h.Observation.EffectiveDate, h.Observation.PublishedAt.UnixNano(), h.ObservedAt.UnixNano(),
	}
}

func (s *state) drop(heldID uint64) {
	for i := range s.held {
		if s.held[i].ID == heldID {
			delete(s.seen, s.held[i].key())
			s.held = slices.Concat(s.held[:i], s.held[i+1:]) // boards handed out before keep theirs
			return
		}
	}
}

func (s *state) withdraw(e *Withdrawn) {
	s.own(e.Key).withdraw(e.SourceID)
	if row, _, _ := s.look(DateOf(e.At), e.Key); row != nil && row.SourceID == e.SourceID {
		withdrawn := *row
		withdrawn.Rank = rankWithdrawn
		s.setRow(withdrawn)
	}
}
