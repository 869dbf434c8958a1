package source

import (
	"regexp"
	"strings"

	"github.com/tasard/tasard/collectors/values"
)

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
