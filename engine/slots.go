package engine

import (
	"cmp"
	"slices"
	"time"
)

// AnsweredSlot is the newest slot of the schedule that a source was heard for (X16).
type AnsweredSlot struct {
	SourceID   string
	Slot       time.Time
	Currencies int // that were to hear of it
}

// setSlot notes in the event which slot the refresh answers.
func (e *Refreshed) setSlot(refresh *Refresh) {
	if !refresh.Slot.IsZero() {
		e.Slot, e.Currencies = plainUTC(refresh.Slot), max(1, refresh.currencies)
	}
}

// slotAnswered reports that the refresh answers a slot that its source was heard for already, or an earlier one.
func (s *quoteStore) slotAnswered(refresh *Refresh) bool {
	return !refresh.Slot.IsZero() && !refresh.Slot.After(s.answeredSlot(refresh.SourceID))
}

// answeredSlot is the newest one that the source was heard for, zero when there is none.
func (s *quoteStore) answeredSlot(sourceID string) time.Time {
	if at, known := slices.BinarySearchFunc(s.slots, sourceID, compareAnsweredSlot); known {
		return s.slots[at].Slot
	}
	return time.Time{}
}

func compareAnsweredSlot(h AnsweredSlot, sourceID string) int {
	return cmp.Compare(h.SourceID, sourceID)
}

// setAnsweredSlot remembers a slot. Boards and drafts keep the list that they have.
func (s *quoteStore) setAnsweredSlot(heard AnsweredSlot) {
	if !heard.Slot.After(s.answeredSlot(heard.SourceID)) {
		return
	}
	if s.slotsShared {
		s.slots, s.slotsShared = slices.Clone(s.slots), false
	}
	s.slots = insertOrReplace(s.slots, heard, compareAnsweredSlot, heard.SourceID)
}

// CompletedSlots is for each source the newest slot that all currencies have heard of which were to. A slot that a crash cut short
// between two currencies is not done: doing it again changes nothing where it was heard. A source that has done none is not in it.
func CompletedSlots(boards []*CurrencySnapshot) map[string]time.Time {
	all := map[string]*slotProgress{}
	for _, board := range boards {
		for _, heard := range board.slots {
			if all[heard.SourceID] == nil {
				all[heard.SourceID] = &slotProgress{}
			}
			all[heard.SourceID].add(heard)
		}
	}
	done := make(map[string]time.Time, len(all))
	for source, h := range all {
		if slot := h.completed(); !slot.IsZero() {
			done[source] = slot
		}
	}
	return done
}

// slotProgress gathers who has heard of the newest slot of one source.
type slotProgress struct {
	newest, before     time.Time // before is the newest of the others
	answered, expected int       // currencies, of the newest
}

func (h *slotProgress) add(one AnsweredSlot) {
	switch {
	case one.Slot.After(h.newest):
		*h = slotProgress{one.Slot, h.newest, 1, one.Currencies}
	case one.Slot.Equal(h.newest):
		h.answered, h.expected = h.answered+1, max(h.expected, one.Currencies)
	case one.Slot.After(h.before):
		h.before = one.Slot
	}
}

func (h *slotProgress) completed() time.Time {
	if h.answered < h.expected {
		return h.before
	}
	return h.newest
}
