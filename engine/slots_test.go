package engine

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

// observeSlot is an answer of a source for a slot, observed now.
func (f *fixture) observeSlot(source string, slot time.Time, observations ...Observation) Receipt {
	f.t.Helper()
	return f.apply(Observe{[]Refresh{{SourceID: source, ObservedAt: f.now, Slot: slot, Observations: observations, Complete: true}}})
}

func TestX16_ASlotIsAnsweredOnce(t *testing.T) {
	f := newFixture(t)
	slot := f.now.Add(-time.Minute)
	if receipt := f.observeSlot("a", slot, usd("bhd", "57", "60")); receipt.Accepted != 1 || receipt.Changed != 1 || receipt.Repeated != 0 {
		t.Fatalf("the first answer: %+v", receipt)
	}
	before := f.state.Snapshot().Saved()
	f.advance(time.Hour)
	for name, again := range map[string]time.Time{"the same slot": slot, "an earlier one": slot.Add(-time.Nanosecond), "in another zone": slot.In(Location())} {
		receipt := f.observeSlot("a", again, usd("bhd", "57.5", "60"), usd("caribe", "57", "60"), usd("popular", "0", "60"))
		if !reflect.DeepEqual(receipt, Receipt{Repeated: 3}) || !reflect.DeepEqual(before, f.state.Snapshot().Saved()) {
			t.Errorf("%s: %+v", name, receipt)
		}
	}
	if receipt := f.observeSlot("b", slot, usd("bhd", "57.5", "60")); receipt.Accepted != 1 {
		t.Errorf("another source: %+v", receipt)
	}
	if receipt := f.observe("a", usd("bhd", "57.6", "60")); receipt.Accepted != 1 || f.rate("bhd").Buy.String() != "57.6" {
		t.Errorf("a refresh that answers no slot: %+v", receipt)
	}
	if receipt := f.observeSlot("a", slot.Add(time.Nanosecond), usd("bhd", "57.7", "60")); receipt.Accepted != 1 {
		t.Errorf("a later slot: %+v", receipt)
	}
}

// A slot without changes is written too, or it would be done again after a crash.
func TestX16_ASlotWithoutNewsIsRemembered(t *testing.T) {
	for name, observations := range map[string][]Observation{"what is known": {usd("bhd", "57", "60")}, "nothing": nil, "what is quarantined already": {usd("bhd", "0", "60")}} {
		f := newFixture(t)
		f.observe("a", usd("bhd", "57", "60"))
		f.observe("a", usd("bhd", "0", "60"))
		refresh := Refresh{SourceID: "a", ObservedAt: f.now, Observations: observations}
		if decision, _ := f.state.Decide(Observe{[]Refresh{refresh}}, f.now); len(decision.Events) != 0 {
			t.Fatalf("%s: the control is none", name)
		}
		refresh.Slot = f.now
		decision, _ := f.state.Decide(Observe{[]Refresh{refresh, refresh}}, f.now)
		if len(decision.Events) != 1 {
			t.Fatalf("%s: %d events, want one", name, len(decision.Events))
		}
		event := decision.Events[0].(*Refreshed)
		if len(event.Quotes)+len(event.Quarantined) != 0 || !event.Slot.Equal(f.now) {
			t.Errorf("%s: %+v", name, event)
		}
		replay(f.state, decision.Events)
		if got := f.state.Snapshot().Saved().Slots; !reflect.DeepEqual(got, []AnsweredSlot{{"a", f.now, 1, ""}}) {
			t.Errorf("%s: slots are %v", name, got)
		}
	}
}

