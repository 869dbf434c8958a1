package baseline

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/engine"
)

var start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func everything(string) bool { return true }

// observed makes observations from lines of institution, currency, buy and sell; a dot is a missing side.
func observed(lines ...string) []engine.Observation {
	var all []engine.Observation
	for _, line := range lines {
		words := strings.Fields(line)
		all = append(all, engine.Observation{InstitutionID: words[0], Currency: words[1], Buy: strings.Trim(words[2], "."), Sell: strings.Trim(words[3], ".")})
	}
	return all
}

// next learns one run, eight hours after the last one.
func next(b Baseline, complete func(string) bool, lines ...string) Baseline {
	at := b.At.Add(8 * time.Hour)
	if b.At.IsZero() {
		at = start
	}
	return b.After(Run{Slot: at, At: at, Observations: observed(lines...), Complete: complete})
}

// learn repeats runs. lines are those of each run.
func learn(b Baseline, runs int, lines ...string) Baseline {
	for range runs {
		b = next(b, everything, lines...)
	}
	return b
}

// TestMissing: a source gives dollars and euros, both sides, and then loses parts in various ways.
func TestMissing(t *testing.T) {
	dollars, euros, eurosBuy := "bhd USD 57 59", "bhd EUR 66 71", "bhd EUR 66 ."
	const euroSell = "sell of bhd:EUR:unspecified:commercial missing for %d runs; it was there in %d of %d"
	full := learn(Baseline{}, 100, dollars, euros)
	flaky := Baseline{} // every fourth run lacks the sell side
	for i := range 100 {
		flaky = next(flaky, everything, dollars, []string{eurosBuy, euros, euros, euros}[i%4])
	}
	noEuros := func(currency string) bool { return currency != "EUR" }
	for name, c := range map[string]struct {
		b    Baseline
		want []string
	}{
		"all there":                  {full, nil},
		"two runs":                   {learn(full, 2, dollars, eurosBuy), nil},
		"one side for three runs":    {learn(full, 3, dollars, eurosBuy), []string{fmt.Sprintf(euroSell, 3, 64, 64)}},
		"one side for long":          {learn(full, 63, dollars, eurosBuy), []string{fmt.Sprintf(euroSell, 63, 64, 64)}},
		"forgotten":                  {learn(full, 64, dollars, eurosBuy), nil},
		"a whole currency":           {learn(full, 4, dollars), []string{"buy of bhd:EUR:unspecified:commercial missing for 4 runs; it was there in 64 of 64", fmt.Sprintf(euroSell, 4, 64, 64)}},
		"it came back":               {learn(learn(full, 4, dollars), 1, dollars, euros), nil},
		"it came back, and is gone":  {learn(learn(learn(full, 4, dollars, eurosBuy), 1, dollars, euros), 3, dollars, eurosBuy), []string{fmt.Sprintf(euroSell, 3, 60, 64)}},
		"it came back and is rarer":  {learn(learn(learn(full, 10, dollars, eurosBuy), 1, dollars, euros), 3, dollars, eurosBuy), nil},
		"too new":                    {learn(learn(Baseline{}, 20, dollars, euros), 30, dollars, eurosBuy), nil},
		"just known":                 {learn(learn(Baseline{}, 21, dollars, euros), 3, dollars, eurosBuy), []string{fmt.Sprintf(euroSell, 3, 21, 21)}},
		"a part that comes and goes": {learn(flaky, 10, dollars, eurosBuy), nil},
		"a new part, and gone":       {learn(next(full, everything, dollars, euros, "bhd CHF 70 75"), 10, dollars, euros), nil},
		"a page that fails":          {next(next(next(full, noEuros, dollars), noEuros, dollars), noEuros, dollars), nil},
		"sides in two observations":  {learn(learn(full, 5, dollars, "bhd EUR 66 .", "bhd EUR . 71"), 5, dollars, "bhd EUR . 71", "bhd EUR 66 ."), nil},
		"nothing":                    {Baseline{}, nil},
	} {
		if got := c.b.Missing(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	gone := learn(full, 64, dollars, eurosBuy)
	if got := gone.Forgotten(learn(full, 63, dollars, eurosBuy)); !slices.Equal(got, []string{"sell of bhd:EUR:unspecified:commercial"}) {
		t.Errorf("forgotten: %q", got)
	}
	if got := learn(gone, 1, dollars, eurosBuy).Forgotten(gone); len(got) != 0 {
		t.Errorf("forgotten twice: %q", got)
	}
}

// model is what a Part should be, from the plain history of a side since it was first read.
func model(history []bool) Part {
	last := len(history)
	for last > 0 && !history[last-1] {
		last--
	}
	missing := len(history) - last
	if last == 0 || missing >= window {
		return Part{}
	}
	known := history[max(0, last-window):last]
	part := Part{Runs: len(known), Missing: missing}
	for _, had := range known {
		part.Seen <<= 1
		if had {
			part.Seen |= 1
		}
	}
	return part
}

// TestPart_IsItsHistory compares a Part with the plain history of a side.
func TestPart_IsItsHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		percent := rapid.IntRange(1, 100).Draw(t, "percent")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var history []bool
		var part Part
		for range rapid.IntRange(1, 300).Draw(t, "runs") {
			read, complete := random.IntN(100) < percent, random.IntN(10) > 0
			part = part.after(read, complete)
			if read || complete && len(history) > 0 {
				history = append(history, read)
			}
			want := model(history)
			if want == (Part{}) {
				history = nil // forgotten
			}
			if part != want {
				t.Fatalf("%+v, want %+v after %v", part, want, history)
			}
			if part.Lost() && (part.Runs < 21 || part.Missing < 3 || part.Count()*10 < part.Runs*9) {
				t.Fatalf("%+v is called lost", part)
			}
		}
	})
}

