package actors

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
)

// collected is what a source says for a slot in dollars and euros, as a collector hands it over.
func collected(source string, slot time.Time, dollars, euros string) engine.Refresh {
	refresh := saying(source, slot.Add(time.Second), "USD", dollars, "62", "popular", "bhd")
	refresh.Observations = append(refresh.Observations, saying(source, slot, "EUR", euros, "71", "popular").Observations...)
	refresh.Slot, refresh.Complete, refresh.Baseline = slot, true, "learnt until "+slot.String()
	return refresh
}

func slotsOf(t panicStops, s *System) map[string]time.Time {
	t.Helper()
	all, err := s.Slots()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func baselinesOf(t panicStops, s *System) map[string]string {
	t.Helper()
	all, err := s.Baselines()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// D5: wherever a crash cuts the slots, doing again what Slots calls undone gives the same state as without a crash,
// and the log has exactly one event for each source, currency and slot.
func TestX16_EachSlotIsPublishedOnceWhereverACrashCuts(t *testing.T) {
	var work []engine.Refresh
	for i := range 3 {
		slot := noon.Add(time.Duration(i-3) * 4 * time.Hour)
		for _, source := range []string{"a", "b"} {
			work = append(work, collected(source, slot, fmt.Sprintf("57.%d", i), "66"))
		}
	}
	whole := &memoryJournal{}
	s := start(t, Config{Journal: whole, SnapshotRecords: 1 << 40})
	for _, refresh := range work {
		observe(t, s, refresh)
	}
	want, wantSlots, wantBaselines := normal(states(t, s)), slotsOf(t, s), baselinesOf(t, s)
	if last := work[len(work)-1]; wantBaselines["a"] != last.Baseline || wantBaselines["b"] != last.Baseline {
		t.Errorf("learnt: %v", wantBaselines)
	}
	cutBetween := 0
	for cut := range whole.Last() + 1 {
		journal := whole.upTo(cut)
		s := start(t, Config{Journal: journal, SnapshotRecords: 1 << 40})
		repeated := 0
		for _, refresh := range work {
			if refresh.Slot.After(slotsOf(t, s)[refresh.SourceID]) {
				repeated += observe(t, s, refresh).Repeated
			}
		}
		if repeated > 0 {
			cutBetween++
		}
		if got := normal(states(t, s)); !reflect.DeepEqual(got, want) || !maps.Equal(slotsOf(t, s), wantSlots) || !maps.Equal(baselinesOf(t, s), wantBaselines) {
			t.Errorf("cut behind record %d: another state", cut)
		}
		for what, n := range published(t, journal.crashed().records) {
			if n != 1 {
				t.Errorf("cut behind record %d: %s is published %d times", cut, what, n)
			}
		}
		if got := len(published(t, journal.crashed().records)); got != 2*len(work) {
			t.Errorf("cut behind record %d: %d publications, want %d", cut, got, 2*len(work))
		}
	}
	if cutBetween == 0 {
		t.Error("no cut fell between two currencies of one slot")
	}
}

func published(t panicStops, records [][]byte) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, one := range records {
		events, err := record.NewDecoder().Events(one, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events {
			e := event.(*engine.Refreshed)
			count[fmt.Sprintf("%s %s %s", e.SourceID, e.Currency, e.Slot)]++
		}
	}
	return count
}

// In a cluster the node that collects next knows what the others have learnt about a source.
func TestShared_X26_EveryNodeKnowsWhatWasLearnt(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	for i, node := range f.nodes {
		refresh := collected("a", noon.Add(time.Duration(i-3)*time.Hour), "57", "66")
		observe(t, node.System, refresh)
		f.settled()
		for _, other := range f.nodes {
			states(t, other.System) // waits until all records are applied
			if got := baselinesOf(t, other.System); got["a"] != refresh.Baseline {
				t.Errorf("node %d has %v after a run of node %d", other.node.id, got, node.node.id)
			}
		}
	}
	f.stop()
}
