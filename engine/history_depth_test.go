package engine

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"
)

// shortHistory is a state with the shortest history that is allowed.
func shortHistory(currency string) *CurrencyState {
	rules := DefaultRules()
	rules.HistoryDays = HistoryDaysMin
	return NewCurrencyState(currency, testCatalogue(), rules)
}

// A replay without any snapshot drops the same days.
func TestX9_ReplayForgetsTheSameDays(t *testing.T) {
	live, silent := newFixture(t), newFixture(t)
	live.state, silent.state = shortHistory("USD"), shortHistory("USD")
	for day := range 500 {
		for _, f := range []*fixture{live, silent} {
			f.now = noon.Add(time.Duration(day) * 24 * time.Hour)
			f.accept("a", usd("bhd", "57", "60"))
			f.accept("bcrd-reference", reference("58.9", "59.3"))
			for _, ago := range []int{400, 360} {
				old := Refresh{SourceID: "a", ObservedAt: f.now.AddDate(0, 0, -ago), Observations: []Observation{usd("bhd", "56", "60")}}
				f.apply(Observe{[]Refresh{old}})
				old.SourceID, old.Observations = "bcrd-reference", []Observation{reference("58.8", "59.3")}
				f.apply(Observe{[]Refresh{old}})
			}
		}
		live.state.Snapshot()
	}
	a, b := live.state.Saved(), silent.state.Saved()
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%d rows with snapshots, %d without", len(a.History), len(b.History))
	}
	if back := RestoreCurrencyState(a, testCatalogue(), live.state.rules).Saved(); !reflect.DeepEqual(a, back) {
		t.Errorf("%d rows, %d after a snapshot", len(a.History), len(back.History))
	}
}

// Days that are too old lose all but their reference rows; older snapshots keep all.
func TestX9_ReferenceRowsAreKeptForGood(t *testing.T) {
	f := newFixture(t)
	f.state = shortHistory("USD")
	start := DateOf(noon)
	both := func() {
		f.accept("a", usd("bhd", "57", "60"), usd("caribe", "57.1", "60"))
		f.accept("bcrd-reference", reference("58.9", "59.3"))
	}
	both()
	f.advance(24 * time.Hour)
	f.accept("a", usd("bhd", "57", "60"))
	first := f.state.Snapshot()
	f.advance(3 * 366 * 24 * time.Hour)
	both()
	count := func(snapshot *CurrencySnapshot, from, to Date) int {
		return snapshot.History(HistoryQuery{PageRequest: PageRequest{LimitMax, 0}, From: from, To: to}).Total
	}
	page := f.state.Snapshot().History(HistoryQuery{PageRequest: PageRequest{LimitMax, 0}, From: start, To: start + 1})
	if page.Total != 1 || page.Items[0].Kind != Reference || page.Items[0].Date != start {
		t.Errorf("of the first days are kept %+v", page.Items)
	}
	if got := count(first, start, start+1); got != 4 {
		t.Errorf("the snapshot of then has %d rows, want 4", got)
	}
	for _, observation := range []Observation{usd("bhd", "12", "12.5"), reference("12.5", "12.7")} {
		observation.EffectiveDate = dayOf("1991-01-02")
		receipt := f.apply(Observe{[]Refresh{{SourceID: "past", ObservedAt: noon, Observations: []Observation{observation}}}})
		restored := RestoreCurrencyState(f.state.Saved(), testCatalogue(), f.state.rules)
		want := 0
		if observation.Kind == Reference {
			want = 1
		}
		if live, back := count(f.state.Snapshot(), 1, start-1), count(restored.Snapshot(), 1, start-1); receipt.Accepted != 1 || live != want || back != want {
			t.Errorf("%+v: %d rows, %d after a snapshot, want %d", receipt, live, back, want)
		}
	}
}

// longHistory is 35 years of business days of a reference currency.
func longHistory(currency string) *CurrencyState {
	state := NewCurrencyState(currency, testCatalogue(), DefaultRules())
	for date := dayOf("1991-06-17"); date <= DateOf(noon); date++ {
		observed := date.Start().Add(17 * time.Hour)
		if weekday := observed.In(Location()).Weekday(); weekday == time.Saturday || weekday == time.Sunday {
			continue
		}
		decimals := fmt.Sprintf("%04d", int(date)%10000)
		state.Apply(&Refreshed{Currency: currency, SourceID: "bcrd-reference", ObservedAt: observed, Priority: 100, Quotes: []AcceptedQuote{{
			Key: QuoteKey{"bcrd", Unspecified, Reference}, Buy: decimalFrom("58." + decimals), Sell: decimalFrom("59." + decimals),
			EffectiveDate: date, ExpiresAt: observed.Add(98 * time.Hour),
		}}})
	}
	return state
}

func longHistories(count int) (states []*CurrencyState, snapshots []*CurrencySnapshot) {
	for i := range count {
		states = append(states, longHistory(fmt.Sprintf("X%02d", i)))
		snapshots = append(snapshots, states[i].Snapshot())
	}
	return states, snapshots
}

func TestX9_ALongHistoryFitsIntoMemory(t *testing.T) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	count := sweep(3, 15)
	states, snapshots := longHistories(count)
	used, rows := heap()-before, uint64(0)
	for _, snapshot := range snapshots {
		rows += uint64(len(snapshot.Saved().History))
	}
	t.Logf("%d rows take %.1f MB, %d bytes a row", rows, float64(used)/1e6, used/rows)
	if rows != uint64(count)*9133 || used/rows > 400 {
		t.Errorf("%d rows with %d bytes each, want %d with at most 400", rows, used/rows, count*9133)
	}
	runtime.KeepAlive(states)
}
