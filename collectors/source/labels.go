package source

import (
	"encoding/json"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Labels maps the normalised labels of rows to quotes. If a definition file has the text "currencies" instead of an
// object, labels are looked up in a dictionary of currency words (values.LabelWords).
type Labels map[string]Target

// byWords is a key that marks Labels with the dictionary. It can't be in a file, where control characters are refused.
const byWords = "\x00currencies"

// UnmarshalJSON reads an object of labels, or "currencies".
func (l *Labels) UnmarshalJSON(data []byte) error {
	if string(data) == `"currencies"` {
		*l = Labels{byWords: {}}
		return nil
	}
	return json.Unmarshal(data, (*map[string]Target)(l))
}

// find returns the quote that a normalised label stands for. withSide means that a row has only one price. A label of
// the dictionary must then name the side, and otherwise must not.
func (l Labels) find(label string, withSide bool) (Target, bool) {
	target, known := l[label]
	if _, words := l[byWords]; known || !words {
		return target, known
	}
	currency, channel, side, ok := values.LabelWords(label)
	return Target{Currency: currency, Channel: engine.Channel(channel), Side: Side(side)}, ok && (side != "") == withSide
}

// targetsOfWords returns all quotes that labels of the dictionary can stand for.
func targetsOfWords() (targets []Target) {
	for _, currency := range values.LabelCurrencies() {
		for _, channel := range []engine.Channel{"", engine.Branch, engine.Digital, engine.Cash, engine.Transfer} {
			targets = append(targets, Target{Currency: currency, Channel: channel})
		}
	}
	return targets
}
