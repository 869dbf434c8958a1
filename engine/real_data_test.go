package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Of four years of real observations, errors included, nothing wrong is served, and at most one good value in a
// thousand is refused.
func TestI3_RealObservations(t *testing.T) {
	refreshes := realRefreshes(t)
	state := NewCurrencyState("USD", testCatalogue(), DefaultRules())
	total, known, caught, quarantined, goodHeld := 0, 0, 0, map[Reason]int{}, []string{}
	low, high := decimalFrom("46"), decimalFrom("70")
	for _, refresh := range refreshes {
		decision, err := state.Decide(Observe{[]Refresh{refresh}}, refresh.ObservedAt)
		must(t, err)
		total += len(refresh.Observations)
		for _, observation := range refresh.Observations {
			_, institution := DefaultCatalogue().Institution(observation.InstitutionID)
			if _, currency := DefaultCatalogue().Currency(observation.Currency); !institution || !currency {
				t.Fatalf("unknown institution or currency: %+v", observation)
			}
			if !good(observation) {
				known++
			}
		}
		for _, refusal := range decision.Receipt.Refused {
			quarantined[refusal.Reason]++
			line := fmt.Sprintf("%s %s %s %s/%s: %s", refresh.ObservedAt.Format("2006-01-02"),
				refresh.SourceID, refusal.Observation.InstitutionID, refusal.Observation.Buy, refusal.Observation.Sell, refusal.Detail)
			if good(refusal.Observation) {
				goodHeld = append(goodHeld, line)
				continue
			}
			caught++
			if refusal.Reason != Zero && refusal.Reason != NoSide {
				t.Log("outlier: " + line)
			}
		}
		for _, event := range decision.Events {
			state.Apply(event)
		}
		for _, rate := range state.Snapshot().View(nil, refresh.ObservedAt).rates {
			for _, side := range []Decimal{rate.Buy, rate.Sell} {
				if !side.IsNull() && (side.Compare(low) < 0 || side.Compare(high) > 0 || len(side.String()) > 11) {
					t.Fatalf("at %s %s is served with %s", refresh.ObservedAt, rate.ID, side)
				}
			}
		}
	}
	t.Logf("%d observations in %d refreshes; quarantined: %v; %d of %d known errors caught; good ones quarantined: %d",
		total, len(refreshes), quarantined, caught, known, len(goodHeld))
	for _, line := range goodHeld {
		t.Log("good: " + line)
	}
	if caught != known {
		t.Errorf("%d of %d known errors are caught", caught, known)
	}
	if total != 20575 {
		t.Errorf("read %d observations, want 20575", total)
	}
	if len(goodHeld)*1000 > total {
		t.Errorf("%d good observations of %d are refused, more than 0.1 %%", len(goodHeld), total)
	}
	for _, reason := range []Reason{Zero, NoSide, OutOfBand} {
		if quarantined[reason] == 0 {
			t.Errorf("no observation was quarantined for %s; reasons were %v", reason, slices.Sorted(maps.Keys(quarantined)))
		}
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
