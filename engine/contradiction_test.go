package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// others are institutions of which each has a source of its own.
var others = strings.Fields("popular banreservas scotiabank promerica bdi banesco caribe vimenca")

// market gives a value of each of count institutions, a minute apart.
func (f *fixture) market(count int, buy, sell string) {
	f.t.Helper()
	for _, id := range others[:count] {
		f.accept(id+"-site", usd(id, buy, sell))
		f.advance(time.Minute)
	}
}

func (f *fixture) wantBest(operation Operation, institution string, is bool) {
	f.t.Helper()
	ranked := slices.ContainsFunc(f.ranking(operation), func(id string) bool { return strings.HasPrefix(id, institution+"/") })
	if ranked != is {
		f.t.Errorf("%s is ranked: %t, want %t", institution, ranked, is)
	}
}

// A published value that the market contradicts leaves the ranking and history, is quarantined and told.
func TestI3_AWrongFirstValueLeaves(t *testing.T) {
	for name, c := range map[string]struct{ buy, sell string }{
		"too high": {"66.10", "68.90"}, "too low": {"46.00", "49.00"}, "the sell side": {"58.00", "70.00"}, "the buy side": {"45.00", "60.00"},
		"one side": {"66.10", ""}, "another currency": {"75.10", "80.20"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			wrong := usd("bhd", c.buy, c.sell)
			wrong.EffectiveDate = DateOf(noon) - 1 // it leaves the history of that day too
			f.accept("bhd-site", wrong)
			f.advance(time.Minute)
			f.market(2, "58.15", "60.15")
			f.wantBest(Sell, "bhd", true) // two do not make a market
			f.market(3, "58.15", "60.15")
			f.wantBest(Sell, "bhd", false)
			f.wantBest(Buy, "bhd", false)
			if rows := f.history("bhd"); len(rows) != 0 {
				t.Errorf("history holds %v", rows)
			}
			quarantined := f.state.Snapshot().Quarantine()
			if len(quarantined) != 1 || quarantined[0].Reason != Contradicted || quarantined[0].SourceID != "bhd-site" {
				t.Errorf("quarantine holds %+v", quarantined)
			}
			f.advance(4 * time.Hour)
			f.refuse(OffMarket, "bhd-site", usd("bhd", c.buy, c.sell))
			f.advance(4 * time.Hour)
			f.accept("bhd-site", usd("bhd", "58.10", "60.10")) // no jump from the wrong one
			f.wantBest(Sell, "bhd", true)
		})
	}
}

// The market of one list, and what the source repeats, count as well.
func TestI3_AWrongFirstValueLeavesWhenAListFollows(t *testing.T) {
	f := newFixture(t)
	f.accept("bhd-site", usd("bhd", "66.10", "68.90"))
	f.advance(time.Minute)
	receipt := f.observe("infodolar", goodBanks()...) // of lower priority
	if len(receipt.Notices) == 0 {
		t.Errorf("nothing was said: %+v", receipt)
	}
	f.wantBest(Sell, "popular", true)
	if got := f.rate("bhd"); got.SourceID != "infodolar" { // the list has the institution too
		t.Errorf("bhd is published from %s: %s", got.SourceID, got.Buy)
	}
}

// In one command, as an import makes them, the rules are the same.
func TestI3_AWrongFirstValueOfAnImport(t *testing.T) {
	for name, after := range map[string][]string{"repeated": {"66.10", "66.10"}, "then right": {"58.10"}} {
		f := newFixture(t)
		at := noon.Add(-10 * time.Hour)
		one := func(id, buy string, hours float64) Refresh {
			sell := parsed(ReadDecimal(buy)).units + 2_00000000
			return Refresh{SourceID: id + "-site", ObservedAt: at.Add(time.Duration(hours * float64(time.Hour))), Observations: []Observation{usd(id, buy, decimalOf(sell).String())}}
		}
		refreshes := []Refresh{one("bhd", "66.10", 0)}
		for i, id := range others {
			refreshes = append(refreshes, one(id, fmt.Sprintf("58.%d", 11+i), 0.1+float64(i)/100))
		}
		for i, buy := range after {
			refreshes = append(refreshes, one("bhd", buy, 4*float64(i+1)))
		}
		f.apply(Observe{refreshes})
		f.wantBest(Sell, "bhd", name == "then right")
		if rows := f.history("bhd"); (len(rows) == 1) != (name == "then right") {
			t.Errorf("%s: history holds %v", name, rows)
		}
		if name == "then right" && f.rate("bhd").Buy.String() != "58.1" && f.rate("bhd").Buy.String() != "58.10" {
			t.Errorf("bhd is %s", f.rate("bhd").Buy)
		}
	}
}

