package engine

import (
	"fmt"
	"slices"
	"time"
)

// apply changes the store by an event, both for a new event and in a replay of the log.
func (s *quoteStore) apply(event Event) {
	switch e := event.(type) {
	case *Refreshed:
		for i := range e.Quotes {
			s.accept(e, &e.Quotes[i])
		}
		for i := range e.Quarantined {
			s.addQuarantined(e.Quarantined[i])
		}
		s.setAnsweredSlot(AnsweredSlot{e.SourceID, e.Slot, e.Currencies, e.Baseline})
	case *Released:
		s.removeQuarantined(e.QuarantineID)
		s.accept(&Refreshed{
			Currency: e.Currency, SourceID: e.SourceID, ObservedAt: e.ObservedAt, Priority: e.Priority, Manual: e.Manual,
			UpstreamSource: e.UpstreamSource,
		}, &e.Quote)
		if q := s.quote(e.Quote.Key).sourceQuote(e.SourceID); q != nil && !e.Quote.Backfill {
			released := *q
			released.Released = true
			s.mutableQuote(e.Quote.Key).accept(&released)
			s.market.known = false
		}
	case *Rejected:
		s.removeQuarantined(e.QuarantineID)
	case *Withdrawn:
		s.withdraw(e)
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

func (s *quoteStore) accept(event *Refreshed, quote *AcceptedQuote) {
	if !quote.Backfill {
		q := s.mutableQuote(quote.Key)
		s.market.removeQuote(q)
		q.accept(q.nextSourceQuote(event, quote))
		s.market.addQuote(q, event.ObservedAt)
	}
	s.record(historyRow(event, quote))
}

// nextSourceQuote returns the SourceQuote of an accepted observation. An observation that repeats the prices and the
// date does not change CollectedAt.
func (q *quote) nextSourceQuote(event *Refreshed, quote *AcceptedQuote) *SourceQuote {
	next := &SourceQuote{
		Key: quote.Key, SourceID: event.SourceID, Buy: quote.Buy, Sell: quote.Sell,
		EffectiveDate: quote.EffectiveDate, PublishedAt: pastOnly(quote.PublishedAt, event.ObservedAt), UpstreamSource: event.UpstreamSource,
		CollectedAt: event.ObservedAt, LastCheckedAt: event.ObservedAt, ExpiresAt: quote.ExpiresAt,
		Priority: event.Priority, Manual: event.Manual,
	}
	if last := q.sourceQuote(event.SourceID); last != nil && last.sameValue(quote) {
		next.CollectedAt, next.Released = last.CollectedAt, last.Released
	}
	return next
}

// pastOnly returns the time of publication that a source states, or zero if that is after the observation: the source
// has probably swapped day and month, or mistaken the year. Records of earlier versions contain such times too.
func pastOnly(publishedAt, observedAt time.Time) time.Time {
	if publishedAt.After(observedAt) {
		return time.Time{}
	}
	return publishedAt
}

func (q *SourceQuote) sameValue(quote *AcceptedQuote) bool {
	return q.Buy.Equal(quote.Buy) && q.Sell.Equal(quote.Sell) && q.EffectiveDate == quote.EffectiveDate
}

func (s *quoteStore) addQuarantined(quarantined Quarantined) {
	s.quarantine = append(s.quarantine, quarantined)
	s.lastQuarantineID = max(s.lastQuarantineID, quarantined.ID)
	if len(s.quarantine) > quarantineMax {
		s.quarantine = s.quarantine[1:]
	}
	s.addPending(&quarantined)
}

// sightingPermille is the maximum difference between two observations of the same implausible value, in thousandths.
const sightingPermille = 10

// addPending stores an implausible value, which the source can confirm by repetition (see validator.confirmed).
func (s *quoteStore) addPending(quarantined *Quarantined) {
	if quarantined.Reason != Jump && quarantined.Reason != OffMarket && quarantined.Reason != OutOfBand {
		return
	}
	key := quarantined.Observation.Key()
	if last := s.quote(key).sourceQuote(quarantined.SourceID); last != nil && !quarantined.ObservedAt.After(last.LastCheckedAt) {
		return
	}
	buy, _ := parseSide(quarantined.Observation.Buy)
	sell, _ := parseSide(quarantined.Observation.Sell)
	pending := PendingConfirmation{key, quarantined.SourceID, quarantined.ObservedAt, buy, sell, quarantined.ObservedAt, 1}
	if old, ok := s.quote(key).pendingOf(quarantined.SourceID); ok && pending.ObservedAt.After(old.ObservedAt) &&
		near(old.Buy, buy, sightingPermille) && near(old.Sell, sell, sightingPermille) {
		pending.Buy, pending.Sell, pending.Since, pending.Sightings = old.Buy, old.Sell, old.Since, old.Sightings+1
	}
	s.mutableQuote(key).addPending(pending)
}

// quarantineID returns the number of an equal observation in quarantine, so that a file that is read twice is not
// quarantined twice.
func (c *contents) quarantineID(observed *Quarantined) (uint64, bool) {
	for i := range slices.Backward(c.quarantine) {
		if q := &c.quarantine[i]; q.ObservedAt.Equal(observed.ObservedAt) && q.SourceID == observed.SourceID &&
			q.Observation.sameQuote(&observed.Observation) {
			return q.ID, true
		}
	}
	return 0, false
}

func (o *Observation) sameQuote(other *Observation) bool {
	return o.Key() == other.Key() && o.Buy == other.Buy && o.Sell == other.Sell && o.EffectiveDate == other.EffectiveDate &&
		o.PublishedAt.Equal(other.PublishedAt)
}

func (s *quoteStore) removeQuarantined(id uint64) {
	for i := range s.quarantine {
		if s.quarantine[i].ID == id {
			s.quarantine = slices.Concat(s.quarantine[:i], s.quarantine[i+1:]) // snapshots share the old array
			return
		}
	}
}

func (s *quoteStore) withdraw(e *Withdrawn) {
	value := s.quote(e.Key).sourceQuote(e.SourceID)
	if !e.HistoryOnly {
		s.mutableQuote(e.Key).withdraw(e.SourceID)
		s.market.known = false
	}
	switch {
	case e.HistorySince.IsZero():
		s.withdrawRow(DateOf(e.At), e, nil, false)
	case e.HistoryOnly:
		s.withdrawRow(e.HistorySince, e, nil, true)
	default:
		for date := e.HistorySince; date <= DateOf(e.At); date++ {
			s.withdrawRow(date, e, value, true)
		}
	}
}

// withdrawRow removes the source's row of a day, or, if remove is false, lets every other value replace the row. If
// value is not nil, it leaves rows with other values unchanged.
func (s *quoteStore) withdrawRow(date Date, e *Withdrawn, value *SourceQuote, remove bool) {
	row := s.findRow(date, e.Key)
	if row == nil || row.SourceID != e.SourceID || value != nil && !(row.Buy.Equal(value.Buy) && row.Sell.Equal(value.Sell)) {
		return
	}
	if remove {
		s.removeRows(date, func(r *HistoryEntry) bool { return r == row })
		return
	}
	withdrawn := *row
	withdrawn.Precedence = precedenceWithdrawn
	s.setRow(&withdrawn)
}
