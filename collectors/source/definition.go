package source

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/tasard/tasard/engine"
)

// Definition says everything about one source: whom it speaks for, how much it counts, which pages to ask for and how to
// read them. It is data: the built-in ones lie in definitions/, one file each; an operator's directory replaces or adds
// some (Set.Extend). A Definition is immutable once read.
type Definition struct {
	ID             string                  // of the source; what Rate.sourceId says
	Name           string                  // in Spanish, for people
	URL            string                  // the page that a person can open, a URI or ""
	Institution    string                  // whom the source speaks for; "" when each row names its own
	Priority       int64                   // lower wins (S11)
	UpstreamSource string                  // whom an aggregator is, "" for the institution's own word
	Kind           engine.Kind             // of all its quotes
	Channel        engine.Channel          // of its quotes, unless a label says another
	Expiry         Expiry                  // how long it is believed
	Bounds         []engine.PlausibleRange // what is believed, where the currency's own band does not fit
	Language       string                  // of its pages: es or en, for Accept-Language
	Decimal        DecimalMark             // how it writes fractions; "" = what the text itself makes certain
	DecimalsMax    int                     // more digits behind the mark are an error of reading, not a rate
	IgnoreRobots   bool                    // the operator's own decision: robots.txt does not count
	PlainHTTP      bool                    // its addresses may be http: whoever sits between can change what it says
	CAFile         string                  // PEM file of intermediates that the server forgets, "" = none
	Disabled       string                  // why it is not collected, "" = it is; its documents can still be read
	Note           string                  // what is known about it, for whoever mends it
	Pages          []Page                  // at least one; together they are one answer
}

// Expiry is how long a value is believed: the earlier of both ends (T3).
type Expiry struct {
	AfterCheck time.Duration // since the check; 26 h unless stated
	AfterDate  time.Duration // since the end of its effective date in Santo Domingo; 0 = no such end
}

// DecimalMark is how a source writes fractions.
type DecimalMark string

// The closed list of marks.
const (
	AnyMark DecimalMark = ""
	Point   DecimalMark = "point"
	Comma   DecimalMark = "comma"
)

// Page is one document of a source: how to get it, and how to read it.
type Page struct {
	Name        string    // among the pages of the source, "" when there is one
	Institution string    // whom its values are of, where the source speaks for several; "" = the source's
	Currency    string    // of all values that name none
	Requests    []Request // made in this order, in one session of cookies; the last answer is the document
	Extract     Extract
	// Fragment says that the document may be a piece of HTML: a missing </html> does not prove that it was cut off.
	Fragment bool
}

// Request is one step towards a document.
type Request struct {
	Method      string            // GET or POST
	URL         string            // absolute; "" with AddressFrom
	AddressFrom *AddressFrom      // reads the address from the answer before
	Headers     map[string]string // besides those that every request has
	Form        map[string]string // body, form-encoded; not nil but empty = an empty form
	JSON        string            // body, JSON text (GraphQL too)
}

// AddressFrom is where the answer before names the next address, which must be of the same site.
type AddressFrom struct {
	Selector  string // CSS
	Attribute string
}

// Method is one of the extractors.
type Method string

// The closed list of extractors.
const (
	HTMLFields Method = "html-fields" // one element for each side of each currency
	HTMLRows   Method = "html-rows"   // rows or cards, told apart by their label
	JSONFields Method = "json-fields" // one path for each side of each currency
	JSONRows   Method = "json-rows"   // an array of objects, told apart by a code
	TextRegex  Method = "text-regex"  // text with named groups
	XLSXRows   Method = "xlsx-rows"   // a sheet with a date in each row; BIFF8 too
)

// Extract says how a document is read. Which fields count depends on the method; the reader of definitions refuses others.
type Extract struct {
	Method Method
	Fields []Field  // html-fields, json-fields, xlsx-rows (At is the heading of the column)
	Rows   *Rows    // html-rows, json-rows
	Text   *Text    // text-regex
	Sheet  *Sheet   // xlsx-rows
	Date   *Date    // of the whole document; nil = it has none
	Expect []Expect // what must hold before anything is believed
}

// Side is which side a value is.
type Side string

