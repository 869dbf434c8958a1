package actors

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
