package engine

import (
	"fmt"
	"slices"
	"time"
)

// apply makes an event true of the state. It is the only writer of a state, live and at recovery.
func (s *quoteStore) apply(event Event) {
	switch e := event.(type) {
	case *Refreshed:
		from := provenance{e.SourceID, e.UpstreamSource, e.ObservedAt, e.Priority, e.Manual}
		for i := range e.Quotes {
			s.accept(e.Currency, from, &e.Quotes[i])
		}
		for i := range e.Quarantined {
			s.quarantineObservation(e.Quarantined[i])
		}
		s.setAnsweredSlot(AnsweredSlot{e.SourceID, e.Slot, e.Currencies})
	case *Released:
		s.removeQuarantined(e.QuarantineID)
		s.accept(e.Currency, provenance{e.SourceID, e.UpstreamSource, e.ObservedAt, e.Priority, e.Manual}, &e.Quote)
	case *Rejected:
		s.removeQuarantined(e.QuarantineID)
	case *Withdrawn:
		s.withdraw(e)
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

// provenance is who said something, when, and with which precedence.
type provenance struct {
	sourceID, upstream string
	observedAt         time.Time
	priority           int64
	manual             bool
}

func (s *quoteStore) accept(currency string, from provenance, quoted *AcceptedQuote) {
	s.yielder.step(1)
	if !quoted.Backfill {
		q := s.mutableQuote(quoted.Key)
		q.accept(q.nextSourceQuote(from, quoted))
	}
	s.record(historyRow(currency, from, quoted))
}

// nextSourceQuote keeps CollectedAt while neither a side nor the date changes (T4).
func (q *quote) nextSourceQuote(from provenance, quoted *AcceptedQuote) *SourceQuote {
	next := &SourceQuote{
		Key: quoted.Key, SourceID: from.sourceID, Buy: quoted.Buy, Sell: quoted.Sell,
		EffectiveDate: quoted.EffectiveDate, PublishedAt: quoted.PublishedAt, UpstreamSource: from.upstream,
		CollectedAt: from.observedAt, LastCheckedAt: from.observedAt, ExpiresAt: quoted.ExpiresAt,
		Priority: from.priority, Manual: from.manual,
	}
	if last := q.sourceQuote(from.sourceID); last != nil && last.sameValue(quoted) {
		next.CollectedAt = last.CollectedAt
	}
	return next
}

func (o *SourceQuote) sameValue(quoted *AcceptedQuote) bool {
	return o.Buy.Equal(quoted.Buy) && o.Sell.Equal(quoted.Sell) && o.EffectiveDate == quoted.EffectiveDate
}

func (s *quoteStore) quarantineObservation(held Quarantined) {
	s.yielder.step(1)
	s.quarantine = append(s.quarantine, held)
	s.quarantineIDs[held.key()] = held.ID
	s.lastQuarantineID = max(s.lastQuarantineID, held.ID)
	if len(s.quarantine) > quarantineMax {
		delete(s.quarantineIDs, s.quarantine[0].key())
		s.quarantine = s.quarantine[1:]
	}
	s.addPending(held)
}

// pendingOf remembers an implausible value, which the next answer of its source may confirm.
func (s *quoteStore) addPending(held Quarantined) {
	if held.Reason != Jump && held.Reason != OffMarket {
		return
	}
	key := held.Observation.Key()
	if last := s.quote(key).sourceQuote(held.SourceID); last != nil && !held.ObservedAt.After(last.LastCheckedAt) {
		return
	}
	buy, _ := readSide(held.Observation.Buy)
	sell, _ := readSide(held.Observation.Sell)
	s.mutableQuote(key).addPending(PendingConfirmation{key, held.SourceID, held.ObservedAt, buy, sell})
}

func (h *Quarantined) key() quarantineKey {
	key := h.Observation.Key()
	return quarantineKey{
		h.SourceID, key.Institution, key.Channel, key.Kind, h.Observation.Buy, h.Observation.Sell,
		h.Observation.EffectiveDate, h.Observation.PublishedAt.UnixNano(), h.ObservedAt.UnixNano(),
	}
}

func (s *quoteStore) removeQuarantined(heldID uint64) {
	for i := range s.quarantine {
		if s.quarantine[i].ID == heldID {
			delete(s.quarantineIDs, s.quarantine[i].key())
			s.quarantine = slices.Concat(s.quarantine[:i], s.quarantine[i+1:]) // boards handed out before keep theirs
			return
		}
	}
}

func (s *quoteStore) withdraw(e *Withdrawn) {
	s.mutableQuote(e.Key).withdraw(e.SourceID)
	if row, _, _ := s.findRow(DateOf(e.At), e.Key); row != nil && row.SourceID == e.SourceID {
		withdrawn := *row
		withdrawn.Precedence = precedenceWithdrawn
		s.setRow(withdrawn)
	}
}
