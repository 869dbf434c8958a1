package suggest

import "github.com/tasard/tasard/collectors/values"

// codesOfNumbers are the numbers of currencies in ISO 4217, which some services use.
var codesOfNumbers = map[string]string{"840": "USD", "978": "EUR", "826": "GBP", "756": "CHF", "124": "CAD"}

// only returns the word of a topic if all words of the topic mean the same. several is true if they do not. The peso
// does not count.
func only(words []values.Word, about values.Topic) (found values.Word, several bool) {
	for _, w := range words {
		switch {
		case w.Topic != about || w.Meaning == values.Pesos:
		case found.Meaning == "":
			found = w
		case w.Meaning != found.Meaning:
			return values.Word{}, true
		}
	}
	return found, false
}

func has(words []values.Word, about values.Topic) bool {
	found, several := only(words, about)
	return several || found.Meaning != ""
}
