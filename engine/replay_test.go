package engine

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawCommand draws any command, good or bad.
func drawCommand(t *rapid.T, now time.Time, quarantined []Quarantined) Command {
	institution := rapid.SampledFrom([]string{"bhd", "popular", "caribe", "vimenca", "romana", "bancamerica", "bcrd"})
	source := rapid.SampledFrom([]string{"a", "infodolar", "manual", "past"})
	switch kind := rapid.IntRange(0, 9).Draw(t, "command"); {
	case kind == 0:
		return Withdraw{QuoteKey{institution.Draw(t, "of"), Unspecified, Commercial}, source.Draw(t, "by"), "ana"}
	case kind <= 2 && len(quarantined) > 0:
		one := rapid.SampledFrom(quarantined).Draw(t, "quarantined")
		if kind == 1 && one.Reason != OutOfBand { // an operator may release any value
			return Release{one.ID, "ana"}
		}
		return Reject{one.ID, "ana"}
	}
	side := rapid.SampledFrom([]string{"", "0", "56", "57", "57.0", "57.25", "58.949999999999996", "60", "61.5", "64", "6.09", "12.5", "x"})
	day := int(DateOf(now))
	slot := now.Truncate(8 * time.Hour)
	var refreshes []Refresh
	for range rapid.IntRange(1, 3).Draw(t, "refreshes") {
		refresh := Refresh{
			SourceID:   source.Draw(t, "source"),
			ObservedAt: now.Add(-time.Duration(rapid.IntRange(-1, 60).Draw(t, "age")) * time.Hour),
			Complete:   rapid.Bool().Draw(t, "complete"),
			Slot:       rapid.SampledFrom([]time.Time{{}, {}, slot, slot.Add(-8 * time.Hour), slot.Add(8 * time.Hour)}).Draw(t, "slot"),
		}
		for range rapid.IntRange(0, 6).Draw(t, "observations") {
			refresh.Observations = append(refresh.Observations, Observation{
				InstitutionID: institution.Draw(t, "institution"), Currency: "USD",
				Channel: rapid.SampledFrom([]Channel{"", Branch, Digital}).Draw(t, "channel"),
				Kind:    rapid.SampledFrom([]Kind{"", Commercial, Reference}).Draw(t, "kind"),
				Buy:     side.Draw(t, "buy"), Sell: side.Draw(t, "sell"),
				EffectiveDate: Date(rapid.SampledFrom([]int{0, 0, day, day - 1, day + 3, day + 9, 730_000, 731_000}).Draw(t, "date")), // 1999, 2002
				Document:      rapid.SampledFrom([]string{"", "5e1f", strings.Repeat("ab", 40)}).Draw(t, "document"),
			})
		}
		refreshes = append(refreshes, refresh)
	}
	return Observe{refreshes}
}

// The events applied to a new state give the same state, and so do a snapshot and the events after it; deciding changes
// nothing; a batch decides as its refreshes do one by one; and what is served obeys the rules.
func TestReplayedStateIsLiveState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := NewCurrencyState("USD", testCatalogue(), DefaultRules())
		single := NewCurrencyState("USD", testCatalogue(), DefaultRules())
		var events []Event
		var snapshot SavedCurrency
		now, steps := noon, rapid.IntRange(1, 25).Draw(t, "steps")
		cutAt, afterCut := rapid.IntRange(0, steps-1).Draw(t, "cut"), 0
		for step := range steps {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "hours")) * time.Hour)
			command := drawCommand(t, now, state.Snapshot().Quarantine())
			before := state.Snapshot().Saved()
			decision, _ := state.Decide(command, now)
			if !reflect.DeepEqual(before, state.Snapshot().Saved()) {
				t.Fatal("deciding changed the state")
			}
			for _, event := range decision.Events {
				state.Apply(event)
			}
			events = append(events, decision.Events...)
			applyOneByOne(single, command, now)
			if step == cutAt {
				snapshot, afterCut = state.Snapshot().Saved(), len(events)
			}
			servesOnlyGood(t, state.Snapshot().view(now))
		}
		same(t, "a full replay", state, replay(NewCurrencyState("USD", testCatalogue(), DefaultRules()), events))
		same(t, "snapshot and tail", state, replay(RestoreCurrencyState(snapshot, testCatalogue(), DefaultRules()), events[afterCut:]))
		same(t, "one refresh at a time", state, single)
	})
}

// Decisions that did not become durable leave no trace: not in a snapshot, and not in the market for the next ones.
func TestDecideAll_WithoutApplyChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.accept("bhd-site", usd("bhd", "57", "60"))
	snapshot, saved := f.state.Snapshot(), f.state.Snapshot().Saved()
	f.advance(time.Hour)
	for _, observations := range [][]Observation{goodBanks(), {usd("bhd", "57.2", "60"), usd("abonap", "47", "48")}} {
		refresh := Refresh{SourceID: "bhd-site", ObservedAt: f.now, Observations: observations}
		if got := f.state.DecideAll([]Observe{{[]Refresh{refresh}}}, f.now)[0].Receipt; len(got.Refused) > 0 {
			t.Errorf("compared with quotes that are not durable: %+v", got.Refused)
		}
	}
	if !reflect.DeepEqual(snapshot.Saved(), saved) {
		t.Errorf("the snapshot has %+v, want %+v", snapshot.Saved(), saved)
	}
}

func applyOneByOne(state *CurrencyState, command Command, now time.Time) {
	commands := []Command{command}
	if observe, ok := command.(Observe); ok {
		commands = nil
		for _, refresh := range observe.Refreshes {
			commands = append(commands, Observe{[]Refresh{refresh}})
		}
	}
	for _, one := range commands {
		decision, _ := state.Decide(one, now)
		replay(state, decision.Events)
	}
}

func replay(state *CurrencyState, events []Event) *CurrencyState {
	for _, event := range events {
		state.Apply(event)
	}
	return state
}

func same(t *rapid.T, what string, want, got *CurrencyState) {
	if !reflect.DeepEqual(want.Snapshot().Saved(), got.Snapshot().Saved()) {
		t.Fatalf("%s differs:\nwant %+v\ngot  %+v", what, want.Snapshot().Saved(), got.Snapshot().Saved())
	}
}

func servesOnlyGood(t *rapid.T, view *currencyView) {
	for _, rate := range view.rates {
		if past := rate.SourceID == "past" && !rate.EffectiveDate.IsZero() && rate.EffectiveDate <= dayOf("2003-12-31"); !past &&
			(rate.Buy.String() == "12.5" || rate.Sell.String() == "12.5") {
			t.Fatalf("%s is served with %s / %s", rate.ID, rate.Buy, rate.Sell)
		}
		for _, side := range []Decimal{rate.Buy, rate.Sell} {
			if side.IsZero() || side.String() == "6.09" || len(side.String()) > 12 {
				t.Fatalf("%s is served with %s", rate.ID, side)
			}
		}
		if rate.Buy.IsNull() && rate.Sell.IsNull() || !rate.Buy.IsNull() && !rate.Sell.IsNull() && rate.Buy.Compare(rate.Sell) > 0 {
			t.Fatalf("%s is served with %s / %s", rate.ID, rate.Buy, rate.Sell)
		}
	}
	for operation, ranking := range map[Operation][]*Rate{Buy: view.toBuy, Sell: view.toSell} {
		if !slices.IsSortedFunc(ranking, func(a, b *Rate) int { return compareRanked(operation, a, b) }) {
			t.Fatalf("the ranking to %s is out of order", operation)
		}
	}
}