// Commands that are decided together have receipts of their own, and only what is applied changes the state.
func TestX16_ReceiptsCountByCommand(t *testing.T) {
	f := newFixture(t)
	at := func(slot time.Time, observations ...Observation) Observe {
		return Observe{[]Refresh{{SourceID: "a", ObservedAt: f.now, Slot: slot, Observations: observations}}}
	}
	decisions := f.state.DecideAll([]Observe{
		at(f.now, usd("bhd", "57", "60"), usd("caribe", "0", "60")), at(f.now, usd("bhd", "57", "60"), usd("popular", "57", "60")),
		at(time.Time{}, usd("bhd", "57", "60")), at(time.Time{}, usd("vimenca", "57", "60")),
	}, f.now)
	for i, want := range [][4]int{{1, 1, 0, 1}, {0, 0, 2, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}} {
		r := decisions[i].Receipt
		if got := [4]int{r.Accepted, r.Changed, r.Repeated, len(r.Refused)}; got != want {
			t.Errorf("command %d: %v, want %v", i, got, want)
		}
	}
	only := newFixture(t)
	for _, decision := range decisions {
		replay(only.state, decision.Events)
		if len(decision.Events) > 0 && reflect.DeepEqual(f.state.Snapshot().Saved(), only.state.Snapshot().Saved()) {
			t.Error("an event that was not applied changes the state")
		}
		replay(f.state, decision.Events)
		if got, want := f.state.Snapshot().Saved(), only.state.Snapshot().Saved(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
	_ = f.state.DecideAll([]Observe{at(f.now.Add(time.Second), usd("bhd", "57.5", "60"))}, f.now)
	if got, want := f.state.Snapshot().Saved(), only.state.Snapshot().Saved(); !reflect.DeepEqual(got, want) {
		t.Errorf("a command that is only decided changes the state: %+v\nwant %+v", got, want)
	}
}

func TestX11_ASlotOfTheFutureIsNotRemembered(t *testing.T) {
	f := newFixture(t)
	for _, refresh := range []Refresh{
		{SourceID: "a", ObservedAt: f.now, Slot: f.now.Add(6 * time.Minute)},
		{SourceID: "a", ObservedAt: f.now.Add(6 * time.Minute), Slot: f.now},
	} {
		refresh.Observations = []Observation{usd("bhd", "57", "60")}
		receipt := f.apply(Observe{[]Refresh{refresh}})
		if len(receipt.Refused) != 1 || receipt.Refused[0].Reason != FutureDate || len(f.state.Snapshot().Saved().Slots) != 0 {
			t.Errorf("%+v, slots %v", receipt, f.state.Snapshot().Saved().Slots)
		}
	}
	if receipt := f.observeSlot("a", f.now.Add(4*time.Minute), usd("bhd", "57", "60")); receipt.Accepted != 1 {
		t.Errorf("machines' clocks differ a little: %+v", receipt)
	}
}

// A devaluation is accepted when the next answer repeats it; the same slot twice is one answer, however much later.
func TestX5_TheSameSlotIsNotTheNextAnswer(t *testing.T) {
	f := newFixture(t)
	slot := f.now
	f.accept("b", usd("duarte", "57", "59"))
	f.observeSlot("a", slot, usd("mocana", "60", ""))
	f.advance(5 * time.Hour)
	slot = f.now
	if receipt := f.observeSlot("a", slot, usd("mocana", "56", "")); len(receipt.Refused) != 1 || receipt.Refused[0].Reason != Jump {
		t.Fatalf("the jump: %+v", receipt)
	}
	f.advance(time.Hour)
	if receipt := f.observeSlot("a", slot, usd("mocana", "56", "")); receipt.Repeated != 1 || f.rate("mocana").Buy.String() != "60" {
		t.Errorf("read twice: %+v, served %s", receipt, f.rate("mocana").Buy)
	}
	f.advance(time.Hour)
	if receipt := f.observeSlot("a", f.now, usd("mocana", "56", "")); receipt.Accepted != 1 || f.rate("mocana").Buy.String() != "56" {
		t.Errorf("the next slot: %+v", receipt)
	}
}

func TestX16_CompletedIsWhatEveryCurrencyAnswered(t *testing.T) {
	first, second := noon, noon.Add(5*time.Hour)
	snapshot := func(currency string, slots ...AnsweredSlot) *CurrencySnapshot {
		return RestoreCurrencyState(SavedCurrency{Currency: currency, Slots: slots}, testCatalogue(), DefaultRules()).Snapshot()
	}
	snapshots := []*CurrencySnapshot{
		snapshot("USD", AnsweredSlot{"cut", second, 2, ""}, AnsweredSlot{"cut first", first, 2, ""}, AnsweredSlot{"done", second, 2, ""}, AnsweredSlot{"no more euros", second, 1, ""}, AnsweredSlot{"one", first, 1, ""}),
		snapshot("EUR", AnsweredSlot{"cut", first, 2, ""}, AnsweredSlot{"done", second, 2, ""}, AnsweredSlot{"more", second, 2, ""}, AnsweredSlot{"no more euros", first, 2, ""}),
		snapshot("CHF", AnsweredSlot{"more", first, 1, ""}),
	}
	want := map[string]time.Time{"cut": first, "done": second, "no more euros": second, "one": first, "more": first}
	for range snapshots {
		snapshots = append(snapshots[1:], snapshots[0])
		if got := CompletedSlots(snapshots); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	// Two of three currencies have answered.
	two := []*CurrencySnapshot{snapshot("USD", AnsweredSlot{"three", second, 3, ""}), snapshot("EUR", AnsweredSlot{"three", second, 3, ""}), snapshot("CHF", AnsweredSlot{"three", first, 3, ""})}
	if got := CompletedSlots(two)["three"]; !got.Equal(first) {
		t.Errorf("two of three have answered: done is %v, want %v", got, first)
	}
	if got := CompletedSlots(nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// The Baseline of a source is kept with the first currency of its newest slot, and changes no rate.
func TestX26_BaselineIsKeptWithTheSlot(t *testing.T) {
	with, without := newFixture(t), newFixture(t)
	euro := usd("bhd", "66", "70")
	euro.Currency = "EUR"
	refresh := Refresh{SourceID: "a", ObservedAt: with.now, Slot: with.now, Observations: []Observation{usd("bhd", "57", "60"), euro}, Complete: true}
	plain := refresh
	refresh.Baseline = "learnt"
	parts, _ := SplitByCurrency(testCatalogue(), []Refresh{refresh})
	if eur, dollar := parts["EUR"][0].Refresh.Baseline, parts["USD"][0].Refresh.Baseline; eur != "learnt" || dollar != "" {
		t.Errorf("EUR has %q, USD %q", eur, dollar)
	}
	refresh.Observations, plain.Observations = refresh.Observations[:1], plain.Observations[:1]
	with.apply(Observe{[]Refresh{refresh}})
	without.apply(Observe{[]Refresh{plain}})
	got, want := with.state.Snapshot().Saved(), without.state.Snapshot().Saved()
	if restored := RestoreCurrencyState(got, testCatalogue(), DefaultRules()); !reflect.DeepEqual(restored.Snapshot().Saved(), got) {
		t.Error("it is not restored")
	}
	if got.Slots[0].Baseline != "learnt" {
		t.Errorf("%+v", got.Slots)
	}
	got.Slots[0].Baseline = ""
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it changes the state: %+v, want %+v", got, want)
	}

	refresh.Slot, refresh.Baseline = refresh.Slot.Add(time.Second), strings.Repeat("x", BaselineBytesMax+1)
	if with.apply(Observe{[]Refresh{refresh}}); with.state.Snapshot().Saved().Slots[0] != (AnsweredSlot{"a", refresh.Slot, 1, ""}) {
		t.Error("a large one is kept")
	}

	first, second := noon, noon.Add(5*time.Hour)
	snapshot := func(currency string, slots ...AnsweredSlot) *CurrencySnapshot {
		return RestoreCurrencyState(SavedCurrency{Currency: currency, Slots: slots}, testCatalogue(), DefaultRules()).Snapshot()
	}
	snapshots := []*CurrencySnapshot{
		snapshot("EUR", AnsweredSlot{"no more euros", first, 2, "old"}, AnsweredSlot{"same", second, 1, "new"}),
		snapshot("USD", AnsweredSlot{"never", first, 1, ""}, AnsweredSlot{"no more euros", second, 1, "new"}, AnsweredSlot{"same", second, 1, ""}),
	}
	if got := Baselines(snapshots); !maps.Equal(got, map[string]string{"no more euros": "new", "same": "new"}) {
		t.Errorf("%v", got)
	}
}
