//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// runOptions are the flags of bench that affect the figures.
type runOptions struct {
	Rounds, Connections, Accounts int
	Measure, Warmup               time.Duration
}

// goal is a performance goal with its newest measurements.
type goal struct {
	ID       string        `json:"id"`
	Title    string        `json:"title"`
	Measures []measurement `json:"measures"`
	Date     string        `json:"date"`
	Machine  string        `json:"machine"`
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

// interval returns the confidence interval of the median, of about 95 %: the sign test gives the ranks n/2 ± √n.
func (m *measurement) interval() (low, high float64) {
	sorted, count := slices.Sorted(slices.Values(m.Rounds)), float64(len(m.Rounds))
	rank := int(max(0, count/2-math.Sqrt(count)))
	return sorted[rank], sorted[len(sorted)-1-rank]
}

// differs reports whether a comparison shows a difference: the interval must not contain 1. It returns true for a
// measurement that is not a comparison.
func (m *measurement) differs() bool {
	low, high := m.interval()
	return m.Sides == nil || low > 1 || high < 1
}

// met reports whether the value is within its bound. A comparison that shows no difference (see differs) meets a
// bound of 1; it meets any other bound only if its whole interval does. NaN meets no bound.
func (m *measurement) met() bool {
	low, high := m.Value, m.Value
	if !m.differs() {
		if low, high = m.interval(); m.Want == 1 {
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

// thisMachine describes the machine.
func thisMachine() string {
	cpu := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo") // without it the processor stays unknown
	if _, rest, found := strings.Cut(string(text), "model name"); found {
		rest, _, _ = strings.Cut(rest, "\n")
		cpu = strings.Trim(rest, "\t :")
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s, %d cores, Linux %s, %s", cpu, runtime.NumCPU(), strings.TrimSpace(string(kernel)), runtime.Version())
}

// text returns one line for each figure of the goal. In brackets it has the interval of the median and, for a
// comparison, the medians of both servers.
func (g *goal) text() string {
	var text strings.Builder
	for i := range g.Measures {
		m, verdict := &g.Measures[i], ""
		switch {
		case m.Bound != "" && m.met():
			verdict = "met"
		case m.Bound != "":
			verdict = "SHORT"
		}
		low, high := m.interval()
		notes := append([]string{formatValue(low, "") + "–" + formatValue(high, "")}, m.formatSides()...)
		fmt.Fprintf(&text, "  %-5s  %-58s %19s  %-10s (%s)\n", verdict, m.Name, m.formatResult(), m.formatBound(), strings.Join(notes, ", "))
	}
	return text.String()
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

// figuresFile stores the accepted figures: those that the documents show.
const figuresFile = ".ci/figures.json"

// tableFiles returns the documents with a table of figures. Their values are the IDs of the performance goals in the
// table; nil means all goals.
func tableFiles() map[string][]string {
	return map[string][]string{"README.md": {"F1", "F1c", "F6", "F7", "F8"}, "docs/performance.md": nil}
}

// The lines that mark the beginning and the end of a table in a document.
const (
	tableBegin = "<!-- figures: make bench writes them -->\n"
	tableEnd   = "<!-- end of figures -->\n"
)

// readFigures reads the accepted figures of a repository. A missing file is not an error.
func readFigures(root string) (accepted []goal, err error) {
	if err = readJSON(filepath.Join(root, figuresFile), &accepted); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return accepted, err
}

// acceptFigures writes the figures of the measured goals to figuresFile and to the tables. It keeps the figures of all
// other goals.
func acceptFigures(root string, measured []goal) error {
	accepted, err := readFigures(root)
	if err != nil {
		return fmt.Errorf("accept the figures: %w", err)
	}
	var all []goal
	for _, s := range scenarios() {
		isThis := func(g goal) bool { return g.ID == s.goal }
		if i := slices.IndexFunc(measured, isThis); i >= 0 {
			all = append(all, measured[i])
		} else if i := slices.IndexFunc(accepted, isThis); i >= 0 {
			all = append(all, accepted[i])
		}
	}
	err = writeJSON(filepath.Join(root, figuresFile), all)
	for name, goals := range tableFiles() {
		if err == nil {
			err = rewriteTable(filepath.Join(root, name), table(all, goals))
		}
	}
	if err != nil {
		return fmt.Errorf("accept the figures: %w", err)
	}
	return nil
}

func readJSON(path string, value any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err == nil { // JSON has no NaN: a figure is NaN if a round had no response
		err = os.WriteFile(path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// rewriteTable replaces the table in a document: the text between tableBegin and tableEnd.
func rewriteTable(name, table string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, tail, hasBegin := strings.Cut(string(text), tableBegin)
	_, after, hasEnd := strings.Cut(tail, tableEnd)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s has no %s", name, strings.TrimSpace(tableBegin))
	}
	return os.WriteFile(name, []byte(before+tableBegin+table+tableEnd+after), 0o600)
}

// table formats the figures of the given goals, with a line below that names dates and machines. nil selects all
// goals.
func table(accepted []goal, goals []string) string {
	var text strings.Builder
	text.WriteString("| | Measured | Result | Goal | Compared |\n|---|---|---|---|---|\n")
	var allConditions []string
	for _, g := range accepted {
		if goals != nil && !slices.Contains(goals, g.ID) {
			continue
		}
		for i := range g.Measures {
			m, met := &g.Measures[i], "met"
			if m.Bound == "" {
				continue
			}
			if !m.met() {
				met = "missed"
			}
			fmt.Fprintf(&text, "| %s | %s | %s | %s, %s | %s |\n", g.ID, m.Name, m.formatResult(), m.formatBound(), met, strings.Join(m.formatSides(), ", "))
		}
		if conditions := fmt.Sprintf("on %s on %s", g.Date, g.Machine); !slices.Contains(allConditions, conditions) {
			allConditions = append(allConditions, conditions)
		}
	}
	fmt.Fprintf(&text, "\nMeasured %s.\n", strings.Join(allConditions, "; "))
	return text.String()
}
