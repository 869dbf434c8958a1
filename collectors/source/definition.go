package source

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/tasard/tasard/engine"
)

// Definition describes one source: its institution, its priority, its pages and how to read them. The built-in
// definitions are in definitions/, one file each; Set.Extend adds those of a directory. A Definition is immutable.
type Definition struct {
	ID             string                  // of the source, as in Rate.sourceId
	Name           string                  // in Spanish, for people
	URL            string                  // a page for people, a URI or ""
	Institution    string                  // the institution of its rates; "" = each row names its own
	Priority       int64                   // lower wins
	UpstreamSource string                  // name of the aggregator, "" = the institution itself
	Kind           engine.Kind             // of all its quotes
	Channel        engine.Channel          // of its quotes, unless a label names another
	Expiry         Expiry                  // how long its values are valid
	Bounds         []engine.PlausibleRange // plausible ranges that differ from those of the currencies
	Language       string                  // of its pages, es or en, for Accept-Language
	Decimal        DecimalMark             // its decimal mark; "" = only unambiguous texts are read
	DecimalsMax    int                     // more digits after the mark are an error
	IgnoreRobots   bool                    // whether to ignore robots.txt; the operator decides
	PlainHTTP      bool                    // whether its addresses may be http, which is not protected
	CAFile         string                  // PEM file of intermediate certificates that the server omits, "" = none
	Disabled       string                  // why it is not collected, "" = it is; documents can still be parsed
	Note           string                  // for the person who repairs the definition
	Pages          []Page                  // at least one
}

// Expiry says how long a value is valid: until the earlier of both ends.
type Expiry struct {
	AfterCheck time.Duration // after the last check; 26 h by default
	AfterDate  time.Duration // after the end of its effective date in Santo Domingo; 0 = no such end
}

// DecimalMark is the decimal mark of a source.
type DecimalMark string

// The decimal marks.
const (
	AnyMark DecimalMark = ""
	Point   DecimalMark = "point"
	Comma   DecimalMark = "comma"
)

// Page is one document of a source: how to get it and how to read it.
type Page struct {
	Name        string    // among the pages of the source, "" if there is one
	Institution string    // of its values, if the source covers several; "" = that of the source
	Currency    string    // of values that name none
	Requests    []Request // sent in this order with common cookies; the last response is the document
	Extract     Extract
	// Fragment means that the document may be a part of a page, so that a missing </html> is not an error.
	Fragment bool
}

// Request is one step towards a document.
type Request struct {
	Method      string            // GET or POST
	URL         string            // absolute; "" with AddressFrom
	AddressFrom *AddressFrom      // nil = the address is URL
	Headers     map[string]string // in addition to those of every request
	Form        map[string]string // form-encoded body; empty but not nil = an empty form
	JSON        string            // JSON body (GraphQL too)
}

// AddressFrom says where the previous response has the address of the next request, which must be on the same site.
type AddressFrom struct {
	Selector  string // CSS
	Attribute string
}

// Method is how a document is read.
type Method string

// The methods.
const (
	HTMLFields Method = "html-fields" // one element for each side of each currency
	HTMLRows   Method = "html-rows"   // rows or cards, identified by their label
	JSONFields Method = "json-fields" // one path for each side of each currency
	JSONRows   Method = "json-rows"   // an array of objects, identified by a code
	TextRegex  Method = "text-regex"  // text with named groups
	XLSXRows   Method = "xlsx-rows"   // a sheet with a date in each row; XLS too
)

// Extract is how a document is read. The method decides which fields are used; others are errors in a definition
// file.
type Extract struct {
	Method Method
	Fields []Field  // html-fields, json-fields, xlsx-rows (At is the heading of the column)
	Rows   *Rows    // html-rows, json-rows
	Text   *Text    // text-regex
	Sheet  *Sheet   // xlsx-rows
	Date   *Date    // of the whole document; nil = it has none
	Expect []Expect // conditions that a valid document meets
}

// Side is the side of a value.
type Side string

// The sides. BothSides is for a source with one value for each currency.
const (
	BuySide   Side = "buy"
	SellSide  Side = "sell"
	BothSides Side = "both"
)