// TestLimits: neither many quotes nor strange ones make a Baseline large or unreadable, and a slot counts once.
func TestLimits(t *testing.T) {
	var lines []string
	for i := range 2 * quotesMax {
		lines = append(lines, fmt.Sprintf("house-%d USD 57 59", i))
	}
	b := next(Baseline{}, everything, append([]string{"bhd USD 57 59"}, "a:b USD 57 59", strings.Repeat("x", 500)+" USD 57 59", "bad\xff USD 57 59")...)
	if len(b.Quotes) != 1 {
		t.Errorf("strange institutions are learnt: %v", b)
	}
	b = learn(b, 100, lines...)
	if text := b.Encode(); len(b.Quotes) != quotesMax || len(text) > engine.BaselineBytesMax {
		t.Errorf("%d quotes in %d bytes", len(b.Quotes), len(text))
	}
	if again := b.After(Run{Slot: b.Slot, At: b.At.Add(time.Hour), Complete: everything}); !reflect.DeepEqual(again, b) {
		t.Error("the same slot is learnt twice")
	}
	if back, err := Decode(b.Encode()); err != nil || !reflect.DeepEqual(back, b) {
		t.Errorf("%v: another Baseline is read: %+v\nwant %+v", err, back, b)
	}
	for _, text := range []string{"{", `{"quotes":{"bhd:USD":{}}}`, "[]"} {
		if got, err := Decode(text); err == nil || got.Quotes != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if empty, err := Decode(""); err != nil || empty.Frozen() || empty.Unchanged() != 0 || len(empty.Missing()) != 0 {
		t.Errorf("of nothing: %+v, %v", empty, err)
	}
}

// prices learns daily runs. A price changes after each of the given numbers of days.
func prices(b Baseline, daysToChange ...int) Baseline {
	at := start
	if !b.At.IsZero() {
		at = b.At.Add(day)
	}
	for i, days := range daysToChange {
		for range days {
			b = b.After(Run{Slot: at, At: at, Complete: everything, Observations: observed(fmt.Sprintf("bhd USD 57.%d 59", 10+i%2), "bhd EUR 66 71")})
			at = at.Add(day)
		}
	}
	return b
}

// TestFrozen: the limit follows the habits of the source.
func TestFrozen(t *testing.T) {
	daily, weekly := slices.Repeat([]int{1}, 40), slices.Repeat([]int{2, 5}, 20)
	withFreeze := append(append(slices.Clone(daily), 25), daily...)
	for name, c := range map[string]struct {
		b     Baseline
		limit int // days
	}{
		"new":                     {prices(Baseline{}, 1, 1, 1), 30},
		"changes every day":       {prices(Baseline{}, daily...), 7},
		"changes at most weekly":  {prices(Baseline{}, weekly...), 10},
		"one freeze is no habit":  {prices(Baseline{}, withFreeze...), 7},
		"two are":                 {prices(Baseline{}, append(slices.Clone(withFreeze), 25, 1)...), 30},
		"they are forgotten":      {prices(Baseline{}, append(append(slices.Clone(withFreeze), 25), slices.Repeat([]int{1}, 66)...)...), 7},
		"a pause is not a change": {readLater(readLater(prices(Baseline{}, daily...), 40*day, "bhd USD 61 62"), 40*day, "bhd USD 61 63"), 7},
	} {
		if got := c.b.ChangeLimit(); got != time.Duration(c.limit)*day {
			t.Errorf("%s: %v, want %d days", name, got, c.limit)
		}
		b := c.b
		for days := range c.limit + 2 {
			if b = readLater(b, day, "bhd USD 58 60"); b.Frozen() != (days > c.limit) {
				t.Fatalf("%s: frozen is %v after %d days without a change (%v)", name, b.Frozen(), days, b.Unchanged())
			}
		}
	}
	// A page whose own date is old is frozen at once.
	old := observed("bcrd USD 54 55")
	old[0].EffectiveDate = engine.DateOf(start.AddDate(-4, 0, 0))
	b := Baseline{}.After(Run{Slot: start, At: start, Complete: everything, Observations: old})
	if !b.Frozen() || engine.DateOf(b.UnchangedSince()) != old[0].EffectiveDate {
		t.Errorf("%v since %v", b.Frozen(), b.UnchangedSince())
	}
}

// readLater learns a run that comes some time after the last one.
func readLater(b Baseline, pause time.Duration, line string) Baseline {
	at := b.At.Add(pause)
	return b.After(Run{Slot: at, At: at, Complete: everything, Observations: observed(line)})
}
