package source

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tasard/tasard/collectors/values"
)

// labelBytesMax bounds a label; the rest of a longer text is ignored.
const labelBytesMax = 500

// readGroups reads the rows of a document and adds their quotes to r.quotes. A row is identified by its label, such as
// the name of a bank. readGroups skips a row with an unknown label and adds a note. It fails if it reads fewer than
// Rows.Min rows, because then the page has changed.
//
// A group consists of the rows below one row of headings. Later groups may repeat the quotes of the first group, for
// example for narrow screens. A later group with other quotes is a failure: they may be old rates, or rates of cards or
// of the central bank.
func (r *parser) readGroups(groups [][]scope) {
	read, total := 0, 0
	for _, rows := range groups {
		quotesBefore := len(r.quotes)
		for _, row := range rows {
			if target, ok := r.rowTarget(row); ok && !r.excluded(row, target) && r.readRow(row, target) {
				read++
			}
		}
		if quotesBefore > 0 && len(r.quotes) > quotesBefore {
			r.failf(Layout, "the rows below another row of headings differ, such as %s; select one table in at", r.quotes[quotesBefore])
		}
		total += len(rows)
	}
	r.requireMin(read, total, r.page.Extract.Rows.Min, "rows with a known label and a value")
}

func (r *parser) requireMin(count, total, minimum int, noun string) {
	if count < max(minimum, 1) {
		r.failf(Layout, "%d %s of %d in all, want at least %d%s", count, noun, total, max(minimum, 1), r.notes.summary())
	}
}

// rowTarget looks up the label of a row in Rows.Labels. It returns false for a row that must be skipped.
func (r *parser) rowTarget(row scope) (Target, bool) {
	rows := r.page.Extract.Rows
	label := ""
	for _, t := range r.textsAt(row, &rows.Label) {
		text := t.text[:min(len(t.text), labelBytesMax)]
		switch normalised := values.NormaliseLabel(text); {
		case normalised == "" || normalised == label:
		case label == "":
			label = normalised
		default:
			r.notes.add("a row has two labels, %s and %s", quoted(label), quoted(normalised))
			return Target{}, false
		}
	}
	target, known := rows.Labels.find(label, rows.Value != nil)
	if !known && label != "" && !slices.Contains(rows.Ignore, label) {
		r.notes.add("unknown label %s", quoted(label))
	}
	return target, known
}

// excluded reports whether a row is skipped because of Rows.Unless. If so, it adds a note.
func (r *parser) excluded(row scope, target Target) bool {
	rows := r.page.Extract.Rows
	if rows.Unless == "" {
		return false
	}
	unread := Side("")
	if rows.Value == nil && rows.Sell == nil {
		unread = SellSide
	}
	for _, t := range r.textsAt(row, &Locator{Pattern: `(?s).+`}) {
		if reason := values.OtherRate(t.text, r.keyOf(target).currency, string(unread)); reason != "" {
			r.notes.add("a row is skipped because it has %s", quoted(reason))
			return true
		}
	}
	return false
}

// readRow adds the quote of a row to r.quotes. It returns false if the row has no text where prices should be.
func (r *parser) readRow(row scope, target Target) bool {
	rows := r.page.Extract.Rows
	key := r.keyOf(target)
	if rows.Date != nil {
		var failure *Failure
		if key.date, key.instant, failure = r.dateAt(row, rows.Date); failure != nil {
			r.notes.add("%s %s is skipped: %s", key.institution, key.currency, failure.Detail)
			return false
		}
	}
	if rows.Value != nil {
		value := r.valueAt(row, rows.Value, key.currency)
		if value.status != statusMissing {
			switch target.Side {
			case BuySide:
				r.addQuote(key, value, side{})
			case SellSide:
				r.addQuote(key, side{}, value)
			case BothSides:
				r.addQuote(key, value, value)
			}
		}
		return value.status != statusMissing
	}
	buy, sell := r.valueAt(row, rows.Buy, key.currency), r.valueAt(row, rows.Sell, key.currency)
	r.noteMissing(key, buy, []*Locator{rows.Buy}, "buy")
	r.noteMissing(key, sell, []*Locator{rows.Sell}, "sell")
	r.addQuote(key, buy, sell)
	return buy.status != statusMissing || sell.status != statusMissing
}

