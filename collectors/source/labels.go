package source

import (
	"encoding/json"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Labels says which quote the label of a row stands for, by normalised label. In a definition file, "currencies"
// instead of an object means that the labels are read with a dictionary of currency words (values.LabelWords).
type Labels map[string]Target

// byWords is the key of Labels that are read with the dictionary. No file has it: control characters are refused.
const byWords = "\x00currencies"

// otherRates instead of a pattern in "unless" skips the rows and matches that have a word for another rate
// (values.OtherRate).
const otherRates = "other-rates"

// UnmarshalJSON reads an object of labels, or "currencies".
func (l *Labels) UnmarshalJSON(data []byte) error {
	if string(data) == `"currencies"` {
		*l = Labels{byWords: {}}
		return nil
	}
	return json.Unmarshal(data, (*map[string]Target)(l))
}

// find returns the quote that a normalised label stands for. With the dictionary, the label names a side if and only if
// the row has one price (withSide).
func (l Labels) find(label string, withSide bool) (Target, bool) {
	target, known := l[label]
	if _, words := l[byWords]; known || !words {
		return target, known
	}
	currency, channel, side, ok := values.LabelWords(label)
	return Target{Currency: currency, Channel: engine.Channel(channel), Side: Side(side)}, ok && (side != "") == withSide
}

// targetsOfWords returns the quotes that labels of the dictionary may stand for.
func targetsOfWords() (targets []Target) {
	for _, currency := range values.LabelCurrencies() {
		for _, channel := range []engine.Channel{"", engine.Branch, engine.Digital, engine.Cash, engine.Transfer} {
			targets = append(targets, Target{Currency: currency, Channel: channel})
		}
	}
	return targets
}
