package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Definition describes one source: its institution, its priority, its pages and how to read them. It is immutable.
type Definition struct {
	ID             string                  `json:"id"`             // id of the source, as in the field sourceId of the API
	Name           string                  `json:"name"`           // in Spanish, for people
	URL            string                  `json:"url"`            // web page for people, or ""
	Institution    string                  `json:"institution"`    // institution of the rates; "" = each row names its own
	Priority       int64                   `json:"priority"`       // if several sources have the same rate, the lowest number wins
	UpstreamSource string                  `json:"upstreamSource"` // name of the site that copies rates; "" = the source is the institution
	Kind           engine.Kind             `json:"kind"`           // kind of all its quotes, such as engine.Reference
	Channel        engine.Channel          `json:"channel"`        // channel of its quotes; a Field or Target may name another
	Expiry         Expiry                  `json:"-"`              // how long its quotes are valid
	Bounds         []engine.PlausibleRange `json:"-"`              // plausible prices of its currencies, instead of the general ones
	Decimal        values.DecimalMark      `json:"decimal"`        // decimal mark of its prices
	DecimalsMax    int                     `json:"decimalsMax"`    // a price with more decimals is an error
	IgnoreRobots   bool                    `json:"ignoreRobots"`   // ignore robots.txt; only an operator may decide this
	CAFile         string                  `json:"caFile"`         // PEM file of certificates that the server omits; "" = none
	Proxy          string                  `json:"proxy"`          // address of an HTTP or SOCKS5 proxy for its requests; "" = none
	Secret         *Secret                 `json:"secret"`         // API key of the operator that its requests carry; nil = none
	OAuth2         *OAuth2                 `json:"oauth2"`         // how its requests get a token; nil = no token
	Disabled       string                  `json:"disabled"`       // reason why the source is not fetched (Parse works anyway); "" = it is fetched
	Evidence       Evidence                `json:"evidence"`       // which programs have read the site in this form, and when
	Note           string                  `json:"note"`           // advice for people, about repairs of the definition
	Pages          []Page                  `json:"pages"`          // at least one
}

// Expiry says how long a quote is valid. The quote expires at the earlier of the two times.
type Expiry struct {
	AfterCheck time.Duration // time after the last check of the source; 26 h by default
	AfterDate  time.Duration // time after the end of the quote's effective date in Santo Domingo; 0 = no limit, for a source without dates
}

// Evidence names the programs that have read a site as its definition does, and says when. It is for people.
type Evidence struct {
	Grade  Grade  `json:"grade"`  // "" = unknown, in a definition of the operator
	Seen   string `json:"seen"`   // when the site last had this shape: a day, a month or a year, as 2026-09-17, 2026-09 or 2026
	By     string `json:"by"`     // public programs, with their files and dates
	Sample string `json:"sample"` // the real answer that the definition parses, and where it is; "" = none is known
}

// Grade tells how well a definition is known to fit the site.
type Grade string

// The grades. A source whose definition is Old is disabled unless the operator enables it.
const (
	Confirmed Grade = "confirmed" // a stored real answer of the last 12 months parses
	Reported  Grade = "reported"  // public programs agree on shape and selectors, and one of them is newer than 2024
	Old       Grade = "old"       // no program is known to have read it since 2024
)

// OldReason returns the reason why a source with old evidence is disabled, or "". It is the default of
// Definition.Disabled.
func (e *Evidence) OldReason() string {
	if e.Grade != Old {
		return ""
	}
	return "Old: last seen " + e.Seen + `. A file with this id and "disabled": "" enables it.`
}

// Secret says how requests carry an API key of the operator. The key is in a file, never in a definition.
type Secret struct {
	Name   string `json:"name"`   // of the key; lower case letters, digits and hyphens
	Header string `json:"header"` // name of the request header for the key
	Scheme string `json:"scheme"` // word before the key, such as Bearer; "" = none
}

// OAuth2 says how to get a token for the requests, with the client-credentials grant (RFC 6749, section 4.4). The
// client and its secret are sent only to URL, the token only to the addresses of the pages.
type OAuth2 struct {
	URL            string `json:"url"`            // address of the token endpoint
	ClientID       string `json:"clientId"`       // name of the secret with the client id
	ClientSecret   string `json:"clientSecret"`   // name of the secret with the client secret
	Scope          string `json:"scope"`          // "" = none
	ClientIDHeader string `json:"clientIdHeader"` // request header that repeats the client id; "" = none
}

