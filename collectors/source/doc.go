// Package source describes sources as data and reads their documents: bytes go in, observations or a typed Failure come out. It
// fetches nothing, starts nothing and reads no clock, so the same bytes always give the same answer.
//
// # Two halves
//
// A Definition is one JSON file: whose rates a source publishes, which pages to request, and how each is read. docs/definitions.md
// is the guide for writing one, with an example of each of the six methods; definition.go explains each key at its field.
// DefaultSet has the files of the program (definitions/); Set.Extend adds those of an operator's directory.
//
//	definition.go                   the types
//	set.go                          the set of all definitions, and its check against the catalogue
//	read.go, read_*.go              a file to a Definition; every problem of a file is told, with its place
//
// Definition.Parse reads a document of a page. A failure found anywhere ends the reading (fail); Parse returns it.
//
//	content.go, content_wall.go     what kind of document came; challenges of bot walls
//	html.go, html_table.go, markup.go   elements, tables by their headings, limits of markup
//	json.go, json_extract.go        values with the digits that stand there, paths
//	regex.go                        patterns over text
//	sheet.go, sheet_days.go         workbooks (collectors/workbook) with a row for each day
//	parse.go, parse_*.go            places, fields and rows to quotes
//	price.go, date.go, label.go     what a text says
//
// # What is believed
//
// A price is read when it is certainly one (parsePrice), a date in exactly its form, a label when it is equal (normaliseLabel).
// Nothing is guessed, rescaled, swapped or derived:
//
//   - A side that can't be read keeps its text and is quarantined by the engine, as a zero is. When no side of a page can be read the
//     page fails with value; when all are zero or say "N/A", with empty.
//   - A side that is not there is empty, with a note; an unknown label is a note. When nothing is there, or fewer rows than min
//     are known: layout.
//   - A declared date that is missing or unreadable fails the page: an undated page could be years old.
//   - Another kind of document, half a page, an error in JSON: wrong_content. The challenge of a bot wall: blocked.
//   - Two rows that contradict each other both go on, and the engine refuses them; two elements of one field fail the page.
//
// docs/definitions.md has the rest: text that is not visible, currencies beside a price, rows of a sheet.
//
// # Rules for this package
//
// Limits of size are constants beside what they bound. There is no float type: numbers of JSON keep their digits, cells of workbooks
// come as text and lose only the noise behind the eighth digit. Everything is safe for concurrent use: definitions and sets are
// immutable, and Parse changes no shared state.
package source
