package engine

import (
	"slices"
	"testing"
	"time"
)

func TestT1_StaleFromTheInstantOfExpiry(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	expires, before := f.rate("bhd").ExpiresAt, f.marketView()
	for _, c := range []struct {
		now   time.Time
		stale bool
	}{{expires.Add(-time.Nanosecond), false}, {expires, true}, {expires.Add(time.Hour), true}} {
		f.now = c.now
		market := NewMarketView(DefaultCatalogue(), []*CurrencySnapshot{f.state.Snapshot()}, c.now)
		detail, err := market.Institution("bhd")
		must(t, err)
		ranked := len(f.ranking(Buy)) == 1
		listed := market.Institutions(InstitutionsQuery{"USD", PageRequest{1, 0}}).Items[0].CurrentQuoteCount == 1
		counted := slices.ContainsFunc(market.Currencies().Items, func(c CurrencyItem) bool { return c.Code == "USD" && c.CurrentQuoteCount == 1 })
		if f.rate("bhd").Stale != c.stale || detail.Rates[0].Stale != c.stale || ranked == c.stale || listed == c.stale || counted == c.stale {
			t.Errorf("at %s: rate stale %v, detail %v, ranked %v, counted %v, %v; want stale %v everywhere",
				c.now, f.rate("bhd").Stale, detail.Rates[0].Stale, ranked, listed, counted, c.stale)
		}
		if c.stale != !before.ValidAt(c.now) { // the view of the market holds until the instant before an expiry
			t.Errorf("at %s the view of before holds: %t", c.now, c.stale)
		}
	}
}

func TestT1_AViewIsRightUntilItChanges(t *testing.T) {
	f := newFixture(t)
	for i, institution := range []string{"bhd", "popular", "caribe"} {
		f.accept("s-"+institution, usd(institution, "57", "60"))
		f.advance(time.Duration(i+1) * time.Hour)
	}
	for range 3 {
		view := f.view()
		before := f.state.Snapshot().view(view.changesAt.Add(-1))
		if !slices.EqualFunc(before.rates, view.rates, func(a, b *Rate) bool { return *a == *b }) {
			t.Fatalf("the view changed before %s", view.changesAt)
		}
		f.now = view.changesAt
		if len(f.view().toBuy) != len(view.toBuy)-1 {
			t.Fatalf("nothing expired at %s", view.changesAt)
		}
	}
	if !f.view().changesAt.IsZero() {
		t.Error("a view without current rates changes by itself")
	}
}

func TestT3_Expiry(t *testing.T) {
	f := newFixture(t)
	stated := usd("popular", "57", "60")
	stated.ExpiresAt = f.now.Add(3 * time.Hour)
	f.accept("a", usd("bhd", "57", "60"), stated)
	if got := f.rate("bhd"); !got.ExpiresAt.Equal(got.LastCheckedAt.Add(26 * time.Hour)) {
		t.Errorf("expires at %s, want 26 h after %s", got.ExpiresAt, got.LastCheckedAt)
	}
	if got := f.rate("popular"); !got.ExpiresAt.Equal(stated.ExpiresAt) {
		t.Errorf("expires at %s, want what the source states", got.ExpiresAt)
	}
	f.advance(time.Hour)
	f.accept("a", usd("bhd", "57", "60"))
	if got := f.rate("bhd"); !got.ExpiresAt.Equal(f.now.Add(26 * time.Hour)) {
		t.Errorf("a new check does not move the expiry: %s", got.ExpiresAt)
	}
	f.accept("bcrd-reference", reference("58.9", "59.3"))
	if got := f.rate("bcrd"); got.ExpiresAt.Equal(f.now.Add(26 * time.Hour)) {
		t.Error("a source's own lifetime is ignored")
	}
}

