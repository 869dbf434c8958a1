package pages

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
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
	halves := rapid.Map(rapid.Int64Range(1, 99), func(n int64) int64 { return n * unitsPerDOP / 20_000 })
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.OneOf(halves, rapid.Int64Range(1, math.MaxInt64-unitsPerDOP)), 1, 9).Draw(t, "units")
		slices.Sort(units)
		var sorted []engine.Decimal
		for _, u := range units {
			sorted = append(sorted, decimalOf(t, u))
		}
		got, n := median(sorted), len(units)
		if n%2 == 1 || units[n/2-1] == units[n/2] {
			if got != sorted[n/2] {
				t.Fatalf("the middle of %v is %s", sorted, got)
			}
			return
		}
		const step = 2 * unitsPerDOP / 10_000 // twice the smallest step of a mean
		sum := new(big.Int).Add(big.NewInt(units[n/2-1]), big.NewInt(units[n/2]))
		steps := sum.Add(sum, big.NewInt(step/2)).Div(sum, big.NewInt(step))
		if want := new(big.Rat).SetFrac(steps, big.NewInt(10_000)).FloatString(4); steps.Sign() > 0 && got.String() != want {
			t.Fatalf("the mean of the middle of %v is %s, want %s", sorted, got, want)
		}
	})
}

func decimalOf(t rapid.TB, units int64) engine.Decimal {
	return MustDecimal(t, big.NewRat(units, unitsPerDOP).FloatString(8))
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
	texts := ReadTexts(Folder(publicFiles, "public"))
	rapid.Check(t, func(t *rapid.T) {
		from := engine.Date(rapid.IntRange(700_000, 800_000).Draw(t, "from"))
		days := rapid.IntRange(1, 365).Draw(t, "days")
		var points []chartPoint
		for _, day := range rapid.SliceOfNDistinct(rapid.IntRange(0, days-1), 0, days, rapid.ID).Draw(t, "on") {
			points = append(points, chartPoint{from.AddDays(day), decimalOf(t, rapid.Int64Range(1, chartUnitsMax).Draw(t, "units"))})
		}
		slices.SortFunc(points, func(a, b chartPoint) int { return int(a.date - b.date) })
		l := &Localizer{Language: Spanish, texts: texts}
		drawn := l.chart("chart.quote", from, from.AddDays(days-1), series{class: "best", key: "line.best", points: points})
		if len(points) == 0 {
			if drawn != nil {
				t.Fatal("a chart of nothing")
			}
			return
		}
		var text strings.Builder
		if err := drawn.Render(&text); err != nil {
			t.Fatal(err)
		}
		grid := regexp.MustCompile(`class="grid" d="M\d+ (\d+)H3960"`).FindAllStringSubmatch(text.String(), -1)
		before := math.MaxInt
		for _, line := range grid {
			y, err := strconv.Atoi(line[1])
			if err != nil || y < chartTop || y > chartBottom || y >= before {
				t.Fatalf("grid lines at %v", grid)
			}
			before = y
		}
		path := regexp.MustCompile(`class="line best" d="([^"]*)"`).FindStringSubmatch(text.String())
		ends := regexp.MustCompile(`[ML](\d+) (\d+)`).FindAllStringSubmatch(path[1], -1)
		for _, end := range ends {
			x, errX := strconv.Atoi(end[1])
			y, errY := strconv.Atoi(end[2])
			if errX != nil || errY != nil || x < chartMargin || x > chartRight || y < chartTop || y > chartBottom {
				t.Fatalf("the line is at %v", end)
			}
		}
		bands := strings.Split(text.String(), `class="band"`)[1:]
		if len(grid) < 2 || len(grid) > 12 || len(ends) != len(points) || len(bands) > chartBandsMax ||
			!strings.Contains(bands[len(bands)-1], "· Mejor "+sideOrDash(points[len(points)-1].value)+"<") {
			t.Fatalf("%d grid lines, %d of %d points, %d bands:\n%s", len(grid), len(ends), len(points), len(bands), text.String())
		}
	})
}

func TestChart_Ticks(t *testing.T) {
	for values, want := range map[[2]string]string{
		{"59.30", "58.10"}: "58.00 58.50 59.00 59.50", {"59.30", "59.30"}: "59.20 59.30 59.40",
		{"0.0701", "0.0704"}: "0.0701 0.0702 0.0703 0.0704", {"100", "500"}: "100.00 200.00 300.00 400.00 500.00",
	} {
		var line series
		line.add(700_000, MustDecimal(t, values[0]))
		line.add(700_001, MustDecimal(t, values[1]))
		s, _ := newScale(700_000, 700_006, []series{line})
		var labels []string
		for value := s.low; value <= s.high; value += s.step {
			labels = append(labels, tickLabel(value, s.step))
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("got %s, want %s", got, want)
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