// The closed list of sides. Both is for a source with one value a currency, which stands for either side.
const (
	BuySide   Side = "buy"
	SellSide  Side = "sell"
	BothSides Side = "both"
)

// Locator is where a text stands: in HTML a CSS selector, below the row if there is one, and the attribute to read, "" = the
// visible text; in JSON a path such as d.results[0].rate, from the row if there is one, where [] is the only entry of a list; in a
// table or sheet the heading of the column. Pattern cuts the text: its first group, or the whole match, counts. All its matches,
// and all elements of a selector, must say the same.
type Locator struct {
	At        string
	Attribute string
	Column    string
	Pattern   string
}

// Field is one side of one currency. Several fields of the same side and currency are tried in their order.
type Field struct {
	Currency string // "" = the page's
	Side     Side
	Channel  engine.Channel // "" = the source's
	From     engine.Date    // of a sheet: days before it are another currency's under the same heading; zero = none are
	Locator
}

// Rows are told apart by a label: never by their position.
type Rows struct {
	At        string // selector of the rows, or of the table's rows; path of the array
	Label     Locator
	Buy, Sell *Locator          // nil = the source has no such side
	Value     *Locator          // instead of Buy and Sell: one side, which the label's target names
	Labels    map[string]Target // by normalised label (Normalise); those of the definition's file for all pages are among them
	Ignore    []string          // labels that are known and mean no quote; normalised
	Unless    string            // HTML: a row in whose text this pattern is found says no rate of the definition
	Date      *Date             // of the row
	Min       int               // fewer rows with a known label are no answer (failure layout); at least 1
}

// Target is what a label means. "" takes over what the page or the source says.
type Target struct {
	Institution string
	Currency    string
	Channel     engine.Channel
	Side        Side // with Rows.Value
}

// Text is a pattern over a text.
type Text struct {
	At      string // CSS selector of what to search, texts of all matches joined by newlines; "" = the whole document
	Pattern string // named groups buy, sell, label (looked up in Labels), all but one side optional
	Labels  map[string]Target
	Unless  string // a match in whose text this pattern is found is none
	Min     int    // fewer matches are no answer; at least 1
}

// Sheet is a sheet with one row a day.
type Sheet struct {
	Name             string // normalised name; "" = the first sheet
	Year, Month, Day string // headings of the columns that make the date
}

// Date is where the effective date, or the moment of publication, stands and how it is written.
type Date struct {
	Locator
	Form DateForm
}

// DateForm is how a date is written.
type DateForm string

// The closed list of forms. Those with a time give the moment of publication too, in Santo Domingo unless a zone stands there.
const (
	ISODate      DateForm = "iso"              // 2026-09-17, also with T00:00:00Z, which is a day and no moment
	DayMonthYear DateForm = "dd/mm/yyyy"       // 17/09/2026, day and month with one digit too
	DayTime      DateForm = "dd/mm/yyyy hh:mm" // with an optional am/pm
	SpanishDate  DateForm = "spanish"          // 17 de septiembre de 2026, 17-sep-2026
	ISOInstant   DateForm = "rfc3339"          // 2026-09-17T12:30:00-04:00
)

// Expect is what must hold of a document: in JSON the value that stands at a path (status "OK"), in HTML a pattern that fits the text
// of every element that a selector finds, and of one at least (a title with the name of the currency).
type Expect struct {
	Path    string
	Value   string // as text; numbers and booleans as they are written
	At      string
	Pattern string
}

// Document is what one request brought, as bytes, with what is known about it.
type Document struct {
	URL         string    // where it came from in the end
	ContentType string    // of the header; "" = not known (a file)
	Body        []byte    // unpacked, complete
	FetchedAt   time.Time // when its last byte came
}

// Digest names the document: SHA-256 in hexadecimal digits.
func (d *Document) Digest() string {
	sum := sha256.Sum256(d.Body)
	return hex.EncodeToString(sum[:])
}

// Result is what one page says.
type Result struct {
	Observations []engine.Observation // of the newest day
	History      []HistoryDay         // days before that, oldest first (workbooks)
	Notes        []string             // what was left out, and why: labels that nobody knows, fields that are not there
}

// HistoryDay is what a page says of one day of the past.
type HistoryDay struct {
	Date         engine.Date
	Observations []engine.Observation
}
