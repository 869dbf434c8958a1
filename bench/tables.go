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

// acceptedGoal is an entry of figuresFile: the figures of a goal, with the date and machine of the measurement.
type acceptedGoal struct {
	goal
	Date    string `json:"date"`
	Machine string `json:"machine"`
}

// readFigures reads the accepted figures of a repository. A missing file is not an error.
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

// accept writes the figures of the measured goals to figuresFile and to the tables. It keeps the figures of all other
// goals.
func (r *report) accept(root string) error {
	accepted, err := readFigures(root)
	if err != nil {
		return fmt.Errorf("accept the figures: %w", err)
	}
	for _, g := range r.Goals {
		updated := acceptedGoal{g, r.Started.UTC().Format(time.DateOnly), r.Machine}
		accepted = append(slices.DeleteFunc(accepted, func(old acceptedGoal) bool { return old.ID == g.ID }), updated)
	}
	index := func(g acceptedGoal) int {
		return slices.IndexFunc(scenarios(), func(s scenario) bool { return s.goal == g.ID })
	}
	slices.SortFunc(accepted, func(a, b acceptedGoal) int { return index(a) - index(b) })
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
func table(accepted []acceptedGoal, goals []string) string {
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
