package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decimalsMax is how fine a figure may be shown.
const decimalsMax = 6

// ratioUnit is the unit of a measure that compares two sides.
const ratioUnit = "×"

// verdict is how a measure stands to its bound.
type verdict string

const (
	verdictMet   verdict = "met"
	verdictShort verdict = "short"
	verdictFree  verdict = "free" // there is no bound
)

func (m *measure) verdict() verdict {
	switch {
	case m.Free:
		return verdictFree
	case m.met():
		return verdictMet
	}
	return verdictShort
}

// balance counts how the bounds of a report were kept.
type balance struct {
	bounds, met int
	short       []string // goals with at least one measure that falls short, in order
}

func (r *report) balance() balance {
	var b balance
	for _, g := range r.Goals {
		for i := range g.Measures {
			switch g.Measures[i].verdict() {
			case verdictMet:
				b.bounds++
				b.met++
			case verdictShort:
				b.bounds++
				if !slices.Contains(b.short, g.ID) {
					b.short = append(b.short, g.ID)
				}
			}
		}
	}
	return b
}

// valueText is the figure with its unit, fine enough that it does not look like the bound when it is not.
func (m *measure) valueText() string { return withUnit(m.valueNumber(), m.Unit) }

func (m *measure) valueNumber() string {
	places := decimals(m.Value, m.Unit)
	for !m.Free && places < decimalsMax && m.Value != m.Want && round(m.Value, places) == m.Want {
		places++
	}
	return number(m.Value, places)
}

func (m *measure) wantNumber() string { return number(m.Want, decimals(m.Want, m.Unit)) }

// boundText is the bound with its side: ≥ 0.90×.
func (m *measure) boundText() string {
	if m.Free {
		return "no bound"
	}
	return m.side() + " " + withUnit(m.wantNumber(), m.Unit)
}

func (m *measure) side() string {
	if m.AtLeast {
		return "≥"
	}
	return "≤"
}

// shortText says by how much the bound is missed, and why: "short: 0.86 of 0.90; the reason".
func (m *measure) shortText() string {
	text := "short: " + m.valueNumber() + " of " + m.wantNumber()
	if m.Limit == "" {
		return text
	}
	return text + "; " + m.Limit
}

// spreadText is the middle half of the rounds, "" with fewer than two.
func (m *measure) spreadText() string {
	low, high, ok := quartiles(m.Rounds)
	if !ok {
		return ""
	}
	places := max(decimals(low, m.Unit), decimals(high, m.Unit))
	return number(low, places) + "–" + number(high, places)
}

// absoluteText names the sides with what order their figures are of. The names come sorted, the same in every run.
func (m *measure) absoluteText() string {
	var sides []string
	for _, name := range sortedKeys(m.Absolute) {
		sides = append(sides, name+" about "+magnitude(m.Absolute[name], m.AbsoluteUnit))
	}
	return strings.Join(sides, ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// quartiles are the bounds of the middle half, interpolated between neighbours.
func quartiles(rounds []float64) (low, high float64, ok bool) {
	if len(rounds) < 2 {
		return 0, 0, false
	}
	sorted := slices.Sorted(slices.Values(rounds))
	at := func(share float64) float64 {
		position := share * float64(len(sorted)-1)
		below := int(position)
		above := min(below+1, len(sorted)-1)
		part := position - float64(below)
		return sorted[below]*(1-part) + sorted[above]*part
	}
	return at(0.25), at(0.75), true
}

// decimals is how many places a figure is shown with: about three digits, counts without any.
func decimals(v float64, unit string) int {
	size := math.Abs(v)
	switch {
	case size >= 100, v == math.Trunc(v) && (unit != ratioUnit || size >= 10):
		return 0
	case size >= 10:
		return 1
	case size >= 0.1 || size == 0:
		return 2
	}
	return min(decimalsMax, 1+int(math.Ceil(-math.Log10(size))))
}

func round(v float64, places int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', places, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}

// number writes a figure with so many decimals and its thousands apart.
func number(v float64, places int) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', places, 64)
	whole, rest := text, ""
	if dot := strings.IndexByte(text, '.'); dot >= 0 {
		whole, rest = text[:dot], text[dot:]
	}
	var out strings.Builder
	if v < 0 {
		out.WriteByte('-')
	}
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(digit)
	}
	return out.String() + rest
}

func withUnit(number, unit string) string {
	switch {
	case unit == "":
		return number
	case unit == ratioUnit, strings.HasPrefix(unit, "/"):
		return number + unit
	}
	return number + " " + unit
}

// magnitude is a figure by its first digit. Nanoseconds are shown as a duration.
func magnitude(v float64, unit string) string {
	first := oneDigit(v)
	if unit == "ns" {
		return latency(time.Duration(first))
	}
	return withUnit(number(first, decimals(first, "")), unit)
}

// oneDigit rounds to the first digit: 26,340 to 30,000.
func oneDigit(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 0, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}

// latency is a short time with about three digits.
func latency(d time.Duration) string {
	for _, step := range []struct {
		unit time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= step.unit {
			v := float64(d) / float64(step.unit)
			return number(v, decimals(v, "")) + " " + step.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}

// bytesText is an amount of memory.
func bytesText(n int64) string {
	if n <= 0 {
		return unknown
	}
	v := float64(n) / (1 << 30)
	if v >= 1 {
		return number(v, decimals(v, "")) + " GiB"
	}
	return number(float64(n)/(1<<20), 0) + " MiB"
}

// isTerminal tells whether somebody is watching.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	text := number(float64(n), 0) + " " + noun
	if n == 1 {
		return text
	}
	return text + "s"
}

// spell is a duration for people: to the second, or finer below one.
func spell(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// shortCommit is the commit as people write it.
func (r *report) shortCommit() string {
	commit := r.Commit
	if commit == "" {
		commit = unknown
	}
	if runes := []rune(commit); len(runes) > 12 {
		commit = string(runes[:12])
	}
	if r.Changed {
		return commit + " with changes that are not committed"
	}
	return commit
}

// optionsText is what the figures depend on.
func (o *runOptions) text() string {
	return fmt.Sprintf("%s of %s after %s of warm-up, %s, %s, seed %d", counted(o.Rounds, "round"), spell(o.Measure),
		spell(o.Warmup), counted(o.Connections, "connection"), counted(o.Accounts, "account"), o.Seed)
}

func (m *machine) text() string {
	return fmt.Sprintf("%s, %s, %s of memory, Linux %s, %s", m.CPU, counted(m.Cores, "core"), bytesText(m.Memory), m.Kernel, m.Go)
}
