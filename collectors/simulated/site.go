package simulated

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

const contentHTML = "text/html; charset=utf-8"

// Site serves the websites of all institutions over plain HTTP on loopback. A client must connect with Dial, which maps
// the real host names to the Site.
type Site struct {
	market      *Market
	definitions *source.Set
	routes      map[string][]*route // addresses that the site serves, by method and host

	mu     sync.Mutex
	faults map[string]Fault // by source id

	server   *http.Server
	address  string         // host:port of the server; "" before Start
	handling sync.WaitGroup // the goroutine that accepts connections, and requests in progress
	closing  chan struct{}
}

// route is an address of a site, with the function for its document.
type route struct {
	method, host, path string
	query              string // required name=value in the query; "" = any query
	render             func(*pageData) document
	apiPath            string   // address of the next request, as named in the page; "" = none
	sources            []string // ids of the sources with a document at this route
}

// document is a response before it is sent.
type document struct {
	contentType string
	body        []byte
	status      int // 0 = 200
}

// NewSite returns a site for a market, with the pages for the built-in source definitions. Before the market's first
// step the pages have no rates.
func NewSite(market *Market) *Site {
	s := &Site{
		market: market, definitions: source.DefaultSet(), routes: map[string][]*route{}, faults: map[string]Fault{}, closing: make(chan struct{}),
	}
	for _, r := range allRoutes() {
		key := r.method + " " + r.host
		s.routes[key] = append(s.routes[key], &r)
	}
	for _, d := range s.definitions.Definitions() {
		for page := range d.Pages {
			if r := s.documentRoute(d, page); r != nil {
				r.sources = append(r.sources, d.ID)
			}
		}
	}
	return s
}

// documentRoute returns the route of a page's document, or nil.
func (s *Site) documentRoute(d *source.Definition, page int) *route {
	requests := d.Pages[page].Requests
	last := requests[len(requests)-1]
	if last.AddressFrom == nil {
		return s.find(last.Method, last.URL)
	}
	start := s.find(http.MethodGet, requests[0].URL)
	if start == nil {
		return nil
	}
	return s.find(last.Method, "https://"+start.host+start.apiPath)
}

// find returns the route of a method and an address, or nil.
func (s *Site) find(method, address string) *route {
	location, err := url.Parse(address)
	if err != nil {
		return nil
	}
	path := cmp.Or(location.Path, "/")
	for _, r := range s.routes[cmp.Or(method, http.MethodGet)+" "+location.Hostname()] {
		name, value, _ := strings.Cut(r.query, "=")
		if r.path == path && (r.query == "" || location.Query().Get(name) == value) {
			return r
		}
	}
	return nil
}

// ServeHTTP answers for the host in the request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handling.Add(1)
	defer s.handling.Done()
	rt := s.find(r.Method, "http://"+r.Host+r.URL.RequestURI())
	if rt == nil {
		send(w, errorPage(http.StatusNotFound, "P&aacute;gina no encontrada"))
		return
	}
	fault := s.fault(rt.sources)
	if fault == Hang {
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
		panic(http.ErrAbortHandler) // returning would send an empty response
	}
	send(w, s.pageData(fault).document(rt))
}

func send(w http.ResponseWriter, d document) {
	w.Header().Set("Content-Type", d.contentType)
	w.WriteHeader(cmp.Or(d.status, http.StatusOK))
	_, _ = w.Write(d.body) // the client may be gone
}

// document renders a route's document, and applies a fault that changes or replaces documents.
func (v *pageData) document(rt *route) document { return v.fault.changeDocument(rt.render(v)) }

// Start starts the server on a free loopback port.
func (s *Site) Start() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the simulated site: %w", err)
	}
	s.address = listener.Addr().String()
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.handling.Go(func() { _ = s.server.Serve(listener) }) // after Close it returns ErrServerClosed
	return nil
}

// Close closes all connections and waits for the requests in progress. It must be called once.
func (s *Site) Close() error {
	close(s.closing)
	if s.server == nil {
		return nil
	}
	err := s.server.Close()
	s.handling.Wait()
	return errors.Join(err, s.server.Close()) // closes connections that were accepted during the first Close
}

// Dial connects every host name to the site.
func (s *Site) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if s.address == "" {
		return nil, fmt.Errorf("dial %s: the simulated site is not started", address)
	}
	return new(net.Dialer).DialContext(ctx, network, s.address)
}

