// Package suggest finds the rates in a document whose definition no longer reads it, because the page was redesigned,
// and writes a definition that does. It publishes nothing: an operator looks at the suggestion and keeps it, or not.
//
//	document + known prices  ->  findings, each with its reasons  ->  Suggest: a definition that reads exactly them
//
//	find.go             from prices to findings
//	html.go, label.go   a page as one stream of words and prices, and the words that belong to a price
//	json.go             prices of a JSON document, by their keys and the texts beside them
//	known.go            prices of the day before, or of the market, which the operator or the node knows
//	definition.go       the definition for findings of JSON and of tables; package source must read exactly them
//	locator.go          the selectors, patterns and dates of a page
//
// The words are those of package values.
//
// # Promises
//
//   - A price whose words contradict each other, or two prices for one side, give no finding: nothing is guessed.
//   - A known price only refuses (a price that is far from it), or supplies the word that a price lacks.
//   - The time is bounded: at most pricesMax prices and documentMax bytes.
//   - No floating-point numbers. All functions are safe for concurrent use.
package suggest
