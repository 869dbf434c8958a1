package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// writeJSON writes everything that the report holds.
func (r *report) writeJSON(w io.Writer) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	return nil
}

// check finds what JSON can't hold.
func (r *report) check() error {
	for _, g := range r.Goals {
		for i := range g.Measures {
			m := &g.Measures[i]
			if name, bad := m.noNumber(); bad {
				return fmt.Errorf("goal %s, %q: %s is no number; a round without answers divides by zero", g.ID, m.Name, name)
			}
		}
	}
	return nil
}

// noNumber names a figure of the measure that is infinite or not a number.
func (m *measure) noNumber() (name string, bad bool) {
	odd := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	switch {
	case odd(m.Value):
		return "the value", true
	case odd(m.Want):
		return "the bound", true
	case slices.ContainsFunc(m.Rounds, odd):
		return "a round", true
	}
	for side, v := range m.Absolute {
		if odd(v) {
			return "the figure of " + side, true
		}
	}
	for side, rounds := range m.Sides {
		if slices.ContainsFunc(rounds, odd) {
			return "a round of " + side, true
		}
	}
	return "", false
}
