package source

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/tasard/tasard/engine"
)

// Definition describes one source: its institution, its priority, its pages and how to read them. It is immutable.
type Definition struct {
	ID             string                  // ID of the source, as in Rate.sourceId
	Name           string                  // in Spanish, for people
	URL            string                  // web page for people, or ""
	Institution    string                  // institution of the rates; "" = each row names its own
	Priority       int64                   // if several sources have the same rate, the lowest number wins
	UpstreamSource string                  // name of the aggregator; "" = the institution itself is the source
	Kind           engine.Kind             // of all its quotes
	Channel        engine.Channel          // of its quotes, unless a field or label names another
	Expiry         Expiry                  // how long its quotes are valid
	Bounds         []engine.PlausibleRange // replace the plausible ranges of the currencies
	Language       string                  // of its pages, es or en, for Accept-Language
	Decimal        DecimalMark             // decimal mark of its prices
	DecimalsMax    int                     // a price with more decimals is an error
	IgnoreRobots   bool                    // ignore robots.txt; only an operator may decide this
	PlainHTTP      bool                    // its addresses may be http instead of https
	CAFile         string                  // PEM file of intermediate certificates that the server omits; "" = none
	Disabled       string                  // why the source is not fetched, "" = it is; Parse works either way
	Note           string                  // for the person who repairs the definition
	Pages          []Page                  // at least one
}

// Expiry says how long a quote is valid. The quote expires at the earlier of the two times.
type Expiry struct {
	AfterCheck time.Duration // after the last check of the source; 26 h by default
	AfterDate  time.Duration // after the end of the quote's effective date in Santo Domingo; 0 = no limit
}

// DecimalMark is the decimal mark of a source.
type DecimalMark string

// The decimal marks. AnyMark accepts both; a comma that may also be a thousands separator is then an error.
const (
	AnyMark DecimalMark = ""
	Point   DecimalMark = "point"
	Comma   DecimalMark = "comma"
)

// Page says how to get one document of a source and how to read it.
type Page struct {
	Name        string    // unique within the source; may be "" if the source has only one page
	Institution string    // institution of its quotes; "" = Definition.Institution
	Currency    string    // currency of fields and labels that name none
	Requests    []Request // sent in this order, with shared cookies; the last response is the document
	Extract     Extract
	Fragment    bool // the document may be a part of an HTML page, so a missing </html> is not an error
}

// Request is one HTTP request of a page.
type Request struct {
	Method      string            // GET or POST
	URL         string            // absolute; "" with AddressFrom
	AddressFrom *AddressFrom      // nil with URL
	Headers     map[string]string // added to the headers of every request
	Form        map[string]string // form-encoded body; nil = no form
	JSON        string            // JSON body, also for GraphQL; "" = none
}

// AddressFrom takes the address of a request from the previous response: from an attribute of an HTML element. The
// address must be on the same site.
type AddressFrom struct {
	Selector  string // CSS selector of the element
	Attribute string
}

// Method is a way to read a document.
type Method string

// The methods.
const (
	HTMLFields Method = "html-fields" // one element for each side (buy, sell) of each currency
	HTMLRows   Method = "html-rows"   // rows or cards, identified by their label
	JSONFields Method = "json-fields" // one path for each side of each currency
	JSONRows   Method = "json-rows"   // array of objects, identified by their label
	TextRegex  Method = "text-regex"  // regular expression with named groups
	XLSXRows   Method = "xlsx-rows"   // sheet of an XLSX or XLS workbook with a date in each row
)

// Extract says how a document is read. Each method needs some of the fields; a definition file must not have others.
type Extract struct {
	Method Method
	Fields []Field  // for html-fields, json-fields, xlsx-rows
	Rows   *Rows    // for html-rows, json-rows
	Text   *Text    // for text-regex
	Sheet  *Sheet   // for xlsx-rows
	Date   *Date    // date of the whole document; nil = none
	Expect []Expect // conditions that a valid document meets
}

// Side names one side of a quote, or both.
type Side string

// The sides. BothSides is for a source with one price for each currency.
const (
	BuySide   Side = "buy"
	SellSide  Side = "sell"
	BothSides Side = "both"
)

