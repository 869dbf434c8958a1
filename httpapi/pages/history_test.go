package pages

import (
	"maps"
	"math"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

// Noon is 12:00 of a Saturday in Santo Domingo.
func Noon() time.Time { return time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC) }

func TestLimiter_BurstThenAsTimeGoes(t *testing.T) {
	l := newLimiter(PerMinuteDefault)
	now := Noon()
	me := netip.MustParseAddr("192.0.2.1")
	admitted := 0
	for second := range 600 { // 20 requests a second for ten minutes
		for range 20 {
			if _, ok := l.admit(me, now.Add(time.Duration(second)*time.Second)); ok {
				admitted++
			}
		}
	}
	if want := limitBurst + 599*PerMinuteDefault/60; admitted != want {
		t.Errorf("%d in ten minutes, want %d", admitted, want)
	}
}

func TestLimiter_SixByNetwork(t *testing.T) {
	l := newLimiter(60)
	now := Noon()
	spend := func(text string) (admitted int) {
		for range 100 {
			if _, ok := l.admit(netip.MustParseAddr(text), now); ok {
				admitted++
			}
		}
		return admitted
	}
	for _, tt := range []struct {
		address string
		want    int
	}{
		{"2001:db8:0:1::1", 60}, {"2001:db8:0:1:ffff::2", 0}, {"2001:db8:0:2::1", 60}, {"192.0.2.7", 60}, {"::ffff:192.0.2.7", 0}, {"::c000:207", 60},
	} {
		if got := spend(tt.address); got != tt.want {
			t.Errorf("%s: %d admitted, want %d", tt.address, got, tt.want)
		}
	}
}

// TestWords_Both checks that every text exists in both languages, takes the same values and is used, and that every
// key has a text.
func TestWords_Both(t *testing.T) {
	verbs, asked := regexp.MustCompile(`%[a-z]`), regexp.MustCompile(`\.(?:T|Str|Count)\("([a-zA-Z0-9.]+)"`)
	quoted, frame := regexp.MustCompile(`"([a-z]+(?:\.[a-zA-Z0-9.]*)?)"`), sourceOf(t, ".")
	for folder, code := range map[string]string{"public": frame, "account/files": sourceOf(t, "account"), "docs/files": sourceOf(t, "docs")} {
		all := ReadTexts(os.DirFS(folder)).words
		for _, found := range asked.FindAllStringSubmatch(code, -1) {
			if key := found[1]; all[Spanish][key] == "" && all[Spanish][key+".one"] == "" && !strings.HasSuffix(key, ".") {
				t.Errorf("%s: no text has the key %s", folder, key)
			}
		}
		used := quoted.FindAllStringSubmatch(code+frame, -1) // keys that are built, up to their last dot
		keys := maps.Clone(all[Spanish])
		maps.Copy(keys, all[English])
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			es, en := all[Spanish][key], all[English][key]
			if strings.HasPrefix(key, "currency.") && en != "" {
				continue
			}
			if es == "" || en == "" {
				t.Errorf("%s: the text %s is missing in a language", folder, key)
			}
			if !slices.Equal(verbs.FindAllString(es, -1), verbs.FindAllString(en, -1)) {
				t.Errorf("%s: %s takes other values in Spanish (%q) than in English (%q)", folder, key, es, en)
			}
			if !slices.ContainsFunc(used, func(found []string) bool { return strings.HasPrefix(key, found[1]) }) {
				t.Errorf("%s: nothing uses %s", folder, key)
			}
		}
	}
}

func sourceOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(folder, err)
	}
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") {
			code.Write(text)
		}
	}
	return code.String()
}