// SecretNames returns the names of the secrets without which the source can't be fetched.
func (d *Definition) SecretNames() []string {
	switch {
	case d.Secret != nil:
		return []string{d.Secret.Name}
	case d.OAuth2 != nil:
		return []string{d.OAuth2.ClientID, d.OAuth2.ClientSecret}
	}
	return nil
}

// isDated reports whether a page of the definition gives its rates a date.
func (d *Definition) isDated() bool {
	return slices.ContainsFunc(d.Pages, func(p Page) bool {
		e := p.Extract
		return e.Date != nil || e.Sheet != nil || e.Rows != nil && e.Rows.Date != nil
	})
}

// Page says how to get one document of a source and how to read it.
type Page struct {
	Name        string    `json:"name"`        // unique within the source; may be "" if the source has only one page
	InsteadOf   string    `json:"insteadOf"`   // name of an earlier page; this page is read only if that one can't be read
	Institution string    `json:"institution"` // institution of its quotes; "" = Definition.Institution
	Currency    string    `json:"currency"`    // currency of every Field and Target that names none
	Requests    []Request `json:"requests"`    // sent in this order, with shared cookies; the last response is the document
	Extract     Extract   `json:"extract"`
}

// Request is one HTTP request of a page.
type Request struct {
	Method      string            `json:"method"`      // GET or POST
	URL         string            `json:"url"`         // absolute address; "" if AddressFrom is given
	AddressFrom *AddressFrom      `json:"addressFrom"` // where the address is; nil if URL is given
	Headers     map[string]string `json:"headers"`     // added to the headers of every request
	Form        map[string]string `json:"form"`        // form-encoded body; nil = no form
	JSON        JSONText          `json:"json"`        // JSON body, also for GraphQL; "" = none
}

// JSONText is a compact JSON value.
type JSONText string

// AddressFrom takes the address of a request from the previous response: from an attribute of an HTML element. The
// address must be on the same site.
type AddressFrom struct {
	Selector  string `json:"selector"` // CSS selector of the element
	Attribute string `json:"attribute"`
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
	XLSXRows   Method = "xlsx-rows"   // sheet of an XLSX workbook with a date in each row
)

// Extract says how a document is read. A definition file must not contain members that its method does not use.
type Extract struct {
	Method Method   `json:"method"`
	Fields []Field  `json:"fields,omitempty"` // for html-fields, json-fields, xlsx-rows
	Rows   *Rows    `json:"rows,omitempty"`   // for html-rows, json-rows
	Text   *Text    `json:"text,omitempty"`   // for text-regex
	Sheet  *Sheet   `json:"sheet,omitempty"`  // for xlsx-rows
	Date   *Date    `json:"date,omitempty"`   // HTML, JSON: where the date of the whole document is; nil = it has none
	Expect []Expect `json:"expect,omitempty"` // conditions that a valid document meets
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
	At        string `json:"at,omitempty"`        // HTML: a CSS selector; JSON: a path such as d.results[0].rate; workbook: a column heading
	Attribute string `json:"attribute,omitempty"` // HTML: the attribute to read; "" = the visible text
	Column    string `json:"column,omitempty"`    // HTML: the heading of a table column
	Pattern   string `json:"pattern,omitempty"`   // regular expression that selects a part of the text: its first group, or the whole match
}

// Field says where one price (buy, sell or both) of one currency is. If there are several fields for the same price,
// they are tried in order.
type Field struct {
	Currency string         `json:"currency,omitempty"` // "" = Page.Currency
	Side     Side           `json:"side"`
	Channel  engine.Channel `json:"channel,omitempty"` // "" = Definition.Channel
	From     Day            `json:"from,omitzero"`     // workbook: first day on which the column has this currency; zero = all days
	Locator
}

// Day is a date in a definition file.
type Day engine.Date

// Rows says where the rows of a document are and how each is read. A row is identified by its label, such as the name
// of a bank, and not by its position. Labels are normalised: no capitals, no accents, single spaces
// (values.NormaliseLabel).
type Rows struct {
	At     string   `json:"at,omitempty"` // HTML: CSS selector of the rows; JSON: path of the array
	Label  Locator  `json:"label"`
	Buy    *Locator `json:"buy,omitempty"` // nil = the source does not publish this side
	Sell   *Locator `json:"sell,omitempty"`
	Value  *Locator `json:"value,omitempty"`  // instead of Buy and Sell: the price of the side that the label names
	Labels Labels   `json:"labels"`           // including the labels for all pages of the file
	Ignore []string `json:"ignore,omitempty"` // normalised labels of rows without a quote
	Unless string   `json:"unless,omitempty"` // HTML: "other-rates" skips rows with a word for another rate (values.OtherRate)
	Date   *Date    `json:"date,omitempty"`   // where the date of the row is; nil = it has none
	Min    int      `json:"min,omitempty"`    // minimum number of rows with a known label, at least 1; fewer are a failure
}