// Locator says where a text is. It is relative to the row if there is one. In HTML, At is a CSS selector, Attribute the
// attribute to read ("" = the visible text), and Column the heading of a column of a table. In JSON, At is a path such
// as d.results[0].rate, where [] is the only entry of a list. In a sheet, At is the heading of a column. Pattern
// selects a part of the text: its first group, or the whole match. All matches and all selected elements must have the
// same value.
type Locator struct {
	At        string
	Attribute string
	Column    string
	Pattern   string
}

// Field says where one side of one currency is. Several fields of the same side and currency are tried in order.
type Field struct {
	Currency string // "" = that of the page
	Side     Side
	Channel  engine.Channel // "" = that of the source
	From     engine.Date    // in a sheet, the first day on which the column has this currency; zero = all days
	Locator
}

// Rows says where rows with labels are. Rows are never identified by their position.
type Rows struct {
	At        string // selector of the rows; path of the array
	Label     Locator
	Buy, Sell *Locator          // nil = the source has no such side
	Value     *Locator          // instead of Buy and Sell: the value of the side that the label names
	Labels    map[string]Target // by normalised label, including those of all pages
	Ignore    []string          // normalised labels without a quote
	Unless    string            // HTML: rows whose text matches this pattern are skipped
	Date      *Date             // of the row
	Min       int               // fewer rows with a known label are a failure (layout); at least 1
}

// Target is the quote that a label stands for. "" = the default of the page or the source.
type Target struct {
	Institution string
	Currency    string
	Channel     engine.Channel
	Side        Side // with Rows.Value
}

// Text is a pattern over a text.
type Text struct {
	At      string // CSS selector of the searched elements, joined by newlines; "" = the whole document
	Pattern string // named groups buy, sell, label (looked up in Labels); at least one side
	Labels  map[string]Target
	Unless  string // matches whose text matches this pattern are skipped
	Min     int    // fewer matches are a failure; at least 1
}

// Sheet is a sheet with one row for each day.
type Sheet struct {
	Name             string // normalised; "" = the first sheet
	Year, Month, Day string // headings of the columns with the date
}

// Date says where the effective date or the time of publication is, and its form.
type Date struct {
	Locator
	Form DateForm
}

// DateForm is how a date is written.
type DateForm string

// The forms of dates. Those with a time give the time of publication too, in Santo Domingo unless they have a zone.
const (
	ISODate      DateForm = "iso"              // 2026-09-17; also with T00:00:00Z, which is not a time
	DayMonthYear DateForm = "dd/mm/yyyy"       // 17/09/2026; day and month may have one digit
	DayTime      DateForm = "dd/mm/yyyy hh:mm" // with optional am/pm
	SpanishDate  DateForm = "spanish"          // 17 de septiembre de 2026, 17-sep-2026
	ISOInstant   DateForm = "rfc3339"          // 2026-09-17T12:30:00-04:00
)

// Expect is a condition that a valid document meets. In JSON: the value at Path is Value (a status "OK"). In HTML: the
// selector At matches an element, and the text of each matched element matches Pattern (a title with the currency).
type Expect struct {
	Path    string
	Value   string // as text; numbers and booleans as they are written
	At      string
	Pattern string
}

// Document is a downloaded document.
type Document struct {
	URL         string    // of the final response
	ContentType string    // of the header; "" = unknown (a file)
	Body        []byte    // complete and decompressed
	FetchedAt   time.Time // when its last byte was received
}

// Digest returns the SHA-256 of the document in hexadecimal digits.
func (d *Document) Digest() string {
	sum := sha256.Sum256(d.Body)
	return hex.EncodeToString(sum[:])
}

// Result is what Parse reads from one page.
type Result struct {
	Observations []engine.Observation // of the newest day
	History      []HistoryDay         // earlier days, oldest first (workbooks)
	Notes        []string             // the skipped parts and the reasons: unknown labels, missing fields
}

// HistoryDay is one past day of a page.
type HistoryDay struct {
	Date         engine.Date
	Observations []engine.Observation
}
