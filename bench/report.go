//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report is everything that a run found: what JSON holds, and what the text is made of.
type report struct {
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"tookNanoseconds"`
	Commit  string        `json:"commit"` // "+" behind it: the tree had changes that no commit holds
	Machine string        `json:"machine"`
	Options runOptions    `json:"options"`
	Goals   []goal        `json:"goals"`
	Skipped []string      `json:"skipped,omitempty"`
}

// runOptions are what the figures depend on.
type runOptions struct {
	Rounds      int           `json:"rounds"`
	Measure     time.Duration `json:"measureNanoseconds"`
	Warmup      time.Duration `json:"warmupNanoseconds"`
	Connections int           `json:"connections"`
	Accounts    int           `json:"accounts"`
	Seed        uint64        `json:"seed"`
}

// goal is one of F1 to F12 with its measures.
type goal struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Measures []measure `json:"measures"`
}

// measure is one figure: the median of its rounds. Those of a comparison are ratios within one run: they mean something on a noisy
// machine, while the sides' own only tell of what order things are.
type measure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Value  float64   `json:"value"`
	Rounds []float64 `json:"rounds"`
	// Want is the goal's bound, Bound its side: "≥" or "≤", "" when there is none.
	Want      float64              `json:"want"`
	Bound     string               `json:"bound,omitempty"`
	Sides     map[string][]float64 `json:"sides,omitempty"`
	SidesUnit string               `json:"sidesUnit,omitempty"` // "/s" or "ns"
	// Limit says what limits it, where it falls short of the bound.
	Limit string `json:"limit,omitempty"`
}

// add puts a measure without a bound into a goal.
func (g *goal) add(m measure) {
	m.Value = median(m.Rounds)
	g.Measures = append(g.Measures, m)
}

// require adds one with a bound, and the reason that is told when it falls short.
func (g *goal) require(m measure, side string, want float64, limit string) {
	m.Bound, m.Want = side, want
	g.add(m)
	if last := &g.Measures[len(g.Measures)-1]; !last.met() {
		last.Limit = limit
	}
}

// met tells whether the figure keeps its bound. What is no number keeps none.
func (m *measure) met() bool {
	return m.Bound == "" || m.Bound == "≥" && m.Value >= m.Want || m.Bound == "≤" && m.Value <= m.Want
}

// newReport begins one: what is measured, and where.
func newReport(options runOptions) report {
	r := report{Started: time.Now(), Options: options, Commit: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok { // go run and go test write no commit
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				r.Commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				r.Commit += "+"
			}
		}
	}
	cpu := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo") // a report without the name of the processor is still a report
	if _, rest, found := strings.Cut(string(text), "model name"); found {
		rest, _, _ = strings.Cut(rest, "\n")
		cpu = strings.Trim(rest, "\t :")
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	r.Machine = fmt.Sprintf("%s, %d cores, Linux %s, %s", cpu, runtime.NumCPU(), strings.TrimSpace(string(kernel)), runtime.Version())
	return r
}

// missedGoals names the goals of which some measure misses its bound, and counts the bounds.
func (r *report) missedGoals() (names []string, bounds int) {
	for _, g := range r.Goals {
		for i := range g.Measures {
			if g.Measures[i].Bound != "" {
				bounds++
			}
			if !g.Measures[i].met() && !slices.Contains(names, g.ID) {
				names = append(names, g.ID)
			}
		}
	}
	return names, bounds
}

// write writes the report into a directory, as text and as JSON.
func (r *report) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil { // a round without answers divides by zero
		return fmt.Errorf("write the report: %w", err)
	}
	err = errors.Join(
		os.MkdirAll(dir, 0o750),
		os.WriteFile(filepath.Join(dir, "report.json"), append(text, '\n'), 0o600),
		os.WriteFile(filepath.Join(dir, "report.txt"), []byte(r.text()), 0o600))
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// text is the report for people. A bound that is missed says why, and what was not measured is named.
func (r *report) text() string {
	var out strings.Builder
	o := &r.Options
	fmt.Fprintf(&out, "tasard bench, %s, took %s\nCommit:  %s\nMachine: %s\n", r.Started.UTC().Format("2006-01-02 15:04 MST"), r.Took.Round(time.Second), r.Commit, r.Machine)
	fmt.Fprintf(&out, "Run:     %d rounds of %v after %v of warm-up, %d connections, %d accounts, seed %d\n", o.Rounds, o.Measure, o.Warmup, o.Connections, o.Accounts, o.Seed)
	out.WriteString("Ratios compare two sides within this run. In brackets: the quartiles of the rounds, and of what order the sides are.\n")
	for _, g := range r.Goals {
		fmt.Fprintf(&out, "\n%s  %s\n", g.ID, g.Title)
		for i := range g.Measures {
			g.Measures[i].text(&out)
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&out, "\nNot measured: %s\n", s)
	}
	names, bounds := r.missedGoals()
	fmt.Fprintf(&out, "\n%d bounds; short: %s\n", bounds, strings.Join(append(names, "none")[:max(1, len(names))], ", "))
	return out.String()
}

// text writes one measure: a row of its figures, and below it what limits it.
func (m *measure) text(out io.Writer) {
	verdict, bound, value := "", "", formatValue(m.Value, m.Unit)
	if m.Bound != "" {
		verdict, bound = "met", m.Bound+" "+formatValue(m.Want, m.Unit)
		if !m.met() {
			verdict = "SHORT"
			if value == formatValue(m.Want, m.Unit) { // it must not look like the bound
				value = strconv.FormatFloat(m.Value, 'g', -1, 64) + m.Unit
			}
		}
	}
	sorted := slices.Sorted(slices.Values(m.Rounds))
	notes := []string{formatValue(sorted[len(sorted)/4], "") + "–" + formatValue(sorted[len(sorted)-1-len(sorted)/4], "")}
	for _, name := range slices.Sorted(maps.Keys(m.Sides)) {
		notes = append(notes, name+" "+formatValue(median(m.Sides[name]), m.SidesUnit))
	}
	_, _ = fmt.Fprintf(out, "  %-5s  %-58s %10s  %-10s (%s)\n", verdict, m.Name, value, bound, strings.Join(notes, ", "))
	if m.Limit != "" {
		_, _ = fmt.Fprintf(out, "         %s\n", m.Limit)
	}
}

// formatValue is a number with three digits and its unit; nanoseconds are shown as a duration.
func formatValue(value float64, unit string) string {
	if unit == "ns" {
		value, unit = value/1000, "µs"
	}
	places := 0
	for size := math.Abs(value); size > 0 && size < 100 && places < 4; size *= 10 {
		places++
	}
	return strconv.FormatFloat(value, 'f', places, 64) + unit
}
