package actors

import (
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
)

func (f *testCluster) sameStates() []engine.SavedCurrency {
	f.t.Helper()
	f.settled()
	first := states(f.t, f.nodes[0].System)
	for _, s := range f.nodes[1:] {
		if other := states(f.t, s.System); !reflect.DeepEqual(first, other) {
			f.t.Fatalf("node %d has other rates than node 1:\n%+v\n%+v", s.node.id, other, first)
		}
	}
	return first
}

// D5: three nodes that all believe themselves the collector publish the same slots at the same time, each with other
// values. The log has each source, currency and slot once, every node shows those values, and the receipt of
// the later ones counts repeated observations.
func TestShared_D5_ASlotIsPublishedOnce(t *testing.T) {
	f := startCluster(t, 3, 1, Config{SnapshotRecords: 1 << 40})
	defer f.stop()
	const slots = 15
	var changed, repeated atomic.Int64
	for i := range slots {
		slot := noon.Add(time.Duration(i-slots) * time.Hour)
		var working sync.WaitGroup
		for at, s := range f.nodes {
			working.Go(func() {
				receipt, err := s.Observe([]engine.Refresh{collected("a", slot, fmt.Sprintf("57.%d%02d", at, i), fmt.Sprintf("66.%d%02d", at, i))})
				if err != nil {
					t.Errorf("node %d: %v", s.node.id, err)
					return
				}
				changed.Add(int64(receipt.Changed))
				repeated.Add(int64(receipt.Repeated))
			})
		}
		working.Wait()
		f.sameStates()
	}
	var records [][]byte
	f.log.with(func() { records = f.log.records })
	all := published(t, records)
	for what, n := range all {
		if n != 1 {
			t.Errorf("%s is published %d times", what, n)
		}
	}
	const quotes = 3 // of a slot, in both currencies together
	if len(all) != 2*slots || changed.Load() != quotes*slots || repeated.Load() != 2*quotes*slots {
		t.Errorf("%d publications, %d observations changed something, %d repeated; want %d, %d and %d",
			len(all), changed.Load(), repeated.Load(), 2*slots, quotes*slots, 2*quotes*slots)
	}
	for _, s := range f.nodes {
		if got := slotsOf(t, s.System); !got["a"].Equal(noon.Add(-time.Hour)) {
			t.Errorf("node %d: the newest slot is %v", s.node.id, got)
		}
	}
}

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
	must(t, err)
	return all
}

func baselinesOf(t panicStops, s *System) map[string]string {
	t.Helper()
	all, err := s.Baselines()
	must(t, err)
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
		_, events, err := new(record.Decoder).Events(one)
		must(t, err)
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
