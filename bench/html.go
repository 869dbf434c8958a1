package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed report.html.tmpl
var htmlSource string

// htmlPage is what the template shows: texts and places, all worked out.
type htmlPage struct {
	Title   string
	Sum     string // 22 of 24 bounds met
	Facts   []htmlFact
	Goals   []htmlGoal
	Charts  []htmlChart
	Skipped []skip
	Short   []htmlShort
}

// htmlFact is a line about the run.
type htmlFact struct{ Name, Text string }

// htmlShort is a measure that falls short, for the list at the top.
type htmlShort struct{ Goal, Anchor, Name, Text string }

// htmlGoal is a goal with its bars and its rows in the table.
type htmlGoal struct {
	ID, Anchor, Title string
	Verdict           verdict
	Groups            []htmlGroup
}

// Rows are those of all groups.
func (g htmlGoal) Rows() []htmlRow {
	var rows []htmlRow
	for _, group := range g.Groups {
		rows = append(rows, group.Rows...)
	}
	return rows
}

// htmlRow is a measure.
type htmlRow struct {
	Name, Value, Bound, Spread, Rounds, Sides, Short string
	Verdict                                          verdict
	Bar                                              htmlBar
}

// writeHTML writes the report as one page that needs nothing else: no script, no font, no picture from anywhere.
func (r *report) writeHTML(w io.Writer) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("write the report as HTML: %w", err)
	}
	page, err := template.New("report").Parse(htmlSource)
	if err != nil {
		return fmt.Errorf("write the report as HTML: %w", err)
	}
	var whole bytes.Buffer
	if err := page.Execute(&whole, r.htmlPage()); err != nil {
		return fmt.Errorf("write the report as HTML: %w", err)
	}
	if _, err := whole.WriteTo(w); err != nil {
		return fmt.Errorf("write the report as HTML: %w", err)
	}
	return nil
}

func (r *report) htmlPage() htmlPage {
	b := r.balance()
	page := htmlPage{
		Title:   "tasard bench, " + stamp(r.Started),
		Sum:     fmt.Sprintf("%d of %s met", b.met, counted(b.bounds, "bound")),
		Facts:   r.htmlFacts(),
		Charts:  htmlCharts(r.Curves),
		Skipped: r.Skipped,
	}
	anchors := map[string]bool{}
	for _, g := range r.Goals {
		goal := newHTMLGoal(g, unique(anchors, "goal_"+benchName(g.ID)))
		page.Goals = append(page.Goals, goal)
		for i := range g.Measures {
			if m := &g.Measures[i]; m.verdict() == verdictShort {
				page.Short = append(page.Short, htmlShort{Goal: g.ID, Anchor: goal.Anchor, Name: m.Name, Text: m.shortText()})
			}
		}
	}
	return page
}

func (r *report) htmlFacts() []htmlFact {
	m, o := &r.Machine, &r.Options
	return []htmlFact{
		{"Commit", r.shortCommit()},
		{"Started", stamp(r.Started)},
		{"Took", spell(r.Took)},
		{"Processor", m.CPU + ", " + counted(m.Cores, "core")},
		{"Memory", bytesText(m.Memory)},
		{"System", "Linux " + m.Kernel + ", " + m.Go},
		{"Rounds", fmt.Sprintf("%d of %s, %s of warm-up", o.Rounds, spell(o.Measure), spell(o.Warmup))},
		{"Load", fmt.Sprintf("%s, keys of %s, seed %d", counted(o.Connections, "connection"), counted(o.Accounts, "account"), o.Seed)},
	}
}

func newHTMLGoal(g goal, anchor string) htmlGoal {
	page := htmlGoal{ID: g.ID, Anchor: anchor, Title: g.Title, Groups: htmlGroups(g.Measures, anchor)}
	for _, row := range page.Rows() {
		switch {
		case row.Verdict == verdictShort, page.Verdict == "":
			page.Verdict = row.Verdict
		case row.Verdict == verdictMet && page.Verdict == verdictFree:
			page.Verdict = verdictMet
		}
	}
	return page
}

func newHTMLRow(m *measure) htmlRow {
	row := htmlRow{
		Name:    m.Name,
		Value:   m.valueText(),
		Bound:   noCell,
		Spread:  m.spreadText(),
		Sides:   m.absoluteText(),
		Verdict: m.verdict(),
	}
	if !m.Free {
		row.Bound = m.boundText()
	}
	if row.Verdict == verdictShort {
		row.Short = m.shortText()
	}
	rounds := make([]string, len(m.Rounds))
	for i, v := range m.Rounds {
		rounds[i] = number(v, decimals(v, m.Unit))
	}
	row.Rounds = strings.Join(rounds, " ")
	return row
}
