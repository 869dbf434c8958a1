package engine

import (
	"cmp"
	"slices"
	"time"
)

// AnsweredSlot is the newest slot (scheduled time) of a source for which one currency has accepted a refresh.
type AnsweredSlot struct {
	SourceID   string
	Slot       time.Time
	Currencies int    // number of currencies in the whole refresh
	Baseline   string // Refresh.Baseline; "" if another currency stores it
}

func (e *Refreshed) setSlot(refresh *Refresh) {
	if refresh.Slot.IsZero() {
		return
	}
	e.Slot, e.Currencies = plainUTC(refresh.Slot), max(1, refresh.currencies)
	if len(refresh.Baseline) <= BaselineBytesMax {
		e.Baseline = refresh.Baseline
	}
}

// slotAnswered reports whether the source has an accepted refresh for this slot or a later one.
func (s *quoteStore) slotAnswered(refresh *Refresh) bool {
	return !refresh.Slot.IsZero() && !refresh.Slot.After(s.answeredSlot(refresh.SourceID))
}

// answeredSlot returns the newest slot of a source, or zero.
func (s *quoteStore) answeredSlot(sourceID string) time.Time {
	if i, found := slices.BinarySearchFunc(s.slots, sourceID, compareAnsweredSlot); found {
		return s.slots[i].Slot
	}
	return time.Time{}
}

func compareAnsweredSlot(slot AnsweredSlot, sourceID string) int {
	return cmp.Compare(slot.SourceID, sourceID)
}

func (s *quoteStore) setAnsweredSlot(slot AnsweredSlot) {
	if slot.Slot.After(s.answeredSlot(slot.SourceID)) {
		s.slots = insertOrReplace(s.slots, slot, compareAnsweredSlot, slot.SourceID)
	}
}

// CompletedSlots returns the newest slot of each source whose refresh was accepted by all currencies in it. Sources
// without such a slot are not in the map. After a crash, only some currencies may have accepted a refresh. The
// collector then repeats the refresh, and those currencies ignore the repetition.
func CompletedSlots(snapshots []*CurrencySnapshot) map[string]time.Time {
	bySource := map[string][]AnsweredSlot{}
	for _, snapshot := range snapshots {
		for _, slot := range snapshot.slots {
			bySource[slot.SourceID] = append(bySource[slot.SourceID], slot)
		}
	}
	completed := make(map[string]time.Time, len(bySource))
	for source, slots := range bySource {
		slices.SortFunc(slots, func(a, b AnsweredSlot) int { return b.Slot.Compare(a.Slot) })
		answered, expected := 0, 0 // currencies that accepted the newest slot, and currencies of its refresh
		for answered < len(slots) && slots[answered].Slot.Equal(slots[0].Slot) {
			expected = max(expected, slots[answered].Currencies)
			answered++
		}
		switch {
		case answered >= expected:
			completed[source] = slots[0].Slot
		case answered < len(slots):
			completed[source] = slots[answered].Slot
		}
	}
	return completed
}

// Baselines returns each source's newest Refresh.Baseline.
func Baselines(snapshots []*CurrencySnapshot) map[string]string {
	newest := map[string]AnsweredSlot{}
	for _, snapshot := range snapshots {
		for _, slot := range snapshot.slots {
			if slot.Baseline != "" && slot.Slot.After(newest[slot.SourceID].Slot) {
				newest[slot.SourceID] = slot
			}
		}
	}
	baselines := make(map[string]string, len(newest))
	for source, slot := range newest {
		baselines[source] = slot.Baseline
	}
	return baselines
}
