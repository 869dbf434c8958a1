package engine

import (
	"cmp"
	"slices"
	"time"
)

// AnsweredSlot is the newest slot of the schedule for which one currency has a refresh of a source.
type AnsweredSlot struct {
	SourceID   string
	Slot       time.Time
	Currencies int // that had observations in the refresh
}

func (e *Refreshed) setSlot(refresh *Refresh) {
	if !refresh.Slot.IsZero() {
		e.Slot, e.Currencies = plainUTC(refresh.Slot), max(1, refresh.currencies)
	}
}

// slotAnswered reports that the source was accepted for the refresh's slot, or a later one, before.
func (s *quoteStore) slotAnswered(refresh *Refresh) bool {
	return !refresh.Slot.IsZero() && !refresh.Slot.After(s.answeredSlot(refresh.SourceID))
}

// answeredSlot returns the newest slot of a source, zero when there is none.
func (s *quoteStore) answeredSlot(sourceID string) time.Time {
	if at, known := slices.BinarySearchFunc(s.slots, sourceID, compareAnsweredSlot); known {
		return s.slots[at].Slot
	}
	return time.Time{}
}

func compareAnsweredSlot(slot AnsweredSlot, sourceID string) int {
	return cmp.Compare(slot.SourceID, sourceID)
}

func (s *quoteStore) setAnsweredSlot(slot AnsweredSlot) {
	if !slot.Slot.After(s.answeredSlot(slot.SourceID)) {
		return
	}
	if s.slotsShared {
		s.slots, s.slotsShared = slices.Clone(s.slots), false
	}
	s.slots = insertOrReplace(s.slots, slot, compareAnsweredSlot, slot.SourceID)
}

// CompletedSlots returns for each source the newest slot that all its currencies have answered; a source without one is
// missing. A slot that a crash interrupted between two currencies is not completed: it is done again, which changes
// nothing in the currencies that have answered it.
func CompletedSlots(snapshots []*CurrencySnapshot) map[string]time.Time {
	progress := map[string]*slotProgress{}
	for _, snapshot := range snapshots {
		for _, slot := range snapshot.slots {
			if progress[slot.SourceID] == nil {
				progress[slot.SourceID] = &slotProgress{}
			}
			progress[slot.SourceID].add(slot)
		}
	}
	completed := make(map[string]time.Time, len(progress))
	for source, p := range progress {
		if slot := p.completed(); !slot.IsZero() {
			completed[source] = slot
		}
	}
	return completed
}

// slotProgress counts the currencies that have answered the newest slot of one source.
type slotProgress struct {
	newest, before     time.Time // before is the newest slot of the other currencies
	answered, expected int       // currencies, of the newest slot
}

func (p *slotProgress) add(slot AnsweredSlot) {
	switch {
	case slot.Slot.After(p.newest):
		*p = slotProgress{slot.Slot, p.newest, 1, slot.Currencies}
	case slot.Slot.Equal(p.newest):
		p.answered, p.expected = p.answered+1, max(p.expected, slot.Currencies)
	case slot.Slot.After(p.before):
		p.before = slot.Slot
	}
}

func (p *slotProgress) completed() time.Time {
	if p.answered < p.expected {
		return p.before
	}
	return p.newest
}
