package engine

import (
	"fmt"
	"testing"
)

// realCounts counts what became of real observations. The errors are the known ones; the days are those of an
// institution that had good observations, lost are those of them without an accepted one.
type realCounts struct {
	total, errors, caught, good, goodRefused, days, lost int
	reasons                                              map[Reason]int
}

// ingestReal ingests real observations, errors included. Nothing wrong may be served at any time.
func ingestReal(t *testing.T, refreshes []Refresh, rules Rules) realCounts {
	t.Helper()
	c := realCounts{reasons: map[Reason]int{}}
	state := NewCurrencyState("USD", testCatalogue(), rules)
	accepted, low, high := map[string]bool{}, decimalFrom("46"), decimalFrom("70") // by institution and day
	for _, refresh := range refreshes {
		decision, err := state.Decide(Observe{[]Refresh{refresh}}, refresh.ObservedAt)
		must(t, err)
		left := map[string]int{}
		name := func(o Observation) string { return fmt.Sprint(o.Key(), DateOf(refresh.ObservedAt)) }
		for _, o := range refresh.Observations {
			_, institution := DefaultCatalogue().Institution(o.InstitutionID)
			if _, currency := DefaultCatalogue().Currency(o.Currency); !institution || !currency {
				t.Fatalf("unknown institution or currency: %+v", o)
			}
			if c.total++; good(o) {
				c.good++
				left[name(o)]++
			} else {
				c.errors++
			}
		}
		for _, refusal := range decision.Receipt.Refused {
			if c.reasons[refusal.Reason]++; good(refusal.Observation) {
				c.goodRefused++
				left[name(refusal.Observation)]--
			} else {
				c.caught++
			}
		}
		for day, count := range left {
			accepted[day] = accepted[day] || count > 0
		}
		replay(state, decision.Events)
		for _, rate := range state.Snapshot().view(refresh.ObservedAt).rates {
			for _, side := range []Decimal{rate.Buy, rate.Sell} {
				if !side.IsNull() && (side.Compare(low) < 0 || side.Compare(high) > 0 || len(side.String()) > 11) {
					t.Fatalf("at %s %s is served with %s", refresh.ObservedAt, rate.ID, side)
				}
			}
		}
	}
	for _, one := range accepted {
		if c.days++; !one {
			c.lost++
		}
	}
	return c
}

// Of four years of real observations all known errors are caught, and at most one good value in a thousand is refused.
func TestI3_RealObservations(t *testing.T) {
	c := ingestReal(t, realRefreshes(t), DefaultRules())
	t.Logf("%+v", c)
	if c.total != 20575 || c.caught != c.errors || c.goodRefused*1000 > c.total {
		t.Errorf("want 20575 observations, all errors caught, and at most 0.1 %% of the good ones refused: %+v", c)
	}
	if c.reasons[Zero] == 0 || c.reasons[NoSide] == 0 || c.reasons[OutOfBand] == 0 {
		t.Errorf("no observation was refused for one of the reasons that the data have: %v", c.reasons)
	}
}

// good is false for the known errors in the data: zeros, empty rows, the lost decimal of 6.09 and the Canadian dollar
// read as American, 39.6971.
func good(o Observation) bool {
	return !(o.Buy == "" && o.Sell == "") && !zeroText(o.Buy) && !zeroText(o.Sell) && o.Buy != "6.09" && o.Buy != "39.6971"
}

func zeroText(text string) bool {
	d, err := ReadDecimal(text)
	return err == nil && d.IsZero()
}
