package engine

import (
	"cmp"
	"slices"
	"time"
)

// HeardSlot is the newest slot of the schedule that a source was heard for (X16).
type HeardSlot struct {
	SourceID   string
	Slot       time.Time
	Currencies int // that were to hear of it
}

// answers notes in the event which slot the refresh answers.
func (e *Refreshed) answers(refresh *Refresh) {
	if !refresh.Slot.IsZero() {
		e.Slot, e.Currencies = universal(refresh.Slot), max(1, refresh.currencies)
	}
}

// heard reports that the refresh answers a slot that its source was heard for already, or an earlier one.
func (s *state) heard(refresh *Refresh) bool {
	return !refresh.Slot.IsZero() && !refresh.Slot.After(s.slot(refresh.SourceID))
}

// slot is the newest one that the source was heard for, zero when there is none.
func (s *state) slot(sourceID string) time.Time {
	if at, known := slices.BinarySearchFunc(s.slots, sourceID, compareSlotSource); known {
		return s.slots[at].Slot
	}
	return time.Time{}
}

func compareSlotSource(h HeardSlot, sourceID string) int { return cmp.Compare(h.SourceID, sourceID) }

// hear remembers a slot. Boards and drafts keep the list that they have.
func (s *state) hear(heard HeardSlot) {
	if !heard.Slot.After(s.slot(heard.SourceID)) {
		return
	}
	if s.lent {
		s.slots, s.lent = slices.Clone(s.slots), false
	}
	s.slots = placed(s.slots, heard, compareSlotSource, heard.SourceID)
}

// DoneSlots is for each source the newest slot that all currencies have heard of which were to. A slot that a crash cut short
// between two currencies is not done: doing it again changes nothing where it was heard. A source that has done none is not in it.
func DoneSlots(boards []*Board) map[string]time.Time {
	all := map[string]*hearing{}
	for _, board := range boards {
		for _, heard := range board.slots {
			if all[heard.SourceID] == nil {
				all[heard.SourceID] = &hearing{}
			}
			all[heard.SourceID].add(heard)
		}
	}
	done := make(map[string]time.Time, len(all))
	for source, h := range all {
		if slot := h.done(); !slot.IsZero() {
			done[source] = slot
		}
	}
	return done
}

// hearing gathers who has heard of the newest slot of one source.
type hearing struct {
	newest, before  time.Time // before is the newest of the others
	heard, expected int       // currencies, of the newest
}

func (h *hearing) add(one HeardSlot) {
	switch {
	case one.Slot.After(h.newest):
		*h = hearing{one.Slot, h.newest, 1, one.Currencies}
	case one.Slot.Equal(h.newest):
		h.heard, h.expected = h.heard+1, max(h.expected, one.Currencies)
	case one.Slot.After(h.before):
		h.before = one.Slot
	}
}

func (h *hearing) done() time.Time {
	if h.heard < h.expected {
		return h.before
	}
	return h.newest
}