func TestT4_CollectedAndChecked(t *testing.T) {
	f := newFixture(t)
	start := f.now
	f.accept("a", usd("bhd", "57.30", "60"))
	steps := []struct {
		observation Observation
		moved       bool
	}{
		{usd("bhd", "57.30", "60"), false},
		{usd("bhd", "57.3", "60.00"), false}, // the same number
		{usd("bhd", "57.4", "60.00"), true},
		{Observation{InstitutionID: "bhd", Currency: "USD", Buy: "57.4", Sell: "60", EffectiveDate: DateOf(noon)}, true},
		{Observation{InstitutionID: "bhd", Currency: "USD", Buy: "57.4", Sell: "60", EffectiveDate: DateOf(noon)}, false},
	}
	collected := start
	for i, step := range steps {
		f.advance(time.Hour)
		if step.moved {
			collected = f.now
		}
		f.accept("a", step.observation)
		got := f.rate("bhd")
		if !got.CollectedAt.Equal(collected) || !got.LastCheckedAt.Equal(f.now) || got.Buy.String() != step.observation.Buy {
			t.Errorf("step %d: collected %s, checked %s, buy %s; want %s, %s, %s", i,
				got.CollectedAt, got.LastCheckedAt, got.Buy, collected, f.now, step.observation.Buy)
		}
	}
}

func (f *fixture) history(institution string) []string {
	today := DateOf(f.now)
	q := HistoryQuery{Filter: Filter{Institution: institution}, PageRequest: PageRequest{LimitMax, 0}, From: today - 30, To: today + 30}
	var rows []string
	for _, row := range f.state.Snapshot().History(q).Items {
		rows = append(rows, row.Date.String()+" "+row.Buy.String()+" "+row.SourceID)
	}
	return rows
}

func (f *fixture) wantHistory(want ...string) {
	f.t.Helper()
	if got := f.history("bhd"); !slices.Equal(got, want) {
		f.t.Fatalf("history is %v, want %v", got, want)
	}
}

func TestT5_OneRowADay(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57.1", "60"))
	f.advance(time.Hour)
	f.accept("a", usd("bhd", "57.2", "60"))
	f.wantHistory("2026-06-17 57.2 a")
	f.advance(24 * time.Hour)
	f.accept("a", usd("bhd", "57.2", "60")) // unchanged on the next day
	f.wantHistory("2026-06-17 57.2 a", "2026-06-18 57.2 a")
	f.advance(48 * time.Hour) // a day without an observation has no row
	f.accept("a", usd("bhd", "57.3", "60"))
	f.wantHistory("2026-06-17 57.2 a", "2026-06-18 57.2 a", "2026-06-20 57.3 a")
	f.now = at("2026-06-21T03:59:59Z") // still the 20th in Santo Domingo
	f.accept("a", usd("bhd", "57.4", "60"))
	f.wantHistory("2026-06-17 57.2 a", "2026-06-18 57.2 a", "2026-06-20 57.4 a")
	dated := usd("bhd", "57.5", "60")
	dated.EffectiveDate = DateOf(noon) + 2
	f.accept("a", dated)
	f.wantHistory("2026-06-17 57.2 a", "2026-06-18 57.2 a", "2026-06-19 57.5 a", "2026-06-20 57.4 a")
}

func TestX3_TheBestSourceOfTheDayHasTheRow(t *testing.T) {
	f := newFixture(t)
	f.accept("infodolar", usd("bhd", "57.0", "60"))
	f.wantHistory("2026-06-17 57.0 infodolar")
	f.accept("bhd-site", usd("bhd", "57.1", "60"))
	f.advance(time.Hour)
	f.accept("infodolar", usd("bhd", "57.2", "60"))
	f.wantHistory("2026-06-17 57.1 bhd-site")
	f.accept("manual", usd("bhd", "57.3", "60"))
	f.accept("bhd-site", usd("bhd", "57.4", "60"))
	f.wantHistory("2026-06-17 57.3 manual")
	f.apply(Withdraw{QuoteKey{"bhd", Unspecified, Commercial}, "manual", "ana"})
	f.advance(time.Hour)
	f.accept("bhd-site", usd("bhd", "57.4", "60"))
	f.wantHistory("2026-06-17 57.4 bhd-site")
}

