//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// figuresFile has the accepted figures, and tableFiles the documents that show them: all, or those of some goals.
const figuresFile = ".ci/figures.json"

func tableFiles() map[string][]string {
	return map[string][]string{"README.md": {"F1", "F1c", "F6", "F7", "F8"}, "docs/performance.md": nil}
}

// The markers around a table.
const (
	tableBegin = "<!-- figures: make bench writes them -->\n"
	tableEnd   = "<!-- end of figures -->\n"
)

// acceptedGoal has the figures of one goal as documents show them, and where they were measured.
type acceptedGoal struct {
	ID      string        `json:"id"`
	Title   string        `json:"title"`
	Date    string        `json:"date"`
	Machine string        `json:"machine"`
	Rounds  int           `json:"rounds"`
	Rows    []acceptedRow `json:"rows"`
}

type acceptedRow struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Bound string `json:"bound"`
	Met   bool   `json:"met"`
	Sides string `json:"sides,omitempty"`
}

// readFigures reads the accepted figures of a repository; without a file there are none.
func readFigures(root string) (accepted []acceptedGoal, err error) {
	text, err := os.ReadFile(filepath.Join(root, figuresFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &accepted)
	}
	return accepted, err
}

// accept replaces the figures of the measured goals among the accepted ones, and rewrites the tables.
func (r *report) accept(root string) error {
	accepted, err := readFigures(root)
	if err != nil {
		return fmt.Errorf("accept the figures: %w", err)
	}
	for _, g := range r.Goals {
		fresh := acceptedGoal{ID: g.ID, Title: g.Title, Date: r.Started.UTC().Format(time.DateOnly), Machine: r.Machine, Rounds: r.Options.Rounds}
		for i := range g.Measures {
			if m := &g.Measures[i]; m.Bound != "" {
				fresh.Rows = append(fresh.Rows, acceptedRow{m.Name, m.shown(), m.bound(), m.met(), strings.Join(m.sides(), ", ")})
			}
		}
		accepted = append(slices.DeleteFunc(accepted, func(old acceptedGoal) bool { return old.ID == g.ID }), fresh)
	}
	place := func(g acceptedGoal) int {
		return slices.IndexFunc(scenarios(), func(s scenario) bool { return s.goal == g.ID })
	}
	slices.SortFunc(accepted, func(a, b acceptedGoal) int { return place(a) - place(b) })
	text, err := json.MarshalIndent(accepted, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(root, figuresFile), append(text, '\n'), 0o600)
	}
	for name, goals := range tableFiles() {
		if err == nil {
			err = rewriteTable(filepath.Join(root, name), table(accepted, goals))
		}
	}
	if err != nil {
		return fmt.Errorf("accept the figures: %w", err)
	}
	return nil
}

// rewriteTable replaces the text between the markers of a document.
func rewriteTable(name, table string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no %s", name, strings.TrimSpace(tableBegin))
	}
	return os.WriteFile(name, []byte(before+tableBegin+table+tableEnd+after), 0o600)
}

// table formats the figures of some goals, or of all, and where and when they were measured.
func table(accepted []acceptedGoal, goals []string) string {
	var text strings.Builder
	text.WriteString("| | Measured | Result | Goal | Compared |\n|---|---|---|---|---|\n")
	var runs []string
	for _, g := range accepted {
		if goals != nil && !slices.Contains(goals, g.ID) {
			continue
		}
		for _, row := range g.Rows {
			met := "met"
			if !row.Met {
				met = "missed"
			}
			fmt.Fprintf(&text, "| %s | %s | %s | %s, %s | %s |\n", g.ID, row.Name, row.Value, row.Bound, met, row.Sides)
		}
		if run := fmt.Sprintf("on %s on %s, medians of %d rounds", g.Date, g.Machine, g.Rounds); !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	fmt.Fprintf(&text, "\nMeasured %s.\n", strings.Join(runs, "; "))
	return text.String()
}