// A value that jumps to the market is right, whatever was published before.
func TestI3_TheMarketSupportsAJump(t *testing.T) {
	f := newFixture(t)
	f.accept("bhd-site", usd("bhd", "62.5", "64.5")) // 7 % above: not contradicted
	f.market(4, "58.15", "60.15")
	f.wantBest(Sell, "bhd", true)
	f.advance(time.Hour)
	f.refuse(Jump, "bhd-site", usd("bhd", "54.9", "57.0"))
	f.accept("bhd-site", usd("bhd", "58.1", "60.1"))
}

// A source that is wrong about all institutions at once is not its own market.
func TestI3_AListThatChangesItsCurrencyIsRefused(t *testing.T) {
	f := newFixture(t)
	f.accept("list", goodBanks()...)
	var euros []Observation
	for _, o := range goodBanks() {
		euros = append(euros, usd(o.InstitutionID, "66"+o.Buy[2:], "69"+o.Sell[2:]))
	}
	for range 3 {
		f.advance(4 * time.Hour)
		f.refuse(Jump, "list", euros...)
	}
	if got := f.rate("bhd").Buy.String(); got != "57.1" {
		t.Errorf("bhd is %s", got)
	}
}

// Two halves of a market do not contradict each other.
func TestI3_ADividedMarketWithdrawsNothing(t *testing.T) {
	f := newFixture(t)
	for i, buy := range []string{"58.1", "66.1", "58.2", "66.2"} {
		f.observe(others[i]+"-site", usd(others[i], buy, ""))
		f.advance(time.Minute)
	}
	if got := f.ranking(Sell); len(got) != 4 {
		t.Errorf("ranked: %v", got)
	}
}

// In a devaluation the first that moves is not withdrawn because the others are slower.
func TestX5_TheFirstToMoveStays(t *testing.T) {
	f := newFixture(t)
	f.market(6, "58.15", "60.15")
	move := func(id string) Receipt { return f.observe(id+"-site", usd(id, "66.10", "68.10")) }
	f.advance(4 * time.Hour)
	move("popular")
	move("banreservas")
	f.advance(time.Hour)
	if got := move("popular"); got.Accepted != 1 {
		t.Fatalf("not confirmed: %+v", got)
	}
	f.advance(time.Hour)
	if got := move("popular"); got.Accepted != 1 {
		t.Errorf("refused when it was repeated: %+v", got)
	}
	f.wantBest(Sell, "popular", true)
}

// A value that an operator has released stays, though the market says otherwise.
func TestX12_AReleasedValueIsNotWithdrawn(t *testing.T) {
	f := newFixture(t)
	f.accept("manual", usd("caribe", "66.10", "68.90"))
	f.market(5, "58.15", "60.15")
	f.wantBest(Sell, "caribe", true) // nor one that an operator has typed
	f.refuse(OffMarket, "bhd-site", usd("bhd", "66.10", "68.90"))
	f.apply(Release{f.state.Snapshot().Quarantine()[0].ID, "ana"})
	f.advance(time.Hour)
	f.market(5, "58.15", "60.15")
	f.accept("bhd-site", usd("bhd", "66.10", "68.90"))
	f.wantBest(Sell, "bhd", true)
}

// TestI3_OffTheReferenceRate: a currency without a plausible range is compared with the reference rate.
func TestI3_OffTheReferenceRate(t *testing.T) {
	for _, first := range []bool{true, false} {
		f := newFixture(t)
		f.state = NewCurrencyState("AUD", testCatalogue(), DefaultRules())
		say := func() {
			f.accept("bcrd-currencies", Observation{InstitutionID: "bcrd", Currency: "AUD", Kind: Reference, Sell: "39.50"}) // of both sides
			f.advance(time.Hour)
		}
		if first {
			say()
		}
		for _, o := range []Observation{aud("bhd", "3.85", "4.10"), aud("popular", "0.0244", "0.0260"), aud("banreservas", "58.10", "59.90"), aud("promerica", "99999.00", "99999.99"), aud("caribe", "3.85", "")} {
			if first {
				f.refuse(OutOfBand, o.InstitutionID+"-site", o)
			} else if o.InstitutionID == "bhd" { // three others would be a market of their own
				f.accept(o.InstitutionID+"-site", o)
			}
		}
		if !first {
			f.advance(time.Hour)
			say()
		}
		if page := f.ranked(RankingQuery{Operation: Sell, PageRequest: PageRequest{LimitMax, 0}}); page.Total != 0 {
			t.Errorf("ranked: %+v", *page.Items[0])
		}
		f.advance(time.Hour)
		f.accept("bhd-site", aud("bhd", "38.50", "41.00"))
		f.advance(10 * 24 * time.Hour) // the newest one it had
		f.refuse(OutOfBand, "bdi-site", aud("bdi", "58.10", "59.90"))
	}
}

