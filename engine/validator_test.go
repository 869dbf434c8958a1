package engine

import (
	"strings"
	"testing"
	"time"
)

func TestX14_EqualSidesAreOneSideReadTwice(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	f.advance(time.Hour)
	f.refuse(SameSides, "a", usd("bhd", "60", "60.00"))
	if got := f.rate("bhd"); got.Buy.String() != "57" || got.Stale {
		t.Errorf("served %s / %s", got.Buy, got.Sell)
	}
	f.refuse(SameSides, "manual", usd("caribe", "58", "58"))
	f.accept("a", usd("caribe", "58", ""), usd("popular", "", "58"), usd("bdi", "58", "58.00000001"))
	f.accept("bcrd-reference", reference("58.9", "58.9"))
	f.apply(Release{f.state.Snapshot().Quarantine()[0].ID, "ana"}) // the operator has asked the bank
	if got := f.rate("bhd"); got.Buy.String() != "60" {
		t.Errorf("served %s after the release", got.Buy)
	}
}

func TestX15_YesterdaysFile(t *testing.T) {
	today := DateOf(noon)
	dated := func(buy string, date Date) Observation {
		o := usd("bhd", buy, "60")
		o.EffectiveDate = date
		return o
	}
	for name, c := range map[string]struct {
		last, next  Observation
		quarantined bool
	}{
		"yesterday's":           {dated("57", today), dated("57.5", today-1), true},
		"of the same day":       {dated("57", today), dated("57.5", today), false},
		"of the next day":       {dated("57", today-1), dated("57.5", today), false},
		"after one dated ahead": {dated("57", today+2), dated("57.5", today), false},
		"the last undated":      {dated("57", 0), dated("57.5", today-1), false},
		"the next undated":      {dated("57", today), dated("57.5", 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.accept("a", c.last)
			f.advance(time.Hour)
			if !c.quarantined {
				f.accept("a", c.next)
				return
			}
			before := *f.rate("bhd")
			f.refuse(Outdated, "a", c.next)
			if got := *f.rate("bhd"); got != before {
				t.Errorf("the offer is %+v, was %+v", got, before)
			}
			f.accept("b", c.next) // it is the word of another source
		})
	}
}

// A backfill may be dated before what the source gave last.
func TestX15_ABackfillIsNotOutdated(t *testing.T) {
	f := newFixture(t)
	o := usd("bhd", "57", "60")
	o.EffectiveDate = DateOf(noon)
	f.accept("a", o)
	o.EffectiveDate--
	receipt := f.apply(Observe{[]Refresh{{SourceID: "a", ObservedAt: f.now.Add(-time.Hour), Observations: []Observation{o}}}})
	if receipt.Accepted != 1 {
		t.Errorf("%+v", receipt)
	}
	f.wantHistory("2026-06-16 57 a", "2026-06-17 57 a")
}

func TestX17_RangesBySourceAndDate(t *testing.T) {
	dated := func(currency, buy, date string) Observation {
		o := Observation{InstitutionID: "bhd", Currency: currency, Buy: buy}
		if date != "" {
			o.EffectiveDate = dayOf(date)
		}
		return o
	}
	for _, c := range []struct {
		currency, source, buy, date string
		reason                      Reason
	}{
		{"USD", "past", "12.5", "1991-01-02", ""},
		{"USD", "past", "7.99", "1991-01-02", OutOfBand},
		{"USD", "past", "8", "1991-01-02", ""}, // the limits belong to the range
		{"USD", "past", "20", "1991-01-02", ""},
		{"USD", "past", "20.01", "1999-12-31", OutOfBand}, // the last day counts
		{"USD", "past", "20.01", "2000-01-01", ""},
		{"USD", "past", "9.99", "2000-01-01", OutOfBand},
		{"USD", "past", "60.01", "2003-12-31", OutOfBand},
		{"USD", "past", "60.01", "2004-01-01", ""}, // the currency's own band
		{"USD", "past", "39.99", "2004-01-01", OutOfBand},
		{"USD", "past", "12.5", "", OutOfBand}, // of today
		{"EUR", "past", "1.5", "2026-06-17", ""},
		{"EUR", "past", "120.01", "2026-06-17", OutOfBand},
		{"USD", "a", "12.5", "1991-01-02", OutOfBand},
		{"EUR", "a", "1.5", "1991-01-02", OutOfBand},
	} {
		f := newFixture(t)
		f.state = NewCurrencyState(c.currency, testCatalogue(), DefaultRules())
		if o := dated(c.currency, c.buy, c.date); c.reason == "" {
			f.accept(c.source, o)
		} else {
			f.refuse(c.reason, c.source, o)
		}
	}
}

