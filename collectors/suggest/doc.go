// Package suggest repairs a definition after its page was redesigned: it finds the rates in a document of the page, and
// writes a definition that reads exactly these rates. It publishes nothing: an operator decides about the suggestion.
//
//	document + known prices  ->  findings, each with its reasons  ->  Suggest: a definition
//
// # Terms
//
//	finding:      a price with a clear currency and side
//	spot:         a place in a document with a price that may become a finding
//	word:         a word that means a side, a currency, a channel or another rate (package values)
//	name:         an id, class or other attribute that may describe an element's content
//	known price:  a price that the source published before
//	noise:        a price that is another rate, such as yesterday's
//
//	find.go             the prices of a document, and what is clear about them
//	html.go             a document as one stream of words and prices; the words that belong to a price
//	definition.go       the definition that reads exactly the findings
//
// # Promises
//
//   - A price whose words contradict each other, or two prices for one side, give no finding: nothing is guessed.
//   - Known prices serve two purposes only. A price far from its known price is refused. A price near a known price can
//     get its missing currency or side from it.
//   - The time is bounded by counting (workMax), the size by documentMax and pricesMax.
//   - No floating-point numbers. All functions are safe for concurrent use.
package suggest
