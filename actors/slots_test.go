package actors

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
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

// Without slots the same crash publishes twice: the check above can fail.
func TestX16_Control_WithoutSlotsACrashPublishesTwice(t *testing.T) {
	journal := &memoryJournal{}
	s := start(t, Config{Journal: journal, SnapshotRecords: 1 << 40})
	for i := range 2 {
		refresh := collected("a", noon.Add(-time.Hour), "57", "66")
		refresh.Slot, refresh.ObservedAt = time.Time{}, refresh.ObservedAt.Add(time.Duration(i)*time.Second)
		observe(t, s, refresh)
	}
	if got := slices.Sorted(maps.Values(published(t, journal.crashed().records))); !slices.Equal(got, []int{2, 2}) {
		t.Errorf("published %v times", got)
	}
}

// Commands that are decided as one get each its own numbers.
func TestX16_ABatchCountsRepetitionsByCommand(t *testing.T) {
	journal := newSlowJournal()
	s := start(t, Config{Journal: journal})
	slot := noon.Add(-time.Hour)
	only := func(source, buy string, slot time.Time, institutions ...string) engine.Refresh {
		refresh := saying(source, slot, "USD", buy, "62", institutions...)
		refresh.Slot = slot
		return refresh
	}
	first := observeSeparately(s, only("a", "57", slot, "popular"))
	<-journal.entered
	var waiting []*calls
	for i, refresh := range []engine.Refresh{
		only("a", "57.5", slot, "popular", "bhd"), only("a", "57.5", slot.Add(time.Minute), "popular", "bhd"), only("a", "0", slot.Add(time.Minute), "popular"),
		only("b", "0", slot, "popular", "caribe"), only("b", "57", slot, "popular"),
	} {
		waiting = append(waiting, observeSeparately(s, refresh))
		whenWaiting(t, s, "USD", i+1)
	}
	journal.outcome <- nil
	first.group.Wait()
	if n := journal.pass(); n != 2 {
		t.Errorf("%d records, want those of two slots in one batch", n)
	}
	for i, want := range []engine.Receipt{{Repeated: 2}, {Accepted: 2, Changed: 2}, {Repeated: 1}, {}, {Repeated: 1}} {
		waiting[i].group.Wait()
		got := waiting[i].receipts[0]
		refused := got.Refused
		got.Refused = nil
		if waiting[i].errs[0] != nil || !reflect.DeepEqual(got, want) || (len(refused) == 2) != (i == 3) {
			t.Errorf("command %d: %+v with %+v refused, %v; want %+v", i, got, refused, waiting[i].errs[0], want)
		}
		if i == 3 && (refused[1].Refresh != 0 || refused[1].Index != 1 || refused[1].Reason != engine.Zero) {
			t.Errorf("refusal %+v", refused[1])
		}
	}
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
