package pages

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/engine"
)

func MustDecimal(t rapid.TB, text string) engine.Decimal {
	if text == "" {
		return engine.Decimal{}
	}
	d, err := engine.ParseDecimal(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestMedian_Exact compares the median with rational arithmetic, with sums beyond 64 bits and many halves.
func TestMedian_Exact(t *testing.T) {
	halves := rapid.Map(rapid.Int64Range(1, 99), func(n int64) int64 { return n * medianUnitsDoubled / 4 })
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.OneOf(halves, rapid.Int64Range(1, math.MaxInt64-medianUnitsDoubled)), 1, 9).Draw(t, "units")
		slices.Sort(units)
		var sorted []engine.Decimal
		for _, u := range units {
			sorted = append(sorted, MustDecimal(t, formatFixed(u, unitsPerDOP, 8)))
		}
		got := median(sorted)
		if n := len(units); n%2 == 1 || units[n/2-1] == units[n/2] {
			if got != sorted[n/2] {
				t.Fatalf("the middle of %v is %s", sorted, got)
			}
			return
		}
		a, b := units[len(units)/2-1], units[len(units)/2]
		exact := new(big.Rat).SetFrac(big.NewInt(0).Add(big.NewInt(a), big.NewInt(b)), big.NewInt(2*unitsPerDOP))
		is, _ := new(big.Rat).SetString(got.String())
		off := new(big.Rat).Sub(is, exact)
		half := big.NewRat(1, 20_000)
		switch off.Abs(off).Cmp(half) {
		case 1:
			t.Fatalf("%s is more than half a unit away from %s", got, exact.FloatString(10))
		case 0:
			if digit := got.String()[len(got.String())-1]; (digit-'0')%2 == 1 {
				t.Fatalf("%s: a half goes to the even digit", got)
			}
		}
		if _, fraction, _ := strings.Cut(got.String(), "."); len(fraction) != 4 {
			t.Fatalf("%s has not four decimals", got)
		}
	})
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{"1": "1", "100": "100", "1000.00": "1,000.00", "123456": "123,456", "99999999999998990000.00": "99,999,999,999,998,990,000.00"} {
		if got := grouped(text); got != want {
			t.Errorf("grouped %s: %s", text, got)
		}
		if got := ungrouped(want); got != text {
			t.Errorf("ungrouped %s: %s", want, got)
		}
	}
	for text, want := range map[string]string{"1,5": "1.5", "250,50": "250.50"} { // a decimal comma
		if got := ungrouped(text); got != want {
			t.Errorf("ungrouped %s: %s", text, got)
		}
	}
	for _, text := range []string{"1,2345", ",100", "1,,000", "1000,000", "1.000,00", "1,000,", "", "12,34.5", "1.234,567"} {
		if got := ungrouped(text); got != text {
			t.Errorf("%s is taken for %s", text, got)
		}
	}
}

// TestChart_Inside checks that charts are drawn inside their box, between increasing labels.
func TestChart_Inside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := engine.Date(rapid.IntRange(700_000, 800_000).Draw(t, "from"))
		days := rapid.IntRange(1, 365).Draw(t, "days")
		var readings []chartPoint
		for _, day := range rapid.SliceOfNDistinct(rapid.IntRange(0, days-1), 0, days, rapid.ID).Draw(t, "on") {
			units := rapid.Int64Range(1, chartUnitsMax).Draw(t, "units")
			readings = append(readings, chartPoint{from.AddDays(day), MustDecimal(t, formatFixed(units, unitsPerDOP, 8))})
		}
		slices.SortFunc(readings, func(a, b chartPoint) int { return int(a.date - b.date) })
		c := newChart("x", from, from.AddDays(days-1), []series{{class: "a", key: "a", points: readings}})
		if len(readings) == 0 {
			if c != nil {
				t.Fatal("a chart of nothing")
			}
			return
		}
		if len(c.Ticks) < 2 || len(c.Ticks) > 12 {
			t.Fatalf("%d ticks", len(c.Ticks))
		}
		for i, tick := range c.Ticks {
			if tick.Y < chartTop || tick.Y > chartBottom || i > 0 && tick.Y >= c.Ticks[i-1].Y {
				t.Fatalf("ticks %+v", c.Ticks)
			}
		}
		if last := c.Bands[len(c.Bands)-1]; len(c.Bands) > chartBandsMax || last.Date != readings[len(readings)-1].date || last.Values[0] != c.Lines[0].Last {
			t.Fatalf("%d bands, the last with %+v", len(c.Bands), last)
		}
		l := c.Lines[0]
		if l.LastX < c.Left || l.LastX > c.Right || l.LastY < chartTop || l.LastY > chartBottom || c.LabelX <= 0 {
			t.Fatalf("the line ends at %d %d", l.LastX, l.LastY)
		}
		if strings.Count(l.Path, "M")+strings.Count(l.Path, "L") != len(readings) {
			t.Fatalf("%d readings make %s", len(readings), l.Path)
		}
	})
}

func TestChart_Ticks(t *testing.T) {
	value := func(text string) series {
		return series{class: "a", key: "a", points: []chartPoint{{700_000, MustDecimal(t, text)}}}
	}
	for _, tt := range []struct {
		lines []series
		want  string
	}{
		{[]series{value("59.30"), value("58.10")}, "58.00 58.50 59.00 59.50"},
		{[]series{value("59.30")}, "59.20 59.30 59.40"},
		{[]series{value("0.0701"), value("0.0704")}, "0.0701 0.0702 0.0703 0.0704"},
		{[]series{value("100"), value("500")}, "100.00 200.00 300.00 400.00 500.00"},
	} {
		var labels []string
		for _, tick := range newChart("x", 700_000, 700_006, tt.lines).Ticks {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// TestAmountAt_Pesos: pesos are divided by the price, and the result is rounded down to cents.
func TestAmountAt_Pesos(t *testing.T) {
	for pesos, want := range map[string]string{"10000": "170.64", "0.01": "0.00", "58.60": "1.00", "58.59": "0.99", "999999999999.99": "17,064,846,416.38"} {
		q := pageQuery{Operation: engine.Buy, Pesos: true}
		if q.readAmount(pesos); amountAt(q, &engine.Rate{Sell: MustDecimal(t, "58.60")}) != want {
			t.Errorf("RD$ %s: %s, want %s", pesos, amountAt(q, &engine.Rate{Sell: MustDecimal(t, "58.60")}), want)
		}
	}
}
