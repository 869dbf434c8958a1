package source

import "slices"

// labelBytesMax is more than any name has; longer texts are told apart by their beginning in notes only.
const labelBytesMax = 500

// readGroups reads rows that are told apart by their labels. A row with a label that nobody knows is left out with a note; too
// few known rows are no answer, because then the page has changed and the rest of it is not to be believed either. Each group
// stands below its own headings: another one may repeat what the first says, as for narrow screens, but what it says besides may be the rates
// of yesterday, of cards or of the central bank.
func (r *reading) readGroups(groups [][]scope) *Failure {
	known, all := 0, 0
	for _, rows := range groups {
		before := len(r.quotes)
		read, failure := r.readRows(rows)
		if failure != nil {
			return failure
		}
		if before > 0 && len(r.quotes) > before {
			return Fail(Layout, "below another row of headings stands something else, as %s; tell in at which table is meant",
				r.quotes[before])
		}
		known, all = known+read, all+len(rows)
	}
	return r.enough(known, all, r.page.Extract.Rows.Min, "rows with a known label and a value")
}

// readRows counts the rows that have a known label and a value.
func (r *reading) readRows(rows []scope) (known int, failure *Failure) {
	for _, row := range rows {
		target, ok, failure := r.target(row)
		if failure != nil {
			return known, failure
		}
		if !ok {
			continue
		}
		unwanted, failure := r.unwanted(row)
		if failure != nil {
			return known, failure
		}
		if unwanted {
			continue
		}
		read, failure := r.readRow(row, target)
		if failure != nil {
			return known, failure
		}
		if read {
			known++
		}
	}
	return known, nil
}

// enough holds what was known against the least that makes an answer.
func (r *reading) enough(known, all, least int, what string) *Failure {
	if known >= max(least, 1) {
		return nil
	}
	return Fail(Layout, "%d %s of %d in all, want at least %d%s", known, what, all, max(least, 1), r.notes.hint())
}

// target is what the label of a row means; false when the row is none that counts.
func (r *reading) target(row scope) (Target, bool, *Failure) {
	rows := r.page.Extract.Rows
	texts, failure := r.at(row, &rows.Label)
	if failure != nil {
		return Target{}, false, failure
	}
	label := ""
	for _, one := range texts {
		text := one.text[:min(len(one.text), labelBytesMax)]
		switch own := Normalise(text); {
		case own == "" || own == label:
		case label == "":
			label = own
		default:
			r.notes.add("a row has two labels, %s and %s", quoted(label), quoted(own))
			return Target{}, false, nil
		}
	}
	target, known := rows.Labels[label]
	if !known && label != "" && !slices.Contains(rows.Ignore, label) {
		r.notes.add("unknown label %s", quoted(label))
	}
	return target, known, nil
}

// unwanted reports a row that says of itself that it is something else than a rate of the definition, with a note.
func (r *reading) unwanted(row scope) (bool, *Failure) {
	unless := r.page.Extract.Rows.Unless
	if unless == "" {
		return false, nil
	}
	texts, failure := r.at(row, &Place{Pattern: unless})
	if failure != nil || len(texts) == 0 {
		return false, failure
	}
	r.notes.add("a row is left out, because it says %s", quoted(texts[0].text))
	return true, nil
}

// readRow reports whether the row has any of the values that it should have.
func (r *reading) readRow(row scope, target Target) (bool, *Failure) {
	rows := r.page.Extract.Rows
	key := r.key(target)
	if rows.Date != nil {
		date, moment, failure := r.dateAt(row, rows.Date)
		if failure != nil {
			r.notes.add("%s %s is left out: %s", key.institution, key.currency, failure.Detail)
			return false, nil
		}
		key.date, key.moment = date, moment
	}
	if rows.Value != nil {
		value, failure := r.valueAt(row, rows.Value, key.currency)
		if failure != nil || value.finding == absent {
			return false, failure
		}
		return true, r.addSide(key, target.Side, value)
	}
	buy, failure := r.valueAt(row, rows.Buy, key.currency)
	if failure != nil {
		return false, failure
	}
	sell, failure := r.valueAt(row, rows.Sell, key.currency)
	if failure != nil {
		return false, failure
	}
	r.noteAbsent(key, buy, rows.Buy, "buy")
	r.noteAbsent(key, sell, rows.Sell, "sell")
	return buy.finding != absent || sell.finding != absent, r.add(key, buy, sell)
}
