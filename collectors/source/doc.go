// Package source describes sources as data and parses their documents: bytes in, observations or a typed Failure out.
// It downloads nothing and reads no clock, so the same bytes always give the same result.
//
// # Definitions
//
// A Definition is one JSON file: an institution, its pages, and how to read each. docs/definitions.md explains how to
// write one, with an example of each method; definition.go explains each key. DefaultSet has the built-in files
// (definitions/); Set.Extend adds those of a directory.
//
//	definition.go                   the types
//	definition_*.go                 parsing of definition files; all problems of a file are reported
//	set.go                          sets of definitions, and their check against the catalogue
//
// # Documents
//
// Definition.Parse reads a document of a page. Any function can end the parsing with a failure (failf), which Parse
// returns.
//
//	content.go, bot_wall.go         the kind of document; challenge pages of bot walls
//	html.go, html_table.go          elements, tables by their headings
//	markup_cost.go                  limits of markup
//	json.go, json_extract.go        JSON values with their digits, paths
//	regex.go                        patterns over text
//	sheet.go, sheet_days.go         workbooks (collectors/workbook) with a row for each day
//	parse.go, parse_*.go            locators, fields and rows to quotes
//	price.go, date.go, label.go     the meaning of a text
//
// # Promises
//
// A price is read only if it is unambiguous (parsePrice), and a date only in its declared form. Labels must be equal
// (normaliseLabel). No value is guessed, rescaled, swapped or derived; docs/definitions.md has the rules. There are no
// floating-point numbers: JSON numbers keep their digits, and cells of workbooks are decimal text.
//
// Limits of size are constants in the file that checks them. Definitions and sets are immutable, and everything
// is safe for concurrent use.
package source