// Locator says where a text is in a document, or in a row of a document. If it finds several texts, all of them must
// have the same value.
type Locator struct {
	At        string // HTML: a CSS selector; JSON: a path such as d.results[0].rate; sheet: the heading of a column
	Attribute string // HTML: the attribute to read; "" = the visible text
	Column    string // HTML: the heading of a table column
	Pattern   string // regular expression that selects a part of the text: its first group, or the whole match
}

// Field says where one side of one currency is. If a side of a currency has several fields, they are tried in order.
type Field struct {
	Currency string // "" = Page.Currency
	Side     Side
	Channel  engine.Channel // "" = Definition.Channel
	From     engine.Date    // sheet: the first day on which the column has this currency; zero = all days
	Locator
}

// Rows says where the rows are and how each is read. A row is identified by its label, not by its position.
type Rows struct {
	At        string // HTML: CSS selector of the rows; JSON: path of the array
	Label     Locator
	Buy, Sell *Locator          // nil = the source does not have this side
	Value     *Locator          // instead of Buy and Sell: the price of the side that the label names
	Labels    map[string]Target // by normalised label (normaliseLabel); includes the labels of the whole definition
	Ignore    []string          // normalised labels of rows without a quote
	Unless    string            // HTML: rows whose text matches this pattern are skipped
	Date      *Date             // date of the row; nil = none
	Min       int               // fewer rows with a known label are a failure of kind Layout; at least 1
}

// Target is the quote that a label stands for. An empty field means the default of the page or the source.
type Target struct {
	Institution string
	Currency    string
	Channel     engine.Channel
	Side        Side // only with Rows.Value
}

// Text says how a text is searched with a regular expression.
type Text struct {
	At      string            // CSS selector of the searched elements; their texts are joined by newlines; "" = the whole document
	Pattern string            // with the named groups buy and sell, or one of them, and optionally label
	Labels  map[string]Target // by normalised text of the group label
	Unless  string            // matches of Pattern that also match this pattern are skipped
	Min     int               // fewer matches are a failure of kind Layout; at least 1
}

// Sheet identifies a sheet with one row for each day.
type Sheet struct {
	Name             string // normalised like a label; "" = the first sheet
	Year, Month, Day string // headings of the columns with the date
}

// Date says where the effective date of quotes is, and how it is written. If Form has a time, the date with this time
// is also the time of publication.
type Date struct {
	Locator
	Form DateForm
}

// DateForm is the written form of a date.
type DateForm string

// The forms of dates. A time without a zone is local time in Santo Domingo.
const (
	ISODate      DateForm = "iso"              // 2026-09-17; a time of 00:00:00 after it is ignored
	DayMonthYear DateForm = "dd/mm/yyyy"       // 17/09/2026; day and month may have one digit
	DayTime      DateForm = "dd/mm/yyyy hh:mm" // am or pm may follow
	SpanishDate  DateForm = "spanish"          // 17 de septiembre de 2026, 17-sep-2026
	ISOInstant   DateForm = "rfc3339"          // 2026-09-17T12:30:00-04:00
)

// Expect is a condition that a valid document meets. In JSON, the value at Path must be Value, for example "OK". In
// HTML, the selector At must match an element, and the text of each matched element must match Pattern.
type Expect struct {
	Path    string
	Value   string // numbers and booleans as the document writes them
	At      string
	Pattern string
}

// Document is a document from a server or a file.
type Document struct {
	URL         string    // of the final response
	ContentType string    // the header; "" = unknown, as for a file
	Body        []byte    // complete and decompressed
	FetchedAt   time.Time // when the last byte was received
}

// Digest returns the SHA-256 of the body in hexadecimal digits.
func (d *Document) Digest() string {
	sum := sha256.Sum256(d.Body)
	return hex.EncodeToString(sum[:])
}

// Result has the quotes of one document.
type Result struct {
	Observations []engine.Observation // quotes of the newest day
	History      []HistoryDay         // earlier days of a workbook, oldest first
	Notes        []string             // the skipped parts and why, such as unknown labels and missing fields
}

// HistoryDay is one past day of a page.
type HistoryDay struct {
	Date         engine.Date
	Observations []engine.Observation
}
