package engine

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The view that a snapshot keeps is the one that it would make.
func TestT1_TheViewThatIsKeptIsTheView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := NewCurrencyState("USD", testCatalogue(), DefaultRules())
		now := noon
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-20, 40).Draw(t, "hours")) * time.Hour)
			decision, _ := state.Decide(drawCommand(t, now, state.Snapshot().Quarantine()), now)
			replay(state, decision.Events)
			snapshot := state.Snapshot()
			for range 3 {
				at := now.Add(time.Duration(rapid.IntRange(-30, 60).Draw(t, "look")) * time.Hour)
				view := snapshot.view(at)
				sameView(t, view, snapshot.makeView(at))
				if again := snapshot.view(at); again != view {
					t.Fatal("a view that still holds was made again")
				}
			}
		}
	})
}

func sameView(t *rapid.T, got, want *currencyView) {
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
