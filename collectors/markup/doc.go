// Package markup reads untrusted HTML pages: their elements, their visible texts, and their tables by headings.
//
//	page, err := markup.Parse(text)            // as browsers do
//	prices := markup.Find(page, ".compra")     // by a CSS selector
//	text := markup.VisibleText(prices[0])      // "58.90"
//
//	parse.go             parsing, with limits of time and memory; the text of an element as a person sees it
//	table.go             the cells of a table by their headings, including cells over several rows and columns
//
// # Promises
//
//   - A page that would need too much time or memory is an error before it is parsed, or before selectors search it.
//   - Two numbers of a page never become one: texts of different elements are separated by spaces, except elements that
//     only change the look of a text. Texts that are hidden, struck out or in scripts are not visible.
//   - A cell under two headings, or without a complete row of headings above it, has no heading.
//   - All functions are safe for concurrent use.
package markup