func aud(id, buy, sell string) Observation {
	return Observation{InstitutionID: id, Currency: "AUD", Buy: buy, Sell: sell}
}

func audReference(rate string) Observation {
	return Observation{InstitutionID: "bcrd", Currency: "AUD", Kind: Reference, Buy: rate, Sell: rate}
}

// newFixtureAUD is newFixture for Australian dollars.
func newFixtureAUD(t *testing.T) *fixture {
	f := newFixture(t)
	f.state = NewCurrencyState("AUD", testCatalogue(), DefaultRules())
	return f
}

func (f *fixture) wantRanked(want int) {
	f.t.Helper()
	if page := f.ranked(RankingQuery{Operation: Sell, PageRequest: PageRequest{LimitMax, 0}}); page.Total != want {
		f.t.Errorf("%d are ranked, want %d", page.Total, want)
	}
}

// A wrong reference rate neither withdraws the quotes on which institutions agree, nor keeps the right one out.
func TestI3_AWrongReferenceRate(t *testing.T) {
	t.Run("after the institutions", func(t *testing.T) {
		f := newFixtureAUD(t)
		for _, id := range others[:3] {
			f.accept(id+"-site", aud(id, "38.50", "41.00"))
		}
		f.advance(time.Minute)
		f.refuse(OffMarket, "bcrd-currencies", audReference("58.50"))
		f.wantRanked(3)
		f.advance(time.Hour)
		f.accept("bcrd-currencies", audReference("39.50"))
		f.wantRanked(3)
	})
	t.Run("before the institutions", func(t *testing.T) {
		f := newFixtureAUD(t)
		f.accept("bcrd-currencies", audReference("58.50"))
		for i, id := range others[:3] {
			f.advance(time.Minute)
			if i == 2 {
				f.refuse(Jump, "bcrd-currencies", audReference("39.50")) // two are not enough
				f.advance(time.Minute)
			}
			f.refuse(OutOfBand, id+"-site", aud(id, "38.50", "41.00"))
		}
		f.advance(time.Hour)
		f.accept("bcrd-currencies", audReference("40.10"))
		f.advance(time.Hour)
		f.accept("popular-site", aud("popular", "38.50", "41.00"))
		f.wantRanked(1)
	})
	t.Run("withdrawn", func(t *testing.T) {
		f := newFixtureAUD(t)
		f.accept("bcrd-currencies", audReference("58.50"))
		f.apply(Withdraw{QuoteKey{"bcrd", Unspecified, Reference}, "bcrd-currencies", "ana"})
		f.advance(2 * time.Hour)
		f.accept("bhd-site", aud("bhd", "38.50", "41.00"))
		f.advance(-time.Hour)
		f.accept("bhd-site", aud("bhd", "38.40", "40.90")) // a backfill, compared with the reference rate of its day
	})
}

// A reference rate withdraws the quotes that it contradicts, unless three sources agree on them.
func TestI3_AReferenceRateAgainstFew(t *testing.T) {
	for name, quotes := range map[string][]Observation{
		"institutions that disagree": {aud("popular", "58.10", "59.90"), aud("bdi", "3.85", "4.10"), aud("promerica", "99999.00", "99999.99")},
		"two of them agree":          {aud("popular", "58.10", "59.90"), aud("bdi", "58.20", "59.80")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixtureAUD(t)
			for _, o := range quotes {
				f.accept(o.InstitutionID+"-site", o)
			}
			f.advance(time.Minute)
			f.accept("bcrd-currencies", audReference("39.50"))
			f.wantRanked(0)
		})
	}
	t.Run("one page about many institutions", func(t *testing.T) {
		f := newFixtureAUD(t)
		var page []Observation
		for _, id := range others[:5] {
			page = append(page, aud(id, "58.10", "59.90"))
		}
		f.accept("infodolar", page...)
		f.advance(time.Minute)
		f.accept("bcrd-currencies", audReference("39.50"))
		f.wantRanked(0)
	})
}

