package engine

import (
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever happens to a state, it comes out the same with a pause after every step; and what it has handed out before stays as it
// was in every pause.
func TestF12_PiecesMakeTheSameWhole(t *testing.T) {
	pauses := 0
	rapid.Check(t, func(t *rapid.T) {
		whole, cut := NewCurrencyState("USD", testCatalogue(), DefaultRules()), NewCurrencyState("USD", testCatalogue(), DefaultRules())
		cut.store.yielder.every = 1
		var view *RankedView
		now := noon
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-5, 40).Draw(t, "hours")) * time.Hour)
			command := drawCommand(t, now, whole.Snapshot().Quarantine())
			snapshot := cut.Snapshot()
			before := snapshot.Saved()
			cut.SetYield(func() {
				if pauses++; pauses%8 == 0 && !reflect.DeepEqual(snapshot.Saved(), before) {
					t.Fatal("what was handed out has changed in a pause")
				}
			})
			wanted, wantedErr := whole.Decide(command, now)
			decision, err := cut.Decide(command, now)
			if !reflect.DeepEqual(decision, wanted) || !reflect.DeepEqual(err, wantedErr) {
				t.Fatalf("decided in pieces: %+v, %v, as a whole: %+v, %v", decision, err, wanted, wantedErr)
			}
			replay(whole, wanted.Events)
			replay(cut, decision.Events)
			view = cut.View(view, now)
			sameView(t, view, whole.Snapshot().View(nil, now))
			cut.SetYield(nil)
			same(t, "in pieces", whole, cut)
		}
	})
	if pauses == 0 {
		t.Error("there was no pause")
	}
}

// A view made of any older one, of an earlier snapshot or a later time, is the one that is made of nothing.
func TestT1_ViewAfterIsTheView(t *testing.T) {
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

// allocsPerYieldMax is what a piece may allocate: what is said of stepsPerYield observations, and the lists of a whole refresh.
const allocsPerYieldMax = 4 * stepsPerYield

// However large a refresh is, and however much is known already, a piece is small: between two pauses few steps are counted, and
// few objects made, which nobody has to count.
func TestF12_PiecesAreSmall(t *testing.T) {
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

// measureYields has a refresh of 36 sources decided, applied and published, and counts the pieces and the objects made in them.
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
		cut := func() {
			now := allocatedObjects()
			worst = max(worst, now-before)
			before = now
			pieces++
		}
		c.state.SetYield(cut)
		work()
		c.state.SetYield(nil)
		cut()
	}
	return pieces, worst
}

func allocatedObjects() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