func TestX17_JumpsBySourceAndDate(t *testing.T) {
	for _, c := range []struct {
		source, last, next, date string
		jumps                    bool
	}{
		{"past", "30", "39", "2003-01-23", false}, // 30 %
		{"past", "30", "39.01", "2003-01-23", true},
		{"past", "10", "10.5", "1999-01-04", false}, // the rules' 5 %: its bound leaves that open
		{"past", "10", "10.51", "1999-01-04", true},
		{"past", "50", "55", "2020-01-06", false},
		{"past", "50", "55.01", "2020-01-06", true},
		{"a", "50", "52.51", "2020-01-06", true},
	} {
		f := newFixture(t)
		day := dayOf(c.date)
		for i, buy := range []string{c.last, c.next} {
			o := usd("bhd", buy, "")
			o.EffectiveDate = day + Date(i)
			f.now = at("2026-06-17T16:00:00Z").AddDate(0, 0, i)
			if i == 1 && c.jumps {
				f.refuse(Jump, c.source, o)
			} else {
				f.accept(c.source, o)
			}
		}
	}
}

func TestX17_TheOrderOfRangesDoesNotMatter(t *testing.T) {
	ranges := testCatalogue().Source("past").PlausibleRanges
	for shift := range ranges {
		rotated := append(append([]PlausibleRange{}, ranges[shift:]...), ranges[:shift]...)
		j := &validator{currency: "USD", source: Source{PlausibleRanges: rotated}, defaultRange: PlausibleRange{JumpPermille: 50}}
		for date, want := range map[string]int64{"1999-12-31": 50, "2000-01-01": 300, "2003-12-31": 300, "2004-01-01": 100} {
			if got := j.plausibleRange(dayOf(date)); got.JumpPermille != want {
				t.Errorf("on %s the limit is %d, want %d", date, got.JumpPermille, want)
			}
		}
	}
}

// A dated quote of a source that no longer changes is checked, and still expires.
func TestT1_WhatHasExpiredBeforeItWasSeenIsStale(t *testing.T) {
	f := newFixture(t)
	frozen := usd("bhd", "57", "60")
	frozen.EffectiveDate, frozen.ExpiresAt = DateOf(noon)-3, noon.Add(-time.Hour)
	f.accept("a", frozen)
	f.advance(time.Hour)
	f.accept("a", frozen)
	got := f.rate("bhd")
	if !got.Stale || !got.LastCheckedAt.Equal(f.now) || !got.ExpiresAt.Equal(frozen.ExpiresAt) || len(f.ranking(Buy))+len(f.ranking(Sell)) != 0 {
		t.Errorf("served as current: %+v", got)
	}
	if !f.view().changesAt.IsZero() {
		t.Errorf("it changes at %s", f.view().changesAt)
	}
	f.accept("b", usd("bhd", "57.5", "60"))
	if got := f.rate("bhd"); got.SourceID != "b" || got.Stale {
		t.Errorf("a current offer of another source gives way to it: %+v", got)
	}
}

// Quotes that are stale on arrival do not count for the median.
func TestT3_StaleQuotesMakeNoMedian(t *testing.T) {
	for _, stale := range []bool{false, true} {
		f := newFixture(t)
		banks := goodBanks()
		for i := range banks {
			if stale {
				banks[i].ExpiresAt = f.now
			}
		}
		receipt := f.observe("list", append(banks, usd("abonap", "47", "48"))...)
		if quarantined := len(receipt.Refused) == 1 && receipt.Refused[0].Reason == OffMarket; quarantined == stale {
			t.Errorf("stale %v: %+v", stale, receipt)
		}
	}
}

