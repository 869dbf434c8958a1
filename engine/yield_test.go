package engine

import (
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The result does not depend on yields, and what was returned before does not change in a yield.
func TestF12_YieldsDoNotChangeTheResult(t *testing.T) {
	pauses := 0
	rapid.Check(t, func(t *rapid.T) {
		whole, yielding := NewCurrencyState("USD", testCatalogue(), DefaultRules()), NewCurrencyState("USD", testCatalogue(), DefaultRules())
		yielding.store.yielder.every = 1
		var view *RankedView
		now := noon
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-5, 40).Draw(t, "hours")) * time.Hour)
			command := drawCommand(t, now, whole.Snapshot().Quarantine())
			snapshot := yielding.Snapshot()
			before := snapshot.Saved()
			yielding.SetYield(func() {
				if pauses++; pauses%8 == 0 && !reflect.DeepEqual(snapshot.Saved(), before) {
					t.Fatal("what was handed out has changed in a pause")
				}
			})
			wanted, wantedErr := whole.Decide(command, now)
			decision, err := yielding.Decide(command, now)
			if !reflect.DeepEqual(decision, wanted) || !reflect.DeepEqual(err, wantedErr) {
				t.Fatalf("decided in pieces: %+v, %v, as a whole: %+v, %v", decision, err, wanted, wantedErr)
			}
			replay(whole, wanted.Events)
			replay(yielding, decision.Events)
			view = yielding.View(view, now)
			sameView(t, view, whole.Snapshot().View(nil, now))
			yielding.SetYield(nil)
			same(t, "in pieces", whole, yielding)
		}
	})
	if pauses == 0 {
		t.Error("there was no pause")
	}
}

// A view derived from any older view is the one that is derived from none.
func TestT1_ADerivedViewIsTheView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := NewCurrencyState("USD", testCatalogue(), DefaultRules())
		views := []*RankedView{nil}
		now := noon
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-20, 40).Draw(t, "hours")) * time.Hour)
			decision, _ := state.Decide(drawCommand(t, now, state.Snapshot().Quarantine()), now)
			replay(state, decision.Events)
			snapshot := state.Snapshot()
			for range 3 {
				at := now.Add(time.Duration(rapid.IntRange(-30, 60).Draw(t, "look")) * time.Hour)
				view := snapshot.View(rapid.SampledFrom(views).Draw(t, "old"), at)
				sameView(t, view, snapshot.View(nil, at))
				if again := snapshot.View(view, at); again != view {
					t.Fatal("a view that still holds was made again")
				}
				views = append(views, view)
			}
		}
	})
}

func sameView(t *rapid.T, got, want *RankedView) {
	for what, lists := range map[string][2][]*Rate{
		"rates": {got.rates, want.rates}, "to buy": {got.toBuy, want.toBuy}, "to sell": {got.toSell, want.toSell},
	} {
		if !slices.EqualFunc(lists[0], lists[1], sameRate) {
			t.Fatalf("%s: %d and %d, or others: %+v, want %+v", what, len(lists[0]), len(lists[1]), lists[0], lists[1])
		}
	}
	if !got.changesAt.Equal(want.changesAt) || got.current != want.current {
		t.Fatalf("changes at %v with %d current, want %v with %d", got.changesAt, got.current, want.changesAt, want.current)
	}
}

// allocsPerYieldMax bounds the allocations between two yields, including the lists of a whole refresh.
const allocsPerYieldMax = 4 * stepsPerYield

// Between two yields there are few steps and few allocations, however large a refresh and the state are.
func TestF12_YieldsAreFrequent(t *testing.T) {
	for _, institutions := range []int{45, 450} {
		pieces, worst := measureYields(institutions, stepsPerYield)
		t.Logf("%d institutions by 36 sources: %d pieces, at most %d objects in one", institutions, pieces, worst)
		if worst > allocsPerYieldMax {
			t.Errorf("%d institutions: a piece makes %d objects, at most %d", institutions, worst, allocsPerYieldMax)
		}
		if taken := 36 * institutions; pieces < taken/stepsPerYield {
			t.Errorf("%d observations in %d pieces of at most %d steps", taken, pieces, stepsPerYield)
		}
	}
}

// measureYields decides, applies and publishes a refresh of 36 sources, and returns the number of yields and the most
// allocations between two of them.
func measureYields(institutions, piece int) (pieces int, worst uint64) {
	c := newLargeFixture(institutions, 36)
	c.state.store.yielder.every = piece
	refreshes := c.refreshes()
	var decision Decision
	for _, work := range []func(){
		func() { decision, _ = c.state.Decide(Observe{refreshes}, c.now) },
		func() { replay(c.state, decision.Events) },
		func() { c.state.View(nil, c.now) },
	} {
		before := allocatedObjects()
		measure := func() {
			now := allocatedObjects()
			worst = max(worst, now-before)
			before = now
			pieces++
		}
		c.state.SetYield(measure)
		work()
		c.state.SetYield(nil)
		measure()
	}
	return pieces, worst
}

func allocatedObjects() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
