package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// Widths of the report for terminals, in characters.
const (
	textWidth  = 100
	textIndent = 9 // of what belongs to a measure: below its name
	nameWidth  = 44
)

// Colours, only beside words that say the same.
const (
	colourBold  = "\x1b[1m"
	colourGreen = "\x1b[32m"
	colourRed   = "\x1b[1;31m"
	colourEnd   = "\x1b[0m"
)

// writeText writes the report for people at a terminal. It has colours where w is a terminal and NO_COLOR is not set.
func (r *report) writeText(w io.Writer) error {
	page := &textPage{colours: isTerminal(w) && os.Getenv("NO_COLOR") == ""}
	r.text(page)
	if _, err := io.WriteString(w, page.out.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (r *report) text(page *textPage) {
	page.fold(0, fmt.Sprintf("tasard bench, %s, took %s", r.Started.UTC().Format("2006-01-02 15:04 MST"), spell(r.Took)))
	page.fold(0, "Commit:  "+r.shortCommit())
	page.fold(0, "Machine: "+r.Machine.text())
	page.fold(0, "Run:     "+r.Options.text())
	page.fold(0, "Ratios compare two sides within this run. In brackets: the quartiles of the rounds. What is marked "+
		"\"about\" only tells of what order it is.")
	for _, g := range r.Goals {
		page.line("")
		page.title(g.ID, g.Title)
		for i := range g.Measures {
			page.measure(&g.Measures[i])
		}
		if len(g.Measures) == 0 {
			page.fold(textIndent, "no figure")
		}
	}
	if len(r.Skipped) > 0 {
		page.line("")
		page.title("Not measured", "")
		for _, s := range r.Skipped {
			page.fold(2, s.Name+": "+s.Why)
		}
	}
	page.line("")
	page.fold(0, r.sumText())
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

// textPage collects lines of at most textWidth characters.
type textPage struct {
	out     strings.Builder
	colours bool
}

func (p *textPage) line(text string) {
	p.out.WriteString(strings.TrimRight(text, " "))
	p.out.WriteByte('\n')
}

func (p *textPage) colour(code, text string) string {
	if !p.colours {
		return text
	}
	return code + text + colourEnd
}

// fold writes a text that may need several lines; those after the first are set in by two more.
func (p *textPage) fold(indent int, text string) {
	for i, part := range wrap(text, textWidth-indent-2) {
		by := indent
		if i > 0 {
			by += 2
		}
		p.line(strings.Repeat(" ", by) + part)
	}
}

func (p *textPage) title(first, rest string) {
	for i, part := range wrap(strings.TrimSpace(first+"  "+rest), textWidth) {
		if word, isFirst := strings.CutPrefix(part, plain(first)); i == 0 && isFirst {
			part = p.colour(colourBold, plain(first)) + word
		}
		p.line(part)
	}
}

// measure writes one measure: a row of its figures, below it the rest of a long name, what limits it, and the sides.
func (p *textPage) measure(m *measure) {
	name := wrap(m.Name, nameWidth)
	spread := m.spreadText()
	if spread != "" {
		spread = "(" + spread + ")"
	}
	row := fmt.Sprintf("%s %11s  %-12s  %s", pad(name[0], nameWidth), plain(m.valueText()), plain(m.boundText()), spread)
	parts := wrap(row, textWidth-textIndent)
	p.line(p.badge(m.verdict()) + parts[0])
	for _, part := range append(parts[1:], name[1:]...) {
		p.line(strings.Repeat(" ", textIndent) + part)
	}
	if m.verdict() == verdictShort {
		p.fold(textIndent, m.shortText())
	}
	if sides := m.absoluteText(); sides != "" {
		p.fold(textIndent, sides)
	}
}

// badge is the verdict in textIndent characters.
func (p *textPage) badge(v verdict) string {
	code, word := colourGreen, "met"
	switch v {
	case verdictShort:
		code, word = colourRed, "short"
	case verdictFree:
		return strings.Repeat(" ", textIndent)
	}
	return "  " + p.colour(code, word) + strings.Repeat(" ", textIndent-2-len(word))
}

// pad fills a text up to so many characters.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// wrap cuts a text into lines of at most width characters: at a space where there is one, within a word where there is none. A line
// that fits stays as it is. There is always at least one.
func wrap(text string, width int) []string {
	rest := []rune(plain(text))
	var lines []string
	for len(rest) > width {
		cut := width
		for cut > 0 && rest[cut] != ' ' {
			cut--
		}
		if cut == 0 {
			cut = width
		}
		lines = append(lines, strings.TrimRight(string(rest[:cut]), " "))
		rest = []rune(strings.TrimLeft(string(rest[cut:]), " "))
	}
	return append(lines, strings.TrimRight(string(rest), " "))
}

// stamp is an instant in the forms that people read.
func stamp(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 MST") }