// TestI3_OnlyOneInstitution: three refreshes over a day confirm a step where nothing else is quoted.
func TestI3_OnlyOneInstitution(t *testing.T) {
	f := newFixture(t)
	f.accept("bhd-site", usd("bhd", "70", "73"))
	f.advance(24 * time.Hour)
	f.refuse(Jump, "bhd-site", usd("bhd", "75", "78"))
	f.advance(12 * time.Hour)
	f.refuse(Jump, "bhd-site", usd("bhd", "75.5", "78.5"))
	f.advance(11 * time.Hour)
	f.refuse(Jump, "bhd-site", usd("bhd", "75", "78")) // three, in less than a day
	f.advance(time.Hour)
	receipt := f.observe("bhd-site", usd("bhd", "75.2", "78.2"))
	if receipt.Accepted != 1 || len(receipt.Notices) != 1 {
		t.Fatalf("%+v", receipt)
	}
	f.advance(time.Hour)
	f.refuse(Jump, "bhd-site", usd("bhd", "70", "73"))
	f.advance(20 * time.Hour)
	f.refuse(Jump, "bhd-site", usd("bhd", "68", "71")) // another value begins again
	f.advance(20 * time.Hour)
	f.refuse(Jump, "bhd-site", usd("bhd", "70", "73"))
	f.advance(25 * time.Hour)
	f.refuse(Jump, "bhd-site", usd("bhd", "70", "73")) // over a day, but only two
	two := newFixture(t)
	two.accept("bhd-site", usd("bhd", "70", "73"))
	two.accept("popular-site", usd("popular", "70", "73"))
	for range 4 {
		two.advance(12 * time.Hour)
		two.refuse(Jump, "bhd-site", usd("bhd", "75", "78"))
		two.accept("popular-site", usd("popular", "70", "73"))
	}
}

// TestI3_TheRowsThatFollowConfirm: a step in a file is kept, one wrong day is not.
func TestI3_TheRowsThatFollowConfirm(t *testing.T) {
	for _, kind := range []Kind{Commercial, Reference} {
		f := newFixture(t)
		var refreshes []Refresh
		for day, buy := range []string{"58", "58.1", "66", "58.2", "58.3", "62.5", "62.6", "62.4", "62.5"} {
			o := Observation{InstitutionID: "bcrd", Currency: "USD", Kind: kind, Buy: buy, EffectiveDate: DateOf(noon) - 20 + Date(day)}
			refreshes = append(refreshes, Refresh{SourceID: "book", ObservedAt: noon.AddDate(0, 0, day-20), Observations: []Observation{o}})
		}
		receipt := f.apply(Observe{refreshes})
		if len(receipt.Refused) != 1 || receipt.Refused[0].Observation.Buy != "66" {
			t.Errorf("%s: %+v", kind, receipt.Refused)
		}
	}
}

// Where another institution quotes, the rows that follow confirm nothing, the first time or when a file is read again.
func TestI3_AFileReadAgainChangesNothing(t *testing.T) {
	f := newFixture(t)
	var refreshes []Refresh
	for day, buy := range []string{"58", "58.1", "62.5", "62.6", "62.4", "62.5"} {
		at := noon.AddDate(0, 0, day-8)
		for _, o := range []Observation{usd("bhd", "58.2", "60.2"), usd("popular", buy, "")} {
			o.EffectiveDate = DateOf(at)
			refreshes = append(refreshes, Refresh{SourceID: o.InstitutionID, ObservedAt: at, Observations: []Observation{o}})
		}
	}
	for range 2 {
		if got := f.apply(Observe{refreshes}); len(got.Refused) != 4 {
			t.Errorf("%d refused, want 4: %+v", len(got.Refused), got)
		}
	}
}

