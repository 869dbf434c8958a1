package engine

import (
	"testing"
	"time"
)

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

// Of two values of one instant history has the second.
func TestT5_TheSecondValueOfOneInstant(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	f.accept("a", usd("bhd", "57.5", "60"))
	f.wantHistory("2026-06-17 57.5 a")
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
}

// 366 days are kept, also when the newest row is seven days ahead.
func TestT9_DaysAreKeptThoughARowIsAhead(t *testing.T) {
	f := newFixture(t)
	rules := DefaultRules()
	rules.HistoryDays = HistoryDaysMin
	f.state = NewCurrencyState("USD", testCatalogue(), rules)
	today := DateOf(noon)
	first := usd("bhd", "57", "60")
	first.EffectiveDate = today - HistoryDaysMin + 1
	f.accept("a", first)
	ahead := usd("popular", "57", "60")
	ahead.EffectiveDate = today + Date(rules.FutureDaysMax)
	f.accept("a", ahead)
	if rows := f.historyOn(first.EffectiveDate, "bhd"); len(rows) != 1 {
		t.Errorf("the row of %s is gone", first.EffectiveDate)
	}
}
