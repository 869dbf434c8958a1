package source

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/tasard/tasard/engine"
)

// declaredSide is one side of a quote that a definition says how to read.
type declaredSide struct {
	institution, currency string
	channel               engine.Channel
	side                  Side // BuySide or SellSide
}

// Missing returns the sides of quotes that the definition names and that observations do not have, such as "EUR sell".
// Rows that name their institution do not count: an aggregator names more institutions than it has rates of.
func (d *Definition) Missing(observations []engine.Observation) []string {
	present := map[declaredSide]bool{}
	for i := range observations {
		o := &observations[i]
		for side, text := range map[Side]string{BuySide: o.Buy, SellSide: o.Sell} {
			if isPrice(text) {
				present[declaredSide{o.InstitutionID, o.Currency, o.Channel, side}] = true
			}
		}
	}
	var missing []string
	for i := range d.Pages {
		for _, declared := range d.declaredSides(&d.Pages[i]) {
			text := declared.currency + " " + string(declared.side)
			if declared.channel != engine.Unspecified {
				text += " (" + string(declared.channel) + ")"
			}
			if !present[declared] && !slices.Contains(missing, text) {
				missing = append(missing, text)
			}
		}
	}
	return missing
}

func isPrice(text string) bool {
	decimal, err := engine.ReadDecimal(text)
	return err == nil && !decimal.IsNull() && !decimal.IsZero()
}

// declaredSides returns the sides that a page has, in the order of the definition. A page that is read instead of
// another declares nothing.
func (d *Definition) declaredSides(p *Page) (declared []declaredSide) {
	institution := cmp.Or(p.Institution, d.Institution)
	if p.InsteadOf != "" || institution == "" {
		return nil
	}
	add := func(t Target, sides ...Side) {
		if t.Institution != "" {
			return
		}
		if slices.Contains(sides, BothSides) {
			sides = []Side{BuySide, SellSide}
		}
		for _, side := range sides {
			declared = append(declared, declaredSide{institution, cmp.Or(t.Currency, p.Currency), cmp.Or(t.Channel, d.Channel), side})
		}
	}
	for i := range p.Extract.Fields {
		field := &p.Extract.Fields[i]
		add(Target{Currency: field.Currency, Channel: field.Channel}, field.Side)
	}
	if rows := p.Extract.Rows; rows != nil {
		for _, t := range inOrder(rows.Labels) {
			add(t, rows.sides(t)...)
		}
	}
	if text := p.Extract.Text; text != nil {
		targets := inOrder(text.Labels)
		if len(text.Labels) == 0 {
			targets = []Target{{}}
		}
		for _, t := range targets {
			add(t, patternSides(text.Pattern)...)
		}
	}
	return declared
}

// sides returns the sides that the rows of a target have.
func (e *Rows) sides(t Target) (sides []Side) {
	if e.Value != nil {
		return []Side{t.Side}
	}
	if e.Buy != nil {
		sides = append(sides, BuySide)
	}
	if e.Sell != nil {
		sides = append(sides, SellSide)
	}
	return sides
}

// patternSides returns the sides for which a pattern has a group.
func patternSides(pattern string) (sides []Side) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil // impossible: the reader of the file has compiled it
	}
	for _, side := range []Side{BuySide, SellSide} {
		if compiled.SubexpIndex(string(side)) >= 0 {
			sides = append(sides, side)
		}
	}
	return sides
}

// inOrder returns the quotes that labels stand for, sorted by currency, channel and side.
func inOrder(labels map[string]Target) []Target {
	var targets []Target
	for _, t := range labels {
		if !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	slices.SortFunc(targets, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Side, b.Side))
	})
	return targets
}