// Document returns the site's document for a page of a source, with active faults, without the network. sourceID may
// have the prefix demo-. For an unknown page it returns nil.
func (s *Site) Document(sourceID string, page int) *source.Document {
	d, ok := s.definitions.Find(strings.TrimPrefix(sourceID, demoPrefix))
	if !ok || page < 0 || page >= len(d.Pages) {
		return nil
	}
	rt := s.documentRoute(d, page)
	if rt == nil {
		return nil
	}
	v, address := s.pageData(s.fault(rt.sources)), &url.URL{Scheme: "https", Host: rt.host, Path: rt.path}
	if requests := d.Pages[page].Requests; requests[len(requests)-1].URL != "" {
		address, _ = url.Parse(requests[len(requests)-1].URL) // the definition was checked
	}
	doc := v.document(rt)
	return &source.Document{URL: address.String(), ContentType: doc.contentType, Body: doc.body, FetchedAt: v.Now}
}

// pageData is the input for one response: the market at one time, and the response's fault.
type pageData struct {
	snapshot
	Now         time.Time // in Santo Domingo
	fault       Fault
	quotesShown []shownQuote // the quotes of snapshot, with faults of prices applied
}

// shownQuote is a quote on a page. A fault may make its sides any text.
type shownQuote struct {
	engine.Observation
	Name string // name of the institution; only in the lists of sites that copy rates
}

func (s *Site) pageData(fault Fault) *pageData {
	v := &pageData{snapshot: s.market.snapshot(), fault: fault}
	v.Now = v.time.In(engine.Location())
	for i, o := range v.quotes { // in the order of the market
		v.quotesShown = append(v.quotesShown, shownQuote{o, s.market.quotes[i].listed})
	}
	v.changePrices()
	return v
}

// Quotes returns the quotes of an institution in the order of quotesShown.
func (v *pageData) Quotes(institution string) []shownQuote {
	return slices.DeleteFunc(slices.Clone(v.quotesShown), func(q shownQuote) bool { return q.InstitutionID != institution })
}

// routeTable lists the addresses of the simulated site. Its columns: method, host, path, a required query parameter,
// the institution of the rates (empty: the list of a site that copies rates), the file in pages/ to render (and the
// currency of the list), and the path of the next request named in the page.
//
//go:embed routes.csv
var routeTable string

// allRoutes returns the addresses of the simulated site, with the functions for their documents.
func allRoutes() []route {
	rows, err := csv.NewReader(strings.NewReader(routeTable)).ReadAll()
	if err != nil {
		panic("simulated: the embedded table of addresses: " + err.Error()) // impossible: a test reads it
	}
	all := make([]route, len(rows)-1)
	for i, row := range rows[1:] {
		file, currency, _ := strings.Cut(row[5], " ")
		all[i] = route{row[0], row[1], row[2], row[3], func(v *pageData) document {
			quotes := v.Quotes(row[4])
			if row[4] == "" {
				quotes = v.listed(currency)
			}
			return renderPage(file, v, quotes, map[string]string{"currency": currency, "count": strconv.Itoa(len(quotes))})
		}, row[6], nil}
	}
	return all
}

// listed returns the quotes of one currency in the lists of sites that copy rates.
func (v *pageData) listed(currency string) []shownQuote {
	return slices.DeleteFunc(slices.Clone(v.quotesShown), func(q shownQuote) bool {
		return q.Currency != currency || q.Name == "" || q.Buy+q.Sell == ""
	})
}

// Fault is a defect of a website with rates, imitated by the simulated site. Real sites have most of them.
type Fault string

// Faults of prices and of documents.
const (
	Zeros         Fault = "zeros"          // every price is 0.00, as in a page before its script has filled it
	Swapped       Fault = "swapped"        // buy and sell are exchanged
	SameTwice     Fault = "same-twice"     // both sides show the sell price
	LostDecimal   Fault = "lost-decimal"   // 5890 instead of 58.90
	DecimalComma  Fault = "decimal-comma"  // 58,90 instead of 58.90
	WrongCurrency Fault = "wrong-currency" // each quote has the prices of another currency
	MissingSide   Fault = "missing-side"   // the sell side is missing
	Footnote      Fault = "footnote"       // a superscript 1 follows each price
	NotAvailable  Fault = "not-available"  // N/A instead of every price
	Reordered     Fault = "reordered"      // rows in reverse order, with the right labels

	Layout    Fault = "layout"     // classes, ids, keys and headings are renamed
	Challenge Fault = "challenge"  // challenge page of a bot protection, with status 200
	Forbidden Fault = "forbidden"  // challenge page of a bot protection, with status 403
	EmptyBody Fault = "empty"      // status 200 with an empty body
	Half      Fault = "half"       // page or workbook cut off in the middle
	ErrorPage Fault = "error-page" // HTML error page with status 200
	Hang      Fault = "hang"       // no response until the client gives up
)

const footnoteMark = "¹"

// Faults returns all faults.
func Faults() []Fault {
	return []Fault{
		Zeros, Swapped, SameTwice, LostDecimal, DecimalComma, WrongCurrency, MissingSide, Footnote, NotAvailable, Reordered,
		Layout, Challenge, Forbidden, EmptyBody, Half, ErrorPage, Hang,
	}
}

