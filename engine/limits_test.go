package engine

import "testing"

// TestLimitsAreThoseOfTheContract repeats each limit as a number: tests that use its name would follow any change.
func TestLimitsAreThoseOfTheContract(t *testing.T) {
	for name, c := range map[string][2]int64{
		"places of a rate": {DecimalPlacesMax, 8}, "digits of a rate": {decimalDigitsMax, 60}, "digits of an amount": {AmountWholeDigitsMax, 12},
		"places of an amount": {AmountPlacesMax, 2},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d, want %d", name, c[0], c[1])
		}
	}
}

// Reading and writing the values of a request does not allocate, except to copy the text of a source.
func TestWhatARequestNeedsAllocatesNothing(t *testing.T) {
	now, date, value, c, buffer := noon, DateOf(noon), decimalFrom("58.95"), conversion(t, "999999999999.99", "92233720368.54775807"), make([]byte, 0, AmountDOPBytesMax)
	for name, run := range map[string]func(){
		"ParseAmount":     func() { _, _ = ParseAmount("250.00") },
		"AppendAmountDOP": func() { buffer = c.AppendAmountDOP(buffer[:0]) },
		"ParseDate":       func() { _, _ = ParseDate("2026-06-17") },
		"DateOf":          func() { _ = DateOf(now) },
		"Append":          func() { buffer = date.Append(buffer[:0]) },
		"Start":           func() { _ = date.Start() },
		"NextRefresh":     func() { _ = NextRefresh(now) },
		"NextMidnight":    func() { _ = NextMidnight(now) },
		"ParseDecimal":    func() { _, _ = ParseDecimal("58.95") },
		"ReadDecimal":     func() { _, _ = ReadDecimal("58.95") },
		"Compare":         func() { _ = value.Compare(value) },
	} {
		want := map[string]float64{"ReadDecimal": 1}[name]
		if got := testing.AllocsPerRun(100, run); got != want {
			t.Errorf("%s allocates %v times, want %v", name, got, want)
		}
	}
}
