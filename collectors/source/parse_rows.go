package source

import "slices"

// labelBytesMax is more than any name has; longer texts are told apart by their beginning in notes only.
const labelBytesMax = 500

// readGroups reads rows that are told apart by their labels. A row with a label that nobody knows is left out with a note; too
// few known rows are no answer, because then the page has changed and the rest of it is not to be believed either. Each group
// stands below its own headings: another one may repeat what the first says, as for narrow screens, but what it says besides may be the rates
// of yesterday, of cards or of the central bank.
func (r *reading) readGroups(groups [][]scope) {
	known, all := 0, 0
	for _, rows := range groups {
		before := len(r.quotes)
		for _, row := range rows {
			if target, ok := r.target(row); ok && !r.unwanted(row) && r.readRow(row, target) {
				known++
			}
		}
		if before > 0 && len(r.quotes) > before {
			fail(Layout, "below another row of headings stands something else, as %s; tell in at which table is meant", r.quotes[before])
		}
		all += len(rows)
	}
	r.enough(known, all, r.page.Extract.Rows.Min, "rows with a known label and a value")
}

// enough holds what was known against the least that makes an answer.
func (r *reading) enough(known, all, least int, what string) {
	if known < max(least, 1) {
		fail(Layout, "%d %s of %d in all, want at least %d%s", known, what, all, max(least, 1), r.notes.hint())
	}
}

// target is what the label of a row means; false when the row is none that counts.
func (r *reading) target(row scope) (Target, bool) {
	rows := r.page.Extract.Rows
	label := ""
	for _, one := range r.at(row, &rows.Label) {
		text := one.text[:min(len(one.text), labelBytesMax)]
		switch own := Normalise(text); {
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

// unwanted reports a row that says of itself that it is something else than a rate of the definition, with a note.
func (r *reading) unwanted(row scope) bool {
	unless := r.page.Extract.Rows.Unless
	if unless == "" {
		return false
	}
	texts := r.at(row, &Place{Pattern: unless})
	if len(texts) == 0 {
		return false
	}
	r.notes.add("a row is left out, because it says %s", quoted(texts[0].text))
	return true
}

// readRow reports whether the row has any of the values that it should have.
func (r *reading) readRow(row scope, target Target) bool {
	rows := r.page.Extract.Rows
	key := r.key(target)
	if rows.Date != nil {
		if failure := try(func() { key.date, key.moment = r.dateAt(row, rows.Date) }); failure != nil {
			r.notes.add("%s %s is left out: %s", key.institution, key.currency, failure.Detail)
			return false
		}
	}
	if rows.Value != nil {
		value := r.valueAt(row, rows.Value, key.currency)
		if value.finding != absent {
			r.addSide(key, target.Side, value)
		}
		return value.finding != absent
	}
	buy, sell := r.valueAt(row, rows.Buy, key.currency), r.valueAt(row, rows.Sell, key.currency)
	r.noteAbsent(key, buy, []*Place{rows.Buy}, "buy")
	r.noteAbsent(key, sell, []*Place{rows.Sell}, "sell")
	r.add(key, buy, sell)
	return buy.finding != absent || sell.finding != absent
}