// SetFault sets the fault of a source's documents, until another SetFault. id may have the prefix demo-. The fault ""
// means no fault.
func (s *Site) SetFault(id string, fault Fault) error {
	id = strings.TrimPrefix(id, demoPrefix)
	if _, known := s.definitions.Find(id); !known {
		return fmt.Errorf("%q is not the id of a source", id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[id] = fault
	return nil
}

// fault returns the first fault of some sources.
func (s *Site) fault(sources []string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range sources {
		if fault := s.faults[id]; fault != "" {
			return fault
		}
	}
	return ""
}

// changePrices applies a fault of prices to v.quotesShown.
func (v *pageData) changePrices() {
	original := slices.Clone(v.quotesShown)
	for i := range v.quotesShown {
		q := &v.quotesShown[i]
		switch v.fault {
		case Swapped:
			q.Buy, q.Sell = q.Sell, q.Buy
		case SameTwice:
			q.Buy = q.Sell
		case MissingSide:
			q.Sell = ""
		case WrongCurrency:
			q.Buy, q.Sell = v.fault.price(q.Buy), v.fault.price(q.Sell)
			for _, other := range original {
				if other.InstitutionID == q.InstitutionID && other.Currency != q.Currency && other.Kind == q.Kind {
					q.Buy, q.Sell = other.Buy, other.Sell
					break
				}
			}
		default:
			q.Buy, q.Sell = v.fault.price(q.Buy), v.fault.price(q.Sell)
		}
	}
	if v.fault == Reordered {
		slices.Reverse(v.quotesShown)
	}
}

// price applies a fault to the text of a price. A missing price ("") stays missing.
func (f Fault) price(text string) string {
	if text == "" {
		return ""
	}
	switch f {
	case Zeros:
		return "0.00"
	case LostDecimal:
		return strings.Replace(text, ".", "", 1)
	case DecimalComma:
		return strings.Replace(text, ".", ",", 1)
	case Footnote:
		return text + footnoteMark
	case NotAvailable:
		return "N/A"
	case WrongCurrency: // near the price of a Canadian dollar
		_, decimals, _ := strings.Cut(text, ".")
		return "41." + decimals
	default:
		return text
	}
}

// changeDocument applies a fault that changes or replaces documents.
func (f Fault) changeDocument(d document) document {
	isHTML := strings.HasPrefix(d.contentType, "text/html")
	switch f {
	case Layout:
		d.body = redesigned(d)
	case Challenge:
		d = document{contentType: contentHTML, body: []byte(challengePage)}
	case Forbidden:
		d = document{contentType: contentHTML, body: []byte(challengePage), status: http.StatusForbidden}
	case ErrorPage:
		d = errorPage(0, "Ha ocurrido un error inesperado")
	case EmptyBody:
		d.body = []byte{}
	case Half:
		d.body = d.body[:len(d.body)/2]
	case Footnote:
		if isHTML {
			d.body = regexp.MustCompile(footnoteMark+`(\s*<)`).ReplaceAll(d.body, []byte("<sup>1</sup>$1"))
		}
		d.body = bytes.ReplaceAll(d.body, []byte(footnoteMark), []byte(" 1"))
	}
	return d
}

// redesigned renames classes, ids, keys and headings, like a redesign of the page. A workbook stays as it is.
func redesigned(d document) []byte {
	type change struct{ from, to string }
	changes := []change{{`"([A-Za-z_]\w*)"\s*:`, `"${1}V2":`}}
	switch {
	case strings.HasPrefix(d.contentType, "text/html"):
		changes = []change{
			{`(class|id)="`, `$1="nuevo-`}, {`(class="[^" ]*) ([^"]*")`, `$1 nuevo-$2`}, {`\bdata-`, `data-nuevo-`},
			{`(?i)compra(mos)?\b`, `Recibimos`}, {`(?i)(venta|vendemos)\b`, `Entregamos`},
		}
	case strings.HasPrefix(d.contentType, "text/plain"):
		changes = []change{{`^`, `v2;`}}
	case d.contentType == contentWorkbook:
		return d.body
	}
	body := slices.Clone(d.body)
	for _, c := range changes {
		body = regexp.MustCompile(c.from).ReplaceAll(body, []byte(c.to))
	}
	return body
}

const challengePage = `<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW">
<script type="text/javascript" src="/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3"></script></head>
<body style="margin:0px;height:100%"><iframe id="main-iframe" src="/_Incapsula_Resource?CWUDNSAI=9&xinfo=8-58901234-0" frameborder=0>
Request unsuccessful. Incapsula incident ID: 1183000580060240-58901234567890123</iframe></body></html>
`
