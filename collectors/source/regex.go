package source

import (
	"regexp"
	"strings"
)

// matchesMax is more matches than any page has.
const matchesMax = 1000

// extractText reads a text by a pattern with named groups. The date is in that text, or at its own selector.
func (r *parser) extractText(text string) {
	want, date := r.page.Extract.Text, r.page.Extract.Date
	where, whole := scope(nil), &htmlScope{}
	if want.At != "" || date != nil && date.At != "" {
		whole.selection = parseHTML(text).Selection
		where = whole
	}
	if want.At != "" {
		var lines []string
		for _, one := range whole.texts(&Locator{At: want.At}) {
			lines = append(lines, one.text)
		}
		if len(lines) == 0 {
			failf(Layout, "there is no text at %s", quoted(want.At))
		}
		text = strings.Join(lines, "\n")
	}
	if date != nil && date.At == "" {
		where = textScope(text)
	}
	r.readDate(where)
	r.readMatches(normaliseSpaces(text))
}

// textScope is a text without elements.
type textScope string

func (s textScope) texts(*Locator) []foundText { return []foundText{{text: string(s)}} }

// normaliseSpaces replaces all white space except newlines by spaces, which a pattern's \s matches.
func normaliseSpaces(text string) string {
	return strings.Map(func(c rune) rune {
		if isSpace(c) && c != '\n' {
			return ' '
		}
		return c
	}, text)
}

// readMatches adds a quote for every match with a known label.
func (r *parser) readMatches(text string) {
	if len(text) > patternBytesMax {
		failf(WrongContent, "a text of %d bytes; at most %d are searched", len(text), patternBytesMax)
	}
	want := r.page.Extract.Text
	pattern := r.pattern(want.Pattern)
	matches := findMatches(pattern, text)
	known := 0
	for _, match := range matches {
		if want.Unless != "" && r.pattern(want.Unless).MatchString(match[0]) {
			r.notes.add("%s is skipped because it has %s", quoted(match[0]), quoted(r.pattern(want.Unless).FindString(match[0])))
			continue
		}
		target, ok := r.matchTarget(pattern, match)
		if !ok {
			continue
		}
		known++
		key := r.keyOf(target)
		r.addQuote(key, r.groupPrice(pattern, match, "buy", key.currency), r.groupPrice(pattern, match, "sell", key.currency))
	}
	r.requireMin(known, len(matches), want.Min, "matches of the pattern with a known label")
}

// findMatches returns the matches of a pattern, including those that begin in the text that another match needs after
// its last group: "Vendemos 60.10 Compramos 58.10 Vendemos 70.10 ..." must not hide its second half.
func findMatches(pattern *regexp.Regexp, text string) [][]string {
	positions := pattern.FindAllStringSubmatchIndex(text, matchesMax)
	rest := []byte(text)
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
		clear(rest[position[0]:lastGroup])
	}
	if len(matches) == 0 {
		return nil
	}
	return append(matches, pattern.FindAllStringSubmatch(string(rest), matchesMax)...)
}

// matchTarget returns the meaning of the label of a match. Without a label group every match is the quote of the
// page.
func (r *parser) matchTarget(pattern *regexp.Regexp, match []string) (Target, bool) {
	if pattern.SubexpIndex("label") < 0 {
		return Target{}, true
	}
	label := ""
	for i, name := range pattern.SubexpNames() {
		if name == "label" && match[i] != "" {
			label = normaliseLabel(match[i][:min(len(match[i]), labelBytesMax)])
		}
	}
	target, known := r.page.Extract.Text.Labels[label]
	if !known && label != "" {
		r.notes.add("unknown label %s", quoted(label))
	}
	return target, known
}

// groupPrice returns the price in a named group; of several groups with that name, the one that matched.
func (r *parser) groupPrice(pattern *regexp.Regexp, match []string, want, currency string) side {
	for i, name := range pattern.SubexpNames() {
		if name == want && match[i] != "" {
			return r.priceOf(foundText{text: match[i]}, currency)
		}
	}
	return side{}
}
