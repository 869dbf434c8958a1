package engine

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// A book is the same whether the rows of its snapshot are sorted or not, and shares no row with the snapshot.
func TestRowsAreRestoredInAnyOrder(t *testing.T) {
	f := newFixture(t)
	for i, id := range []string{"bhd", "popular", "caribe", "vimenca", "banreservas"} {
		for day := range 40 {
			at := noon.AddDate(0, 0, -day)
			if (day+i)%3 > 0 {
				f.now = at
				f.do(Observe{[]Refresh{{SourceID: "a", ObservedAt: at, Observations: []Observation{usd(id, "57", "60")}}}})
			}
		}
	}
	want := f.book.State()
	if len(want.History) < 100 {
		t.Fatalf("%d rows", len(want.History))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		mixed := want
		mixed.History = slices.Clone(want.History)
		if round > 0 {
			random.Shuffle(len(mixed.History), func(i, j int) {
				mixed.History[i], mixed.History[j] = mixed.History[j], mixed.History[i]
			})
		}
		book := Restore(mixed, testCatalogue(), DefaultRules())
		clear(mixed.History)
		if got := book.State(); !reflect.DeepEqual(got.History, want.History) {
			t.Fatalf("round %d: %d rows, want %d", round, len(got.History), len(want.History))
		}
	}
}