// The same observation from another document is quarantined once.
func TestX10_TheSameObservationOfAnotherDocument(t *testing.T) {
	f := newFixture(t)
	for _, document := range []string{"5e1f", "b00c", strings.Repeat("a", 100)} {
		o := usd("bhd", "0", "60")
		o.Document = document
		f.refuse(Zero, "a", o)
	}
	quarantined := f.state.Snapshot().Quarantine()
	if len(quarantined) != 1 || quarantined[0].Observation.Document != "5e1f" {
		t.Errorf("quarantine holds %+v", quarantined)
	}
	long := usd("caribe", "0", "60")
	long.Document = strings.Repeat("a", 100)
	f.refuse(Zero, "a", long)
	if got := f.state.Snapshot().Quarantine()[1].Observation.Document; got != strings.Repeat("a", 64) {
		t.Errorf("kept as %q", got)
	}
}

// The central bank published one value for both sides in the years of the fixed rate; since then equal sides are an
// error.
func TestX14_ReferencesMayHaveSidesThatDiffer(t *testing.T) {
	f := newFixture(t)
	f.state = NewCurrencyState("USD", DefaultCatalogue().WithSources(Source{ID: "official", Priority: 100, Lifetime: LifetimeDefault, PlausibleRanges: []PlausibleRange{
		{Currency: "USD", Until: dayOf("2002-12-31"), Lowest: decimalFrom("10")}, {Currency: "USD", SidesDiffer: true},
	}}), DefaultRules())
	dated := func(buy, sell, date string) Observation {
		o := reference(buy, sell)
		o.EffectiveDate = dayOf(date)
		return o
	}
	f.accept("official", dated("58.9", "59.3", DateOf(noon).String()))
	f.advance(time.Hour)
	f.refuse(SameSides, "official", dated("59.3", "59.30", DateOf(noon).String()))
	f.accept("official", dated("59.0", "", DateOf(noon).String()))
	f.state = NewCurrencyState("USD", f.state.catalogue, DefaultRules())
	f.accept("official", dated("12.5", "12.5", "1995-03-01"))
}

// A page that shows only one side, in the place of the other, has no crossed sides.
func TestX18_ASingleSideInTheOthersPlace(t *testing.T) {
	f := newFixture(t)
	f.accept("bdi-site", usd("bdi", "57.00", "59.00"))
	f.advance(time.Hour)
	f.refuse(Jump, "bdi-site", usd("bdi", "59.00", ""))
	f.refuse(Jump, "bdi-site", usd("bdi", "58.01", ""))
	f.advance(time.Hour)
	f.refuse(Jump, "bdi-site", usd("bdi", "", "57.99"))
	f.advance(time.Hour)
	f.accept("bdi-site", usd("bdi", "", "58.00"))
	f.advance(time.Hour)
	f.refuse(Jump, "bdi-site", usd("bdi", "58.00", ""))
	f.advance(time.Hour)
	f.accept("bdi-site", usd("bdi", "57.99", "")) // no own side to measure by, and too few quotes for a median
	f.refuse(Jump, "bdi-site", usd("bdi", "", "57.99"))
	f.advance(7*24*time.Hour + time.Second) // longer than LastGoodAgeMax
	f.accept("bdi-site", usd("bdi", "", "57.50"))

	for institution, price := range map[string]string{"bhd": "58.20", "popular": "58.30", "caribe": "58.90"} {
		f.accept(institution+"-site", usd(institution, price, "60.10"))
	}
	f.accept("bdi-site", usd("bdi", "57.00", "59.00"))
	for range 3 { // others are near it, but not for long enough
		f.advance(4 * time.Hour)
		f.refuse(Jump, "bdi-site", usd("bdi", "59.00", ""))
	}
	f.advance(4 * time.Hour)
	f.accept("bdi-site", usd("bdi", "59.00", ""))
}

func TestX2_OfEqualSourcesTheOneCheckedLastIsPublished(t *testing.T) {
	f := newFixture(t)
	f.accept("b-source", usd("bhd", "57.00", "60.00"))
	f.accept("a-source", usd("bhd", "57.10", "60.10"))
	if got := f.rate("bhd"); got.SourceID != "a-source" {
		t.Errorf("published %s; checked at one moment, the smaller id is", got.SourceID)
	}
	f.advance(time.Hour)
	f.accept("b-source", usd("bhd", "57.00", "60.00"))
	if got := f.rate("bhd"); got.SourceID != "b-source" {
		t.Errorf("published %s; the other one was checked last", got.SourceID)
	}
}