// matchesMax is the maximum number of matches of a pattern; further matches are ignored. No known page has as many.
const matchesMax = 1000

// extractText reads the quotes of a text with a regular expression (Text.Pattern).
func (r *parser) extractText(text string) {
	if at := r.page.Extract.Text.At; at != "" {
		document, failure := parseHTML(text)
		if r.fail(failure) {
			return
		}
		lines := (&Locator{At: at}).Texts(document)
		if len(lines) == 0 {
			r.failf(Layout, "there is no text at %s", quoted(at))
			return
		}
		text = strings.Join(lines, "\n")
	}
	r.readMatches(values.NormaliseSpaces(text))
}

// readMatches adds a quote to r.quotes for every match of the pattern. The label is the text of the group named
// "label", such as the name of a bank. Matches with an unknown label are skipped.
func (r *parser) readMatches(text string) {
	if len(text) > patternBytesMax {
		r.failf(WrongContent, "a text of %d bytes; at most %d are searched", len(text), patternBytesMax)
		return
	}
	spec := r.page.Extract.Text
	pattern := r.pattern(spec.Pattern)
	matches := findMatches(pattern, text)
	count := 0
	for _, match := range matches {
		target, ok := r.matchTarget(pattern, match)
		if !ok {
			continue
		}
		key := r.keyOf(target)
		if spec.Unless != "" {
			if reason := values.OtherRate(match[0], key.currency, ""); reason != "" {
				r.notes.add("%s is skipped because it has %s", quoted(match[0]), quoted(reason))
				continue
			}
		}
		count++
		r.addQuote(key, r.groupPrice(pattern, match, "buy", key.currency), r.groupPrice(pattern, match, "sell", key.currency))
	}
	r.requireMin(count, len(matches), 1, "matches of the pattern with a known label")
}

// findMatches returns the matches of a pattern. A match may include text after its last group, and another match may
// begin in this text. So findMatches searches the text again, without the groups of the first matches. Otherwise it
// could find only the first half of "Vendemos 60.10 Compramos 58.10 Vendemos 70.10 ...".
func findMatches(pattern *regexp.Regexp, text string) [][]string {
	positions := pattern.FindAllStringSubmatchIndex(text, matchesMax)
	remaining := []byte(text)
	var matches [][]string
	for _, position := range positions {
		match := make([]string, 0, len(position)/2)
		lastGroup := position[0]
		for i := 0; i < len(position); i += 2 {
			match = append(match, text[max(position[i], 0):max(position[i+1], 0)])
			if i > 0 {
				lastGroup = max(lastGroup, position[i+1])
			}
		}
		matches = append(matches, match)
		clear(remaining[position[0]:lastGroup])
	}
	if len(matches) == 0 {
		return nil
	}
	return append(matches, pattern.FindAllStringSubmatch(string(remaining), matchesMax)...)
}

// matchTarget returns the quote that the label of a match stands for, or false if the label is unknown. If the pattern
// has no group "label", it returns the zero Target, which stands for the quote of the page.
func (r *parser) matchTarget(pattern *regexp.Regexp, match []string) (Target, bool) {
	if pattern.SubexpIndex("label") < 0 {
		return Target{}, true
	}
	label := ""
	for i, name := range pattern.SubexpNames() {
		if name == "label" && match[i] != "" {
			label = values.NormaliseLabel(match[i][:min(len(match[i]), labelBytesMax)])
		}
	}
	target, known := r.page.Extract.Text.Labels.find(label, false)
	if !known && label != "" {
		r.notes.add("unknown label %s", quoted(label))
	}
	return target, known
}

// groupPrice parses the price in the first non-empty group that has the given name.
func (r *parser) groupPrice(pattern *regexp.Regexp, match []string, group, currency string) side {
	for i, name := range pattern.SubexpNames() {
		if name == group && match[i] != "" {
			return r.priceOf(sourceText{text: match[i]}, currency)
		}
	}
	return side{}
}
