package engine

import "testing"

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
