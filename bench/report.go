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

// report is the result of a run.
type report struct {
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"tookNanoseconds"`
	Commit  string        `json:"commit"` // source of this program; ends with "+" if it had uncommitted changes
	Machine string        `json:"machine"`
	Options runOptions    `json:"options"`
	Goals   []goal        `json:"goals"`
	Skipped []string      `json:"skipped,omitempty"`
}

// runOptions are the flags of bench that affect the figures.
type runOptions struct {
	Rounds      int           `json:"rounds"`
	Measure     time.Duration `json:"measureNanoseconds"`
	Warmup      time.Duration `json:"warmupNanoseconds"`
	Connections int           `json:"connections"`
	Accounts    int           `json:"accounts"`
}

// goal is a performance goal with its measurements.
type goal struct {
	ID       string        `json:"id"`
	Title    string        `json:"title"`
	Measures []measurement `json:"measures"`
}

// measurement is one figure: the median of its rounds. A comparison of two servers is a ratio, because absolute
// figures vary on a shared machine. For a comparison Sides has the absolute figures of each server; they only show
// the order of magnitude.
type measurement struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Value  float64   `json:"value"`
	Rounds []float64 `json:"rounds"`
	// Bound says whether Value must be at least ("≥") or at most ("≤") Want. It is "" if no value is required.
	Want      float64              `json:"want"`
	Bound     string               `json:"bound,omitempty"`
	Sides     map[string][]float64 `json:"sides,omitempty"`
	SidesUnit string               `json:"sidesUnit,omitempty"` // unit of the figures in Sides: "/s" or "ns"
}

// add adds a measurement of which no value is required.
func (g *goal) add(m measurement) {
	m.Value = median(m.Rounds)
	g.Measures = append(g.Measures, m)
}

// require adds a measurement whose value must be at least (bound "≥") or at most (bound "≤") want.
func (g *goal) require(m measurement, bound string, want float64) {
	m.Bound, m.Want = bound, want
	g.add(m)
}

func (m *measurement) quartiles() (low, high float64) {
	sorted := slices.Sorted(slices.Values(m.Rounds))
	return sorted[len(sorted)/4], sorted[len(sorted)-1-len(sorted)/4]
}

// differs reports whether a comparison shows a difference: the distance between the quartiles must be at most the
// distance of the ratio from 1. It returns true for a measurement that is not a comparison.
func (m *measurement) differs() bool {
	low, high := m.quartiles()
	return m.Sides == nil || !(high-low > math.Abs(m.Value-1))
}

// met reports whether the value is within its bound. A comparison that shows no difference (see differs) meets a
// bound of 1; it meets any other bound only if both of its quartiles do. NaN meets no bound.
func (m *measurement) met() bool {
	low, high := m.Value, m.Value
	if !m.differs() {
		if low, high = m.quartiles(); m.Want == 1 {
			return true
		}
	}
	return m.Bound == "" || m.Bound == "≥" && low >= m.Want || m.Bound == "≤" && high <= m.Want
}

func (m *measurement) formatResult() string {
	if !m.differs() {
		return "no difference shown"
	}
	value := formatValue(m.Value, m.Unit)
	if !m.met() && value == formatValue(m.Want, m.Unit) { // rounding must not make a missed figure look like its bound
		value = strconv.FormatFloat(m.Value, 'g', -1, 64) + m.Unit
	}
	return value
}

func (m *measurement) formatBound() string {
	if m.Bound == "" {
		return ""
	}
	return m.Bound + " " + formatValue(m.Want, m.Unit)
}

// newReport returns a report with the machine and commit, but without goals.
func newReport(options runOptions) report {
	r := report{Started: time.Now(), Options: options, Commit: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok { // go run and go test record no commit
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
	text, _ := os.ReadFile("/proc/cpuinfo") // without it the processor stays unknown
	if _, rest, found := strings.Cut(string(text), "model name"); found {
		rest, _, _ = strings.Cut(rest, "\n")
		cpu = strings.Trim(rest, "\t :")
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	r.Machine = fmt.Sprintf("%s, %d cores, Linux %s, %s", cpu, runtime.NumCPU(), strings.TrimSpace(string(kernel)), runtime.Version())
	return r
}

// missedGoals returns the IDs of the goals that miss a bound, and the total number of bounds.
func (r *report) missedGoals() (ids []string, bounds int) {
	for _, g := range r.Goals {
		for i := range g.Measures {
			if g.Measures[i].Bound != "" {
				bounds++
			}
			if !g.Measures[i].met() && !slices.Contains(ids, g.ID) {
				ids = append(ids, g.ID)
			}
		}
	}
	return ids, bounds
}

// write writes report.txt and report.json into a directory.
func (r *report) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil { // JSON has no NaN: a figure is NaN if a round had no response
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

// text returns the contents of report.txt.
func (r *report) text() string {
	var out strings.Builder
	o := &r.Options
	fmt.Fprintf(&out, "tasard bench, %s, took %s\nCommit:  %s\nMachine: %s\n", r.Started.UTC().Format("2006-01-02 15:04 MST"), r.Took.Round(time.Second), r.Commit, r.Machine)
	fmt.Fprintf(&out, "Run:     %d rounds of %v after %v of warm-up, %d connections, %d accounts\n", o.Rounds, o.Measure, o.Warmup, o.Connections, o.Accounts)
	out.WriteString("Ratios compare two sides within this run. In brackets: quartiles of the rounds, medians of the sides.\n")
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

// text writes the line of report.txt for a measurement.
func (m *measurement) text(out io.Writer) {
	verdict := ""
	switch {
	case m.Bound != "" && m.met():
		verdict = "met"
	case m.Bound != "":
		verdict = "SHORT"
	}
	low, high := m.quartiles()
	notes := append([]string{formatValue(low, "") + "–" + formatValue(high, "")}, m.formatSides()...)
	_, _ = fmt.Fprintf(out, "  %-5s  %-58s %19s  %-10s (%s)\n", verdict, m.Name, m.formatResult(), m.formatBound(), strings.Join(notes, ", "))
}

// formatSides formats, for each of the two compared servers, its name and the median of its figures.
func (m *measurement) formatSides() (medians []string) {
	for _, name := range slices.Sorted(maps.Keys(m.Sides)) {
		medians = append(medians, name+" "+formatValue(median(m.Sides[name]), m.SidesUnit))
	}
	return medians
}

// formatValue formats a number with its unit, in general with three significant digits or more. It converts
// nanoseconds to microseconds.
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