func TestX6_TheLastGoodValueIsAMeasureForSevenDays(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	f.advance(7 * 24 * time.Hour)
	f.refuse(Jump, "a", usd("bhd", "64", "67"))
	f.advance(time.Second)
	f.accept("a", usd("bhd", "64.5", "68"))
}

// The total of history counts every row, however many of a day fit on the page.
func TestP2_TotalOfHistoryWithAPageSmallerThanADay(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		f.accept("a", goodBanks()...)
		f.advance(24 * time.Hour)
	}
	today := DateOf(noon)
	for _, request := range []PageRequest{{1, 0}, {2, 0}, {4, 5}, {5, 7}, {LimitMax, 0}, {2, 17}} {
		page := f.state.Snapshot().History(HistoryQuery{PageRequest: request, From: today, To: today + 5})
		if want := min(request.Limit, 18-request.Cursor); page.Total != 18 || len(page.Items) != want {
			t.Errorf("%+v: %d of %d rows, want %d of 18", request, len(page.Items), page.Total, want)
		}
	}
}

// A withdrawal takes the precedence from the row of its own source only.
func TestT5_AWithdrawalLeavesTheRowOfAnotherSource(t *testing.T) {
	f := newFixture(t)
	f.accept("infodolar", usd("bhd", "57.0", "60")) // of lower priority
	f.advance(time.Minute)
	f.accept("a", usd("bhd", "57.5", "60"))
	f.advance(time.Minute)
	f.apply(Withdraw{QuoteKey{"bhd", Unspecified, Commercial}, "infodolar", "ana"})
	f.advance(time.Minute)
	f.accept("infodolar", usd("bhd", "57.2", "60"))
	f.wantHistory("2026-06-17 57.5 a")
}

// A good value ends the confirmation of a refused one.
func TestX5_AGoodValueEndsTheConfirmation(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("mocana", "60", ""))
	f.accept("b", usd("duarte", "56.5", ""))
	f.advance(5 * time.Hour)
	f.refuse(Jump, "a", usd("mocana", "56", ""))
	f.advance(5 * time.Hour)
	f.accept("a", usd("mocana", "60", ""))
	f.advance(5 * time.Hour)
	f.refuse(Jump, "a", usd("mocana", "56", "")) // refused once, not twice
	f.advance(5 * time.Hour)
	f.accept("a", usd("mocana", "56", ""))
}

// Of two values of one instant the second counts, in history and as the reference rate.
func TestT5_TheSecondValueOfOneInstant(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	f.accept("a", usd("bhd", "57.5", "60"))
	f.wantHistory("2026-06-17 57.5 a")
	f.accept("bcrd-reference", reference("58.5", "58.5"))
	f.accept("bcrd-reference", reference("61", "61"))
	f.refuse(OutOfBand, "b", usd("popular", "42.5", ""))
}

// An effective date may be seven days ahead, and not eight.
func TestI3_SevenDaysAhead(t *testing.T) {
	f := newFixture(t)
	for days, refused := range map[Date]bool{7: false, 8: true} {
		o := usd("bhd", "57", "60")
		o.EffectiveDate = DateOf(noon) + days
		if receipt := f.observe("a", o); (len(receipt.Refused) == 1) != refused {
			t.Errorf("%d days ahead: %+v", days, receipt)
		}
	}
	f.wantHistory("2026-06-24 57 a")
}

// 366 days are kept, also when the newest row is seven days ahead.
func TestT9_DaysAreKeptThoughARowIsAhead(t *testing.T) {
	f := newFixture(t)
	f.state = shortHistory("USD")
	today := DateOf(noon)
	first := usd("bhd", "57", "60")
	first.EffectiveDate = today - HistoryDaysMin + 1
	f.accept("a", first)
	ahead := usd("popular", "57", "60")
	ahead.EffectiveDate = today + Date(f.state.rules.FutureDaysMax)
	f.accept("a", ahead)
	if rows := f.historyOn(first.EffectiveDate, "bhd"); len(rows) != 1 {
		t.Errorf("the row of %s is gone", first.EffectiveDate)
	}
}
