package engine

import (
	"cmp"
	"slices"
	"time"
)

// HeardSlot is the newest slot of the schedule that a source was heard for (X16).
type HeardSlot struct {
	SourceID string
	Slot     time.Time
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
func (s *state) hear(sourceID string, slot time.Time) {
	if slot.After(s.slot(sourceID)) {
		s.slots = placed(s.slots, HeardSlot{sourceID, slot}, func(h HeardSlot) string { return h.SourceID })
	}
}

// DoneSlots is for each source the slot up to which it is done: the oldest of those that the boards which know the source have.
// So a slot that a crash cut short between two currencies is not done; doing it again changes nothing where it was heard. A
// source that was never heard for a slot is not in it.
func DoneSlots(boards []*Board) map[string]time.Time {
	done := map[string]time.Time{}
	for _, board := range boards {
		for _, heard := range board.slots {
			done[heard.SourceID] = earlier(done[heard.SourceID], heard.Slot)
		}
	}
	return done
}
