// Package source describes sources of exchange rates as data and parses their documents. A source is a website or API
// with rates of one or more institutions. The package downloads nothing and reads no clock, so the same document always
// gives the same result.
//
//	definition file (JSON)  ->  Definition
//	Definition + Document   ->  Parse  ->  observations and notes, or a *Failure
//
// # Terms
//
//	locator:  where a text is: a CSS selector, a JSON path, a column heading, and perhaps a pattern
//	scope:    the part of a document in which a locator searches
//	field:    the locator of one price of one currency
//	row:      a part of a document that is identified by its label, such as a table row
//	label:    the text that identifies a row or match, such as the name of a bank
//	target:   what a label or field stands for: an institution, a currency, a channel
//	pattern:  a regular expression
//	note:     a message about a skipped part of a document
//	key:      target, date and time of a quote (quoteKey): two quotes with one key contradict each other
//	side:     buy or sell; in the parser also the text at its place, which may not be a price
//	unless:   words that make a row another rate, such as "remesas": the row is skipped
//	challenge page: the page of a bot protection, sent instead of the real page
//
// # Definitions
//
// A Definition names a source, its institution and its pages, and says how to read each page. Each definition is a JSON
// file. docs/definitions.md explains how to write one, with an example of each method. definition.go explains each key.
// DefaultSet reads the built-in files (definitions/); Set.Extend adds the files of a directory.
//
//	definition.go                   the types
//	definition_file.go              reading of definition files; the error lists all problems of a file
//	set.go                          sets of definitions; Check compares one with the catalogue
//
// # Documents
//
// Definition.Parse reads the document of a page. The parser keeps its first failure and goes on, like a bufio.Writer.
// After a failure it returns no observations.
//
//	content.go                      the kind of document; challenge pages of bot protections
//	html.go                         elements and rows of tables (collectors/markup)
//	json.go                         JSON with the digits of numbers (gjson); paths
//	sheet.go                        workbooks (collectors/workbook) with a row for each day
//	parse.go, parse_*.go            from locators, fields, rows and patterns to quotes; collectors/values parses texts
//
// # Promises
//
//   - A price is read only if it is unambiguous (values.ParsePrice), and a date only in its declared form.
//   - A label must be equal to a label of the definition (values.NormaliseLabel).
//   - No value is guessed, rescaled, swapped or derived; docs/definitions.md lists the rules.
//   - There are no floating-point numbers: JSON numbers keep their digits, and cells of workbooks are decimal text.
//   - Limits of size are constants in the file that checks them.
//   - Definitions and sets are immutable. All functions are safe for concurrent use.
package source
