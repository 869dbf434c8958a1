//go:build faults

package engine

import (
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
		c := ingestReal(t, refreshes, rules)
		t.Logf("FIGURE strict %v: %d good observations, %d refused; %d days of an institution, %d of them without a value for it", planted, c.good, c.goodRefused, c.days, c.lost)
		if within := c.goodRefused*1000 <= c.good && c.lost*1000 <= c.days; within == planted || c.good == 0 || c.days == 0 {
			t.Errorf("strict %v: %d of %d values, %d of %d days are refused", planted, c.goodRefused, c.good, c.lost, c.days)
		}
	}
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
