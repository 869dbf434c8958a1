package source

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Definition describes one source, which is a website or API with exchange rates: its institution, its priority, its
// pages and how to read them. A Definition is immutable.
type Definition struct {
	ID             string                  // id of the source, as in the field sourceId of the API
	Name           string                  // in Spanish, for people
	URL            string                  // web page for people, or ""
	Institution    string                  // institution of the rates; "" = each row names its own
	Priority       int64                   // if several sources have the same rate, the lowest number wins
	UpstreamSource string                  // name of the site that copies rates; "" = the source is the institution
	Kind           engine.Kind             // kind of all its quotes, such as engine.Reference
	Channel        engine.Channel          // channel of its quotes; a Field or Target may name another
	Expiry         Expiry                  // how long its quotes are valid
	Bounds         []engine.PlausibleRange // plausible prices of its currencies, instead of the general ones
	Language       string                  // language of its pages, es or en, for the header Accept-Language
	Decimal        values.DecimalMark      // decimal mark of its prices
	DecimalsMax    int                     // a price with more decimals is an error
	IgnoreRobots   bool                    // ignore robots.txt; only an operator may decide this
	PlainHTTP      bool                    // its addresses may be http instead of https
	CAFile         string                  // PEM file of certificates that the server omits; "" = none
	UserAgent      string                  // header User-Agent instead of that of the node; "" = that of the node
	OldCiphers     bool                    // accept the ciphers of old servers too; the certificate is verified anyway
	Proxy          string                  // address of an HTTP or SOCKS5 proxy for its requests; "" = none
	Secret         *Secret                 // API key of the operator that its requests carry; nil = none
	OAuth2         *OAuth2                 // how its requests get a token; nil = they have none
	Disabled       string                  // reason why the source is not fetched (Parse works anyway); "" = it is
	Evidence       Evidence                // which programs have read the site in this form, and when
	Note           string                  // advice for people, about repairs of the definition
	Pages          []Page                  // at least one
}

// Expiry says how long a quote is valid. The quote expires at the earlier of the two times.
type Expiry struct {
	AfterCheck time.Duration // time after the last check of the source; 26 h by default
	AfterDate  time.Duration // time after the end of the quote's effective date in Santo Domingo; 0 = no limit
}

// Page says how to get one document of a source and how to read it.
type Page struct {
	Name        string    // unique within the source; may be "" if the source has only one page
	InsteadOf   string    // name of an earlier page; this page is read only if that one can't be read
	Institution string    // institution of its quotes; "" = Definition.Institution
	Currency    string    // currency of every Field and Target that names none
	Requests    []Request // sent in this order, with shared cookies; the last response is the document
	Extract     Extract
	Fragment    bool // the document may be a part of an HTML page, so a missing </html> is not an error
}

// Request is one HTTP request of a page.
type Request struct {
	Method      string            // GET or POST
	URL         string            // absolute address; "" if AddressFrom is given
	AddressFrom *AddressFrom      // where the address is; nil if URL is given
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

// Extract says how a document is read. The method decides which of the other members are needed; a definition file must
// not have any that its method does not need.
type Extract struct {
	Method Method
	Fields []Field  // for html-fields, json-fields, xlsx-rows
	Rows   *Rows    // for html-rows, json-rows
	Text   *Text    // for text-regex
	Sheet  *Sheet   // for xlsx-rows
	Date   *Date    // where the date of the whole document is; nil = it has none
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
	At        string // HTML: a CSS selector; JSON: a path such as d.results[0].rate; workbook: a column heading
	Attribute string // HTML: the attribute to read; "" = the visible text
	Column    string // HTML: the heading of a table column
	Pattern   string // regular expression that selects a part of the text: its first group, or the whole match
}

// Field says where one price (buy, sell or both) of one currency is. If there are several fields for the same price,
// they are tried in order.
type Field struct {
	Currency string // "" = Page.Currency
	Side     Side
	Channel  engine.Channel // "" = Definition.Channel
	From     engine.Date    // workbook: first day on which the column has this currency; zero = all days
	Locator
}

// Rows says where the rows of a document are and how each is read. A row is identified by its label, such as the name
// of a bank, and not by its position. A normalised label has no capitals, accents and superfluous spaces
// (values.NormaliseLabel).
type Rows struct {
	At        string // HTML: CSS selector of the rows; JSON: path of the array
	Label     Locator
	Buy, Sell *Locator          // nil = the source does not have this side
	Value     *Locator          // instead of Buy and Sell: the price of the side that the label names
	Labels    map[string]Target // by normalised label; includes the labels of the whole definition
	Ignore    []string          // normalised labels of rows without a quote
	Unless    string            // HTML: rows whose text matches this pattern are skipped
	Date      *Date             // where the date of the row is; nil = it has none
	Min       int               // minimum number of rows with a known label, at least 1; fewer are a failure
}

// Target says which quote a label stands for. If a member is empty, the quote has the value that the page or the source
// names.
type Target struct {
	Institution string
	Currency    string
	Channel     engine.Channel
	Side        Side // which side the price in the row is; only with Rows.Value
}

// Text says how a text is searched with a regular expression.
type Text struct {
	At      string            // CSS selector of the searched elements; their texts are joined by newlines; "" = the whole document
	Pattern string            // regular expression with the named groups buy, sell or both, and optionally label
	Labels  map[string]Target // by normalised text of the group label (see Rows)
	Unless  string            // matches of Pattern that also match this pattern are skipped
	Min     int               // minimum number of matches, at least 1; fewer are a failure
}

// Sheet identifies a sheet of a workbook. The sheet has one row for each day.
type Sheet struct {
	Name             string // name of the sheet, normalised like a label; "" = the first sheet
	Year, Month, Day string // headings of the columns with the date
}

// Date says where the effective date is, for which the quotes apply, and how it is written. If Form has a time, the
// date with this time is also the time of publication.
type Date struct {
	Locator
	Form     values.DateForm
	Optional bool // in a row: a row without this element has no date; otherwise such a row is skipped
}

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
	URL         string            // address of the final response
	ContentType string            // header Content-Type; "" = unknown, as for a file
	Body        []byte            // complete and decompressed
	Headers     map[string]string // of the response, as far as package fetch keeps them; nil = unknown
	FetchedAt   time.Time         // when the last byte was received
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

// HistoryDay has the quotes of one past day in a workbook.
type HistoryDay struct {
	Date         engine.Date
	Observations []engine.Observation
}
