// Package suggest finds the rates in a document whose definition no longer reads it, because the page was redesigned,
// and writes a definition that does. It publishes nothing: an operator looks at the suggestion and keeps it, or not.
//
//	document + known prices  ->  findings, each with its reasons  ->  Suggest: a definition that reads exactly them
//
//	find.go             the prices of a document, and what is clear about them
//	html.go, json.go    a document as one stream of words and prices
//	label.go            the words that belong to a price
//	definition.go, locator.go   the definition that reads exactly the findings
//
// The words are those of package values.
//
// # Promises
//
//   - A price whose words contradict each other, or two prices for one side, give no finding: nothing is guessed.
//   - A known price only refuses (a price that is far from it), or supplies the word that a price lacks.
//   - The time is bounded by counting (workMax), the size by documentMax and pricesMax.
//   - No floating-point numbers. All functions are safe for concurrent use.
package suggest