// TestX4_OperatorWithAClockBehind: a rate that an operator sets counts, also at a node whose clock is behind.
func TestX4_OperatorWithAClockBehind(t *testing.T) {
	f := newFixture(t)
	for i, buy := range []string{"57.3", "57.4"} {
		f.apply(Observe{[]Refresh{{SourceID: "manual", ObservedAt: f.now.Add(-time.Duration(i) * time.Second), By: "ana",
			Observations: []Observation{usd("bhd", buy, "60")}}}})
	}
	if got := f.rate("bhd"); got.Buy.String() != "57.4" || !got.LastCheckedAt.Equal(f.now) {
		t.Errorf("the second value does not count: %+v", got)
	}
}

func TestX4_ABackfillOnlyFillsHistory(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57.1", "60"))
	late := func(hours int, buy string) Receipt {
		return f.apply(Observe{[]Refresh{{SourceID: "a", ObservedAt: f.now.Add(-time.Duration(hours) * time.Hour),
			Observations: []Observation{usd("bhd", buy, "60")}}}})
	}
	if receipt := late(24, "57.0"); receipt.Accepted != 1 || receipt.Changed != 1 {
		t.Fatalf("receipt %+v", receipt)
	}
	late(1, "57.05") // the same day, but earlier than what is known of it
	f.wantHistory("2026-06-16 57.0 a", "2026-06-17 57.1 a")
	if got := f.rate("bhd"); got.Buy.String() != "57.1" || !got.LastCheckedAt.Equal(f.now) {
		t.Errorf("a backfill moved the offer: %+v", got)
	}
	if receipt := late(48, "47"); len(receipt.Refused) != 0 {
		t.Errorf("without an earlier day there is nothing to measure against: %+v", receipt.Refused)
	}
	if receipt := late(20, "50"); len(receipt.Refused) != 1 || receipt.Refused[0].Reason != Jump {
		t.Errorf("a backfill that jumps: %+v, want %s", receipt, Jump)
	}
}

func TestT6_DefaultRange(t *testing.T) {
	day := func(text string) Date { d, _ := ParseDate(text); return d }
	today := day("2026-06-17")
	for _, c := range []struct{ from, to, wantFrom, wantTo string }{
		{"", "", "2026-06-11", "2026-06-17"}, {"2026-06-01", "", "2026-06-01", "2026-06-17"},
		{"", "2026-03-03", "2026-02-25", "2026-03-03"}, {"2026-01-01", "2026-01-02", "2026-01-01", "2026-01-02"},
	} {
		from, to := ResolveHistoryRange(day(c.from), day(c.to), today)
		if from.String() != c.wantFrom || to.String() != c.wantTo {
			t.Errorf("%q to %q is %s to %s", c.from, c.to, from, to)
		}
	}
}

func TestT9_Depth(t *testing.T) {
	rules := DefaultRules()
	rules.HistoryDays = 1 // less than what is promised
	f := newFixture(t)
	f.state = NewCurrencyState("USD", testCatalogue(), rules)
	for range 800 {
		f.now = f.now.Add(24 * time.Hour)
		f.accept("a", usd("bhd", "57", "60"))
		f.state.Snapshot()
	}
	today := DateOf(f.now)
	page := f.state.Snapshot().History(HistoryQuery{PageRequest: PageRequest{LimitMax, 0}, From: today - 365, To: today})
	if page.Total != 366 {
		t.Errorf("a year back there are %d days, want 366", page.Total)
	}
	if page := f.state.Snapshot().History(HistoryQuery{PageRequest: PageRequest{LimitMax, 0}, From: 1, To: today + 999}); page.Total > 366+8 {
		t.Errorf("%d days are kept, want the depth and no more", page.Total)
	}
	if page := f.state.Snapshot().History(HistoryQuery{PageRequest: PageRequest{LimitMax, 0}, From: today + 1, To: today + 300}); page.Total != 0 {
		t.Error("the future has rows")
	}
}

func TestInstantsLoseTheirZone(t *testing.T) {
	f := newFixture(t)
	f.now = noon.In(Location())
	observation := usd("bhd", "57", "60")
	observation.PublishedAt = f.now
	f.accept("a", observation)
	got := f.rate("bhd")
	if got.CollectedAt != noon || got.PublishedAt != noon || f.state.Saved().History[0].ObservedAt != noon {
		t.Errorf("collected %v, published %v", got.CollectedAt, got.PublishedAt)
	}
}
