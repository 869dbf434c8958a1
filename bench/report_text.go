package main

import (
	"fmt"
	"io"
	"strings"
)

// textIndent is the width of a verdict: what belongs to a measure stands below its name.
const textIndent = 9

// writeText writes the report for people. A bound that is missed says why, and what was not measured is named.
func (r *report) writeText(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "tasard bench, %s, took %s\n", r.Started.UTC().Format("2006-01-02 15:04 MST"), spell(r.Took))
	fmt.Fprintf(&out, "Commit:  %s\nMachine: %s\nRun:     %s\n", r.shortCommit(), r.Machine.text(), r.Options.text())
	out.WriteString("Ratios compare two sides within this run. In brackets: the quartiles of the rounds.\n" +
		"\"about\" only tells the order of magnitude.\n")
	for _, g := range r.Goals {
		fmt.Fprintf(&out, "\n%s  %s\n", g.ID, g.Title)
		for i := range g.Measures {
			g.Measures[i].text(&out)
		}
		if len(g.Measures) == 0 {
			fmt.Fprintf(&out, "%*sno figure\n", textIndent, "")
		}
	}
	if len(r.Skipped) > 0 {
		out.WriteString("\nNot measured\n")
		for _, s := range r.Skipped {
			fmt.Fprintf(&out, "  %s: %s\n", s.Name, s.Why)
		}
	}
	fmt.Fprintf(&out, "\n%s\n", r.sumText())
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// sumText is the report in one line.
func (r *report) sumText() string {
	b := r.balance()
	text := fmt.Sprintf("%d of %s met", b.met, counted(b.bounds, "bound"))
	if len(b.short) > 0 {
		text += "; short: " + strings.Join(b.short, ", ")
	}
	if len(r.Skipped) > 0 {
		text += fmt.Sprintf("; %d not measured", len(r.Skipped))
	}
	return text
}

// text writes one measure: a row of its figures, below it what limits it, and the sides.
func (m *measure) text(out *strings.Builder) {
	word := string(m.verdict())
	if m.Free {
		word = ""
	}
	spread := m.spreadText()
	if spread != "" {
		spread = "  (" + spread + ")"
	}
	row := fmt.Sprintf("  %-5s  %-58s %11s  %-12s%s", word, m.Name, m.valueText(), m.boundText(), spread)
	out.WriteString(strings.TrimRight(row, " ") + "\n")
	if m.verdict() == verdictShort {
		fmt.Fprintf(out, "%*s%s\n", textIndent, "", m.shortText())
	}
	if sides := m.absoluteText(); sides != "" {
		fmt.Fprintf(out, "%*s%s\n", textIndent, "", sides)
	}
}
