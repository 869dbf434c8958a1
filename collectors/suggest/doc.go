// Package suggest finds the rates in a document whose definition no longer reads it, because the page was redesigned,
// and writes a definition that does. It publishes nothing: an operator looks at the suggestion and keeps it, or not.
//
//	document + known prices  ->  Find     ->  findings, each with its reasons
//	findings + definition    ->  Suggest  ->  a definition that reads exactly them
//
// # How it finds
//
//	words.go     the dictionary: words for sides, currencies and channels, and words that mean "no rate of today"
//	html.go      a page as one stream of words and prices, in the order of the page
//	label.go     the words that belong to a price: of its attribute, its cell, its row and column, its element
//	json.go      prices of a JSON document, by their keys and the texts beside them
//	known.go     prices of the day before, or of the market, which the operator or the node knows
//	find.go      from prices to findings
//	definition.go, locator.go   from findings to a definition, which package source must read to exactly the findings
//
// # Promises
//
//   - A price whose words contradict each other, or two prices for one side, give no finding: nothing is guessed.
//   - A known price only refuses (a price that is far from it), or supplies the word that a price lacks.
//   - The time is bounded: at most pricesMax prices and documentMax bytes.
//   - No floating-point numbers. All functions are safe for concurrent use.
package suggest
