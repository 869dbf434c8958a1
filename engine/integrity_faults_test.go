//go:build faults

package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// conversionCases is three times the goal.
const conversionCases = 3_000_000

// TestFaultsD2_RealHistory ingests real observations. At most one good value in a thousand may be refused, and on at
// most one day in a thousand all good values of an institution.
func TestFaultsD2_RealHistory(t *testing.T) {
	refreshes := realRefreshes(t)
	for _, planted := range []bool{false, true} {
		rules := DefaultRules()
		if planted { // the control: a firewall that is too strict
			rules.JumpPermille = 1
		}
		values, quarantined, days, lost := realHistory(t, refreshes, rules)
		t.Logf("FIGURE strict %v: %d good observations, %d refused; %d days of an institution, %d of them without a value for it", planted, values, quarantined, days, lost)
		if within := quarantined*1000 <= values && lost*1000 <= days; within == planted || values == 0 || days == 0 {
			t.Errorf("strict %v: %d of %d values, %d of %d days are refused", planted, quarantined, values, lost, days)
		}
	}
}

// realHistory counts good observations, those refused, the days on which an institution had good ones, and those of
// these days without an accepted one.
func realHistory(t *testing.T, refreshes []Refresh, rules Rules) (values, quarantined, days, lost int) {
	t.Helper()
	state := NewCurrencyState("USD", testCatalogue(), rules)
	taken, seen := map[string]bool{}, map[string]bool{}
	for _, refresh := range refreshes {
		decision, err := state.Decide(Observe{[]Refresh{refresh}}, refresh.ObservedAt)
		must(t, err)
		left := map[string]int{}
		name := func(o Observation) string { return fmt.Sprint(o.Key(), DateOf(refresh.ObservedAt)) }
		for _, o := range refresh.Observations {
			if good(o) {
				values++
				left[name(o)]++
				seen[name(o)] = true
			}
		}
		for _, refusal := range decision.Receipt.Refused {
			if good(refusal.Observation) {
				quarantined++
				left[name(refusal.Observation)]--
			}
		}
		for day, count := range left {
			taken[day] = taken[day] || count > 0
		}
		for _, event := range decision.Events {
			state.Apply(event)
		}
	}
	for day := range seen {
		if !taken[day] {
			lost++
		}
	}
	return values, quarantined, len(seen), lost
}

// TestFaultsD3_Conversions compares three million random conversions with big.Rat, with a new seed each time.
func TestFaultsD3_Conversions(t *testing.T) {
	seed := rand.Uint64() //nolint:forbidigo // printed below
	dice := rand.New(rand.NewPCG(seed, 0))
	wrong, first := conversionFaults(t, dice, conversionCases, Conversion.AmountDOP)
	t.Logf("FIGURE %d conversions against big.Rat, %d wrong; seed %d", conversionCases, wrong, seed)
	if wrong > 0 {
		t.Errorf("conversions differ: %s", first)
	}
	planted, _ := conversionFaults(t, dice, 10_000, func(c Conversion) string {
		return conversion(t, c.Amount.String(), rationalOf(c.Side().String()).FloatString(7)).AmountDOP()
	})
	t.Logf("FIGURE control, sides rounded to seven digits: %d of 10000 wrong", planted)
	if planted == 0 {
		t.Error("the test is blind")
	}
}