// A backfill is compared with the history of its day.
func TestI3_ABackfillIsComparedWithItsDay(t *testing.T) {
	f := newFixture(t)
	past := noon.AddDate(0, 0, -10)
	at := func(hours int, id, buy string) Receipt {
		return f.apply(Observe{[]Refresh{{SourceID: id + "-site", ObservedAt: past.Add(time.Duration(hours) * time.Hour), Observations: []Observation{usd(id, buy, "")}}}})
	}
	f.accept("bhd-site", usd("bhd", "58.1", ""))
	f.market(4, "58.15", "60.15")
	at(-10, "bhd", "66.1")
	for i, id := range others[:4] {
		if got := at(-9, id, fmt.Sprintf("58.%d", 11+i)); got.Accepted != 1 {
			t.Fatalf("%s: %+v", id, got)
		}
	}
	if got := at(-8, "bhd", "66.1"); len(got.Refused) != 1 || got.Refused[0].Reason != OffMarket {
		t.Errorf("repeated: %+v", got)
	}
	if rows := f.historyOn(DateOf(past), "bhd"); len(rows) != 0 {
		t.Errorf("history holds %v", rows)
	}
	if got := at(-7, "bhd", "58.1"); got.Accepted != 1 {
		t.Errorf("the right value: %+v", got)
	}
	f.wantBest(Sell, "bhd", true)
	repeats := newFixture(t) // the present value, which is right today
	repeats.now = past
	repeats.market(4, "58.15", "60.15")
	repeats.now = noon
	repeats.accept("bhd-site", usd("bhd", "66.1", ""))
	repeats.now = past.Add(time.Hour)
	repeats.refuse(OffMarket, "bhd-site", usd("bhd", "66.1", ""))
}

func (f *fixture) historyOn(date Date, institution string) []HistoryEntry {
	return f.state.Snapshot().History(HistoryQuery{Filter{Institution: institution}, PageRequest{LimitMax, 0}, date, date}).Items
}

// TestI3_PublishedAfterItWasObserved: such a time is dropped.
func TestI3_PublishedAfterItWasObserved(t *testing.T) {
	f := newFixture(t)
	o := usd("bhd", "57", "60")
	for _, c := range []struct {
		published time.Time
		kept      bool
	}{{noon.AddDate(4, 0, 0), false}, {noon.Add(time.Second), false}, {noon, true}, {noon.Add(-time.Hour), true}} {
		f.state = NewCurrencyState("USD", testCatalogue(), DefaultRules())
		o.PublishedAt = c.published
		f.accept("a", o)
		if got := f.rate("bhd"); got.PublishedAt.IsZero() == c.kept || (got.DatePrecision == PrecisionDatetime) != c.kept {
			t.Errorf("%s: served %s, %s", c.published, got.PublishedAt, got.DatePrecision)
		}
		if rows := f.historyOn(DateOf(noon), "bhd"); len(rows) != 1 || (rows[0].DatePrecision == PrecisionDatetime) != c.kept {
			t.Errorf("%s: history has %+v", c.published, rows)
		}
	}
	f.state = NewCurrencyState("USD", testCatalogue(), DefaultRules())
	f.state.Apply(&Refreshed{Origin: Origin{Currency: "USD", SourceID: "a", ObservedAt: noon}, Quotes: []AcceptedQuote{{
		Key: QuoteKey{"bhd", Branch, Commercial}, Buy: decimalFrom("57"), PublishedAt: noon.AddDate(4, 0, 0), ExpiresAt: noon.Add(time.Hour),
	}}}) // of an earlier version
	if got, rows := f.rate("bhd"), f.historyOn(DateOf(noon), "bhd"); !got.PublishedAt.IsZero() || rows[0].DatePrecision == PrecisionDatetime {
		t.Errorf("served %s, history has %+v", got.PublishedAt, rows)
	}
	saved := f.state.Snapshot().Saved()
	saved.SourceQuotes[0].PublishedAt = noon.AddDate(4, 0, 0)
	f.state = RestoreCurrencyState(saved, testCatalogue(), DefaultRules())
	if got := f.rate("bhd"); !got.PublishedAt.IsZero() {
		t.Errorf("a snapshot of an earlier version: served %s", got.PublishedAt)
	}
}

// The market that is kept from one refresh to the next is the one that would be made again.
func TestF11_TheMarketIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := NewCurrencyState("USD", testCatalogue(), DefaultRules())
		now := noon
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-5, 30).Draw(t, "hours")) * time.Hour)
			decision, _ := state.Decide(drawCommand(t, now, state.Snapshot().Quarantine()), now)
			replay(state, decision.Events)
			kept := *state.store.marketAt(now)
			fresh := *state.store
			fresh.market = &market{}
			made := *fresh.marketAt(now)
			if !slices.Equal(kept.buys, made.buys) || !slices.Equal(kept.sells, made.sells) {
				t.Fatalf("kept %v %v, made again %v %v", kept.buys, kept.sells, made.buys, made.sells)
			}
			if kept.reference != made.reference {
				t.Fatalf("the reference rate is %+v, made again %+v", kept.reference, made.reference)
			}
		}
	})
}