// Target says which quote a label stands for. An empty member means the value of the page or the source.
type Target struct {
	Institution string         `json:"institution,omitempty"`
	Currency    string         `json:"currency,omitempty"`
	Channel     engine.Channel `json:"channel,omitempty"`
	Side        Side           `json:"side,omitempty"` // which side the price in the row is; only with Rows.Value
}

// Text says how a text is searched with a regular expression.
type Text struct {
	At      string `json:"at,omitempty"`     // CSS selector of the searched elements; their texts are joined by newlines; "" = the whole document
	Pattern string `json:"pattern"`          // regular expression with named groups: buy or sell or both of them, and optionally label
	Labels  Labels `json:"labels"`           // of the group label (see Rows)
	Unless  string `json:"unless,omitempty"` // as in Rows
}

// Sheet identifies a sheet of a workbook. The sheet has one row for each day.
type Sheet struct {
	Name  string `json:"name,omitempty"` // name of the sheet, normalised like a label; "" = the first sheet
	Year  string `json:"year"`           // headings of the columns with the date
	Month string `json:"month"`
	Day   string `json:"day"`
}

// Date says where the effective date of the quotes is, and how it is written. If Form includes a time, date and time
// are also the time of publication.
type Date struct {
	Locator
	Or       string          `json:"or,omitempty"` // JSON: path that is tried if there is nothing at Locator.At
	Form     values.DateForm `json:"form"`
	Optional bool            `json:"optional,omitempty"` // true = the date may be missing; false = a row without it is skipped, a document without it fails
}

// Expect is a condition that a valid document meets. In JSON, the value at Path must be Value, for example "OK". In
// HTML, the selector At must match an element, and the text of each matched element must match Pattern.
type Expect struct {
	Path    string `json:"path"`
	Value   string `json:"value"` // numbers and booleans as the document writes them
	At      string `json:"at"`
	Pattern string `json:"pattern"`
}

// Document is a document from a server or a file.
type Document struct {
	URL         string    // address of the final response
	ContentType string    // header Content-Type; "" = unknown, as for a file
	Body        []byte    // complete and decompressed
	FetchedAt   time.Time // when the last byte was received
}

// Digest returns the SHA-256 of the body in hexadecimal digits.
func (d *Document) Digest() string {
	sum := sha256.Sum256(d.Body)
	return hex.EncodeToString(sum[:])
}

// Result contains the quotes of one document.
type Result struct {
	Observations []engine.Observation // quotes of the newest day
	History      []HistoryDay         // earlier days of a workbook, oldest first
	Notes        []string             // the skipped parts and why, such as unknown labels and missing fields
}

// HistoryDay contains the quotes of one past day in a workbook.
type HistoryDay struct {
	Date         engine.Date
	Observations []engine.Observation
}

// FailureKind classifies failures.
type FailureKind string

// The kinds of failures.
const (
	Network      FailureKind = "network" // no connection, or a lost connection
	Timeout      FailureKind = "timeout"
	TLS          FailureKind = "tls"           // the certificate of the server can't be verified, or TLS failed otherwise
	HTTPStatus   FailureKind = "http_status"   // the status is not 200
	Blocked      FailureKind = "blocked"       // a bot protection or robots.txt forbids the request, or a secret is missing or refused
	WrongContent FailureKind = "wrong_content" // not the expected kind of document, or damaged, or too large
	Empty        FailureKind = "empty"         // a valid document without prices
	Layout       FailureKind = "layout"        // prices are not where the source definition says
	Value        FailureKind = "value"         // the texts where prices should be are not prices
	Implausible  FailureKind = "implausible"   // the engine rejected all quotes as implausible
	Internal     FailureKind = "internal"      // a fault of this program, such as a panic or a log that can't be written
)

// Failure is the reason why a source could not be read.
type Failure struct {
	Kind   FailureKind
	Page   string // name of the page; "" = the only one
	Status int    // HTTP status of the response; 0 = none
	Detail string // what was expected, what was found, and where
	Cause  error
}

func (f *Failure) Error() string {
	page := ""
	if f.Page != "" {
		page = f.Page + ": "
	}
	return fmt.Sprintf("%s: %s%s", f.Kind, page, f.Detail)
}

func (f *Failure) Unwrap() error { return f.Cause }

// Failf returns a failure with a formatted detail.
func Failf(kind FailureKind, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}
