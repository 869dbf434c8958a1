package source

import "slices"

// labelBytesMax is more than any name has; longer texts are compared by their beginning.
const labelBytesMax = 500

// readGroups reads rows that are identified by labels. A row with an unknown label is skipped with a note; too few
// known rows are a failure, because the page has changed. Each group is below its own headings. Another group may
// repeat the quotes of the first, as for narrow screens; other quotes may be those of yesterday, of cards or of the
// central bank, and are a failure.
func (r *parser) readGroups(groups [][]scope) {
	known, all := 0, 0
	for _, rows := range groups {
		before := len(r.quotes)
		for _, row := range rows {
			if target, ok := r.rowTarget(row); ok && !r.excluded(row) && r.readRow(row, target) {
				known++
			}
		}
		if before > 0 && len(r.quotes) > before {
			failf(Layout, "the rows below another row of headings differ, such as %s; select one table in at", r.quotes[before])
		}
		all += len(rows)
	}
	r.requireMin(known, all, r.page.Extract.Rows.Min, "rows with a known label and a value")
}

func (r *parser) requireMin(known, all, least int, what string) {
	if known < max(least, 1) {
		failf(Layout, "%d %s of %d in all, want at least %d%s", known, what, all, max(least, 1), r.notes.summary())
	}
}

// rowTarget returns the meaning of the label of a row, false if the row does not count.
func (r *parser) rowTarget(row scope) (Target, bool) {
	rows := r.page.Extract.Rows
	label := ""
	for _, one := range r.textsAt(row, &rows.Label) {
		text := one.text[:min(len(one.text), labelBytesMax)]
		switch own := normaliseLabel(text); {
		case own == "" || own == label:
		case label == "":
			label = own
		default:
			r.notes.add("a row has two labels, %s and %s", quoted(label), quoted(own))
			return Target{}, false
		}
	}
	target, known := rows.Labels[label]
	if !known && label != "" && !slices.Contains(rows.Ignore, label) {
		r.notes.add("unknown label %s", quoted(label))
	}
	return target, known
}

// excluded reports a row whose text matches Unless, with a note.
func (r *parser) excluded(row scope) bool {
	unless := r.page.Extract.Rows.Unless
	if unless == "" {
		return false
	}
	texts := r.textsAt(row, &Locator{Pattern: unless})
	if len(texts) == 0 {
		return false
	}
	r.notes.add("a row is skipped because it has %s", quoted(texts[0].text))
	return true
}

// readRow reports whether the row has any of its values.
func (r *parser) readRow(row scope, target Target) bool {
	rows := r.page.Extract.Rows
	key := r.keyOf(target)
	if rows.Date != nil {
		if failure := catchFailure(func() { key.date, key.instant = r.dateAt(row, rows.Date) }); failure != nil {
			r.notes.add("%s %s is skipped: %s", key.institution, key.currency, failure.Detail)
			return false
		}
	}
	if rows.Value != nil {
		value := r.valueAt(row, rows.Value, key.currency)
		if value.status != statusMissing {
			r.addSide(key, target.Side, value)
		}
		return value.status != statusMissing
	}
	buy, sell := r.valueAt(row, rows.Buy, key.currency), r.valueAt(row, rows.Sell, key.currency)
	r.noteMissing(key, buy, []*Locator{rows.Buy}, "buy")
	r.noteMissing(key, sell, []*Locator{rows.Sell}, "sell")
	r.addQuote(key, buy, sell)
	return buy.status != statusMissing || sell.status != statusMissing
}
