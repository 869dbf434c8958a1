package main

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFigures_Value(t *testing.T) {
	for _, tt := range []struct {
		m           measure
		value, want string
		verdict     verdict
	}{
		{measure{Unit: "×", Value: 0.9312, Want: 0.9, AtLeast: true}, "0.93×", "≥ 0.90×", verdictMet},
		{measure{Unit: "×", Value: 0.86, Want: 0.9, AtLeast: true}, "0.86×", "≥ 0.90×", verdictShort},
		{measure{Unit: "×", Value: 0.8996, Want: 0.9, AtLeast: true}, "0.8996×", "≥ 0.90×", verdictShort},
		{measure{Unit: "×", Value: 0.9, Want: 0.9, AtLeast: true}, "0.90×", "≥ 0.90×", verdictMet},
		{measure{Unit: "×", Value: 1.1201, Want: 1.12}, "1.1201×", "≤ 1.12×", verdictShort},
		{measure{Unit: "×", Value: 1, Want: 1, AtLeast: true}, "1.00×", "≥ 1.00×", verdictMet},
		{measure{Unit: "×", Value: 9.996, Want: 10, AtLeast: true}, "9.996×", "≥ 10×", verdictShort},
		{measure{Unit: "×", Value: 34.26, Want: 10, AtLeast: true}, "34.3×", "≥ 10×", verdictMet},
		{measure{Unit: "allocations", Value: 0}, "0 allocations", "≤ 0 allocations", verdictMet},
		{measure{Unit: "allocations", Value: 0.0004}, "0.00040 allocations", "≤ 0 allocations", verdictShort},
		{measure{Unit: "ms", Value: 1000.2, Want: 1000}, "1,000.2 ms", "≤ 1,000 ms", verdictShort},
		{measure{Unit: "ms", Value: 812.4, Want: 1000}, "812 ms", "≤ 1,000 ms", verdictMet},
		{measure{Unit: "/s", Value: 1234567.8, Want: 50000, AtLeast: true}, "1,234,568/s", "≥ 50,000/s", verdictMet},
		{measure{Unit: "B", Value: 12.5, Free: true}, "12.5 B", "no bound", verdictFree},
		{measure{Value: -1500, Free: true}, "-1,500", "no bound", verdictFree},
	} {
		if got := tt.m.valueText(); got != tt.value {
			t.Errorf("%+v: value %q, want %q", tt.m, got, tt.value)
		}
		if got := tt.m.boundText(); got != tt.want {
			t.Errorf("%+v: bound %q, want %q", tt.m, got, tt.want)
		}
		if got := tt.m.verdict(); got != tt.verdict {
			t.Errorf("%+v: %s, want %s", tt.m, got, tt.verdict)
		}
	}
}

func TestFigures_Quartiles(t *testing.T) {
	for _, tt := range []struct {
		rounds    []float64
		low, high float64
		ok        bool
	}{
		{nil, 0, 0, false},
		{[]float64{7}, 0, 0, false},
		{[]float64{3, 1}, 1.5, 2.5, true},
		{[]float64{5, 1, 4, 2, 3}, 2, 4, true},
		{[]float64{1, 2, 3, 4}, 1.75, 3.25, true},
	} {
		low, high, ok := quartiles(tt.rounds)
		if low != tt.low || high != tt.high || ok != tt.ok {
			t.Errorf("quartiles(%v) = %v, %v, %v; want %v, %v, %v", tt.rounds, low, high, ok, tt.low, tt.high, tt.ok)
		}
	}
}

func TestFigures_QuartilesLieWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rounds := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 2, 40).Draw(t, "rounds")
		low, high, ok := quartiles(rounds)
		if !ok || low > high {
			t.Fatalf("quartiles(%v) = %v, %v, %v", rounds, low, high, ok)
		}
		below, above := 0, 0
		for _, v := range rounds {
			if v < low {
				below++
			}
			if v > high {
				above++
			}
		}
		if most := (len(rounds)-1)/4 + 1; below > most || above > most {
			t.Fatalf("quartiles(%v) = %v, %v: %d of %d below, %d above", rounds, low, high, below, len(rounds), above)
		}
	})
}

func TestFigures_Words(t *testing.T) {
	for got, want := range map[string]string{
		latency(0):                         "0 ns",
		latency(999):                       "999 ns",
		latency(1500):                      "1.50 µs",
		latency(27 * time.Microsecond):     "27 µs",
		latency(123456 * time.Microsecond): "123 ms",
		latency(90 * time.Second):          "90 s",
		magnitude(26340, "/s"):             "30,000/s",
		magnitude(0, "/s"):                 "0/s",
		magnitude(37120, "ns"):             "40 µs",
		magnitude(0.034, "ms"):             "0.030 ms",
		spell(340 * time.Millisecond):      "340ms",
		spell(90 * time.Second):            "1m30s",
		spell(2 * time.Minute):             "2m",
		spell(time.Hour):                   "1h",
		spell(10*time.Hour + time.Minute):  "10h1m",
		bytesText(8_324_030_464):           "7.75 GiB",
		bytesText(512 << 20):               "512 MiB",
		bytesText(0):                       "unknown",
		counted(1, "core"):                 "1 core",
		counted(1000, "account"):           "1,000 accounts",
		number(math.MaxInt32, 0):           "2,147,483,647",
		number(999.5, 1):                   "999.5",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFigures_Commit(t *testing.T) {
	for want, r := range map[string]report{
		"unknown":      {},
		"4f2a9c1d7b3e": {Commit: "4f2a9c1d7b3e5f60718293a4b5c6d7e8f9012345"},
		"4f2a with changes that are not committed": {Commit: "4f2a", Changed: true},
	} {
		if got := r.shortCommit(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}
