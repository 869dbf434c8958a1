package data

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// Config configures the files. All fields but PublicURL are required.
type Config struct {
	Service   engine.Service
	Catalogue *engine.Catalogue
	Clock     func() time.Time
	Logger    *slog.Logger
	PublicURL string // origin of the site, such as https://tasas.example.do; links in feeds begin with it

	// Admit counts a request for its client. At the client's limit it returns false, and how long to wait.
	Admit func(*http.Request) (wait time.Duration, ok bool)

	bodies *rendered.Cache[string, *rendered.Body] // by file name
}

// How long a file is served before it is generated again (…Kept), and the Cache-Control headers (…Cache).
const (
	latestKept        = time.Second
	latestCache       = "public, max-age=60"
	historyKept       = time.Minute
	pastYearKept      = time.Hour // imports and corrections change past years
	historyCache      = "public, max-age=300"
	firstYear         = 1990 // the central bank publishes no older dollar rates
	typeCSV           = "text/csv; charset=utf-8"
	typeJSON          = "application/json"
	queryItemPagesMax = 500 // maximum number of result pages for one query, far more than a day has

	// Limits of the file cache. There are few files: one for each currency, institution and year.
	filesMax = 1024
	bytesMax = 64 << 20 // not compressed
)

// Register adds the files to a mux.
func Register(mux *http.ServeMux, c Config) {
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	c.bodies = rendered.NewCache[string, *rendered.Body](filesMax, bytesMax)
	mux.Handle("/data/latest.json", c.file("latest.json", typeJSON, latestCache, latestKept, c.latestJSON))
	mux.Handle("/data/latest.csv", c.file("latest.csv", typeCSV, latestCache, latestKept, c.latestCSV))
	mux.Handle("/data/history.csv", c.file("history.csv", typeCSV, historyCache, historyKept, c.recentHistory))
	mux.Handle("/data/history/{name}", c.named(c.year))
	mux.Handle("/feeds/{name}", c.named(c.feed))
}

// year returns the handler of a file such as 2025.csv, or nil.
func (c *Config) year(name string) http.Handler {
	number, isCSV := strings.CutSuffix(name, ".csv")
	year, err := strconv.Atoi(number)
	thisYear := c.Clock().In(engine.Location()).Year()
	if !isCSV || err != nil || number != strconv.Itoa(year) || year < firstYear || year > thisYear {
		return nil
	}
	kept := pastYearKept
	if year == thisYear {
		kept = historyKept
	}
	return c.file(name, typeCSV, historyCache, kept, func() ([]byte, error) { return c.yearHistory(year) })
}

// named returns a handler for the files of a folder. find returns the handler of a file, or nil for an unknown name.
func (c *Config) named(find func(name string) http.Handler) http.Handler {
	notFound := &rendered.File{MediaType: typeJSON, CacheControl: latestCache, Admit: c.Admit, Content: func() (*rendered.Body, error) {
		return nil, &engine.Error{Code: engine.CodeNotFound, Message: "There is no such file; /docs lists the files."}
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler := find(r.PathValue("name")); handler != nil {
			handler.ServeHTTP(w, r)
			return
		}
		notFound.ServeHTTP(w, r)
	})
}

// file returns the handler of a generated file. build generates the content, and is called again when the content is
// older than kept. name is the key in the cache.
func (c *Config) file(name, mediaType, cacheControl string, kept time.Duration, build func() ([]byte, error)) *rendered.File {
	return &rendered.File{MediaType: mediaType, CacheControl: cacheControl, Admit: c.Admit, Content: func() (*rendered.Body, error) {
		now := c.Clock()
		return c.bodies.Get(name, now, func(last *rendered.Body) (rendered.Kept[*rendered.Body], error) {
			text, err := build()
			if err != nil && engine.CodeOf(err) == "" {
				c.Logger.Error("a file of rates could not be made", "file", name, "cause", err)
			}
			if err != nil {
				return rendered.Kept[*rendered.Body]{}, err
			}
			body := last
			if last == nil || !bytes.Equal(last.Plain(), text) { // the same text is not compressed again
				body = rendered.Undated(text)
			}
			return rendered.Kept[*rendered.Body]{Value: body, Until: now.Add(kept), Bytes: len(text)}, nil
		})
	}}
}

// rates returns the published rates selected by a filter.
func (c *Config) rates(filter engine.Filter) ([]*engine.Rate, error) {
	return engine.AllItems(queryItemPagesMax, func(page engine.PageRequest) (*engine.Page[*engine.Rate], error) {
		return c.Service.Rates(engine.RatesQuery{Filter: filter, PageRequest: page})
	})
}

// latestJSON returns all published rates, each as in /v1/rates.
func (c *Config) latestJSON() ([]byte, error) {
	rates, err := c.rates(engine.Filter{})
	if err != nil {
		return nil, err
	}
	body := append(encode.Name([]byte{'{'}, "data"), '[')
	var checkedAt time.Time
	for _, rate := range rates {
		body = encode.Rate(encode.Comma(body), rate)
		if rate.LastCheckedAt.After(checkedAt) {
			checkedAt = rate.LastCheckedAt
		}
	}
	body = append(encode.Name(append(body, ']'), "meta"), '{')
	body = encode.Int(body, "total", int64(len(rates)))
	body = encode.Time(body, "lastCheckedAt", checkedAt)
	body = encode.Field(body, "quoteCurrency", engine.QuoteCurrency)
	return append(body, "}}\n"...), nil
}

// latestCSV returns all published rates, one in each row.
func (c *Config) latestCSV() ([]byte, error) {
	rates, err := c.rates(engine.Filter{})
	if err != nil {
		return nil, err
	}
	rows := [][]string{{
		"institutionId", "institutionName", "institutionType", "currency", "channel", "kind", "buy", "sell", "effectiveDate", "publishedAt",
		"collectedAt", "lastCheckedAt", "expiresAt", "stale", "manual", "sourceId", "sourceName", "sourceUrl", "upstreamSource",
	}}
	for _, r := range rates {
		rows = append(rows, []string{
			r.InstitutionID, r.InstitutionName, string(r.InstitutionType), r.Currency, string(r.Channel), string(r.Kind), r.Buy.String(), r.Sell.String(),
			r.EffectiveDate.String(), timeText(r.PublishedAt), timeText(r.CollectedAt), timeText(r.LastCheckedAt), timeText(r.ExpiresAt),
			strconv.FormatBool(r.Stale), strconv.FormatBool(r.Manual), r.SourceID, r.SourceName, r.SourceURL, r.UpstreamSource,
		})
	}
	return csvOf(rows)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// csvOf encodes rows as CSV (RFC 4180).
func csvOf(rows [][]string) ([]byte, error) {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	w.UseCRLF = true
	for _, row := range rows {
		for i := range row {
			row[i] = cell(row[i])
		}
		if err := w.Write(row); err != nil {
			return nil, fmt.Errorf("write CSV: %w", err)
		}
	}
	w.Flush()
	return text.Bytes(), nil
}

// cell puts an apostrophe before a text that a spreadsheet would take for a formula. Rates do not change, because rates
// are never negative.
func cell(text string) string {
	if text != "" && strings.IndexByte("=+-@\t\r\n", text[0]) >= 0 {
		return "'" + text
	}
	return text
}

// recentHistory returns the maximum range of /v1/rates/history, up to and including today.
func (c *Config) recentHistory() ([]byte, error) {
	today := engine.DateOf(c.Clock())
	return c.history(today.AddDays(-engine.HistoryRangeDaysMax), today)
}

func (c *Config) yearHistory(year int) ([]byte, error) {
	noon := func(month time.Month, day int) engine.Date {
		return engine.DateOf(time.Date(year, month, day, 12, 0, 0, 0, engine.Location()))
	}
	return c.history(noon(time.January, 1), noon(time.December, 31))
}

// history returns the history from one date to another as CSV, oldest first, with the fields of /v1/rates/history. It
// queries each day separately, because one large query would block the actor of a currency for long.
func (c *Config) history(from, to engine.Date) ([]byte, error) {
	rows := [][]string{{"date", "institutionId", "currency", "channel", "kind", "buy", "sell", "sourceId", "datePrecision"}}
	for date := from; date <= to; date++ {
		entries, err := engine.AllItems(queryItemPagesMax, func(page engine.PageRequest) (*engine.Page[engine.HistoryEntry], error) {
			return c.Service.History(engine.HistoryQuery{PageRequest: page, From: date, To: date})
		})
		if err != nil {
			return nil, err
		}
		day := date.String()
		for i := range entries {
			h := &entries[i]
			rows = append(rows, []string{
				day, h.InstitutionID, h.Currency, string(h.Channel), string(h.Kind), h.Buy.String(), h.Sell.String(), h.SourceID, string(h.DatePrecision),
			})
		}
	}
	return csvOf(rows)
}

const (
	typeAtom       = "application/atom+xml; charset=utf-8"
	feedEntriesMax = 200
)

// feed is an Atom or JSON feed with the newest change of each rate that filter selects.
type feed struct {
	config *Config
	filter engine.Filter
	path   string
	title  string
	page   string // path of the web page with the rates
}

// feed returns the handler of a feed, or nil if the name is neither an active institution nor a currency. An
// institution takes precedence over a currency.
func (c *Config) feed(file string) http.Handler {
	name, isAtom := strings.CutSuffix(file, ".atom")
	f := &feed{config: c, path: "/feeds/" + file}
	currency, isCurrency := c.Catalogue.Currency(strings.ToUpper(name))
	switch institution, ok := c.Catalogue.Institution(name); {
	case !isAtom:
		return nil
	case ok && institution.Active:
		f.filter.Institution, f.title, f.page = institution.ID, institution.Name, institutionPage(institution.ID)
	case isCurrency && name == strings.ToLower(name):
		f.filter.Currency, f.title, f.page = currency.Code, currency.Code, "/?currency="+url.QueryEscape(currency.Code)
	default:
		return nil
	}
	return c.file(file, typeAtom, latestCache, latestKept, f.atom)
}

func institutionPage(id string) string { return "/institutions/" + url.PathEscape(id) }

// newest returns the rates of the feed, the newest change first.
func (f *feed) newest() ([]*engine.Rate, error) {
	rates, err := f.config.rates(f.filter)
	slices.SortStableFunc(rates, func(a, b *engine.Rate) int {
		return cmp.Or(b.CollectedAt.Compare(a.CollectedAt), cmp.Compare(a.ID, b.ID))
	})
	return rates[:min(len(rates), feedEntriesMax)], err
}

// idOf returns an IRI that identifies a feed or an entry for ever. It does not contain the site's URL, because an id
// must not change when the site moves (RFC 4287, section 4.2.6).
func idOf(path string) string { return "urn:tasard:" + strings.TrimPrefix(path, "/") }

// entryTitle returns the title of an entry: USD · Banco Colón (digital): compra 58.30, venta 59.30.
func entryTitle(rate *engine.Rate) string {
	channels := map[engine.Channel]string{
		engine.Digital: "digital", engine.Branch: "sucursal", engine.Cash: "efectivo", engine.Transfer: "transferencia",
	}
	var tags []string
	if channel := channels[rate.Channel]; channel != "" {
		tags = append(tags, channel)
	}
	if rate.Kind == engine.Reference {
		tags = append(tags, "tasa de referencia")
	}
	title := rate.Currency + " · " + rate.InstitutionName
	if len(tags) > 0 {
		title += " (" + strings.Join(tags, ", ") + ")"
	}
	return title + ": " + sidesOf(rate, "")
}

// sidesOf returns the sides of a rate, each as "compra" or "venta", price and unit.
func sidesOf(rate *engine.Rate, unit string) string {
	var sides []string
	if !rate.Buy.IsNull() {
		sides = append(sides, "compra "+rate.Buy.String()+unit)
	}
	if !rate.Sell.IsNull() {
		sides = append(sides, "venta "+rate.Sell.String()+unit)
	}
	return strings.Join(sides, ", ")
}

// entryText returns the text of an entry: prices, the source, and the dates that the source has published.
func entryText(rate *engine.Rate) string {
	source := rate.SourceName
	switch {
	case rate.Manual:
		source = "registrada a mano por el operador"
	case !strings.Contains(source, rate.UpstreamSource):
		source += " (vía " + rate.UpstreamSource + ")"
	}
	text := sidesOf(rate, " "+engine.QuoteCurrency) + ". Fuente: " + source + "."
	if !rate.EffectiveDate.IsZero() {
		text += " Fecha de la tasa: " + rate.EffectiveDate.String() + "."
	}
	if !rate.PublishedAt.IsZero() {
		text += " Publicada: " + timeText(rate.PublishedAt) + "."
	}
	return text
}

// atom returns the feed as Atom (RFC 4287). An entry's id contains the time of the change, so that a feed reader shows
// each change as a new entry.
func (f *feed) atom() ([]byte, error) {
	rates, err := f.newest()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	element := func(indent, name, text, attributes string) {
		out.WriteString(indent + "<" + name + attributes + ">")
		_ = xml.EscapeText(&out, []byte(text)) // bytes.Buffer returns no errors
		out.WriteString("</" + name + ">\n")
	}
	link := func(indent, relation, mediaType, address string) {
		out.WriteString(indent + `<link rel="` + relation + `" type="` + mediaType + `" href="`)
		_ = xml.EscapeText(&out, []byte(address))
		out.WriteString("\"/>\n")
	}
	updated := time.Unix(0, 0) // no rate has been published yet
	if len(rates) > 0 {
		updated = rates[0].CollectedAt
	}
	out.WriteString(xml.Header + `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="es">` + "\n")
	element(" ", "id", idOf(f.path), "")
	element(" ", "title", "Cambios de tasas: "+f.title, "") // feeds are in Spanish, the institutions' language
	element(" ", "updated", timeText(updated), "")
	link(" ", "self", "application/atom+xml", f.config.PublicURL+f.path)
	link(" ", "alternate", "text/html", f.config.PublicURL+f.page)
	out.WriteString(" <author><name>tasard</name></author>\n")
	for _, rate := range rates {
		out.WriteString(" <entry>\n")
		element("  ", "id", idOf("/changes/"+rate.ID+"/"+timeText(rate.CollectedAt)), "")
		element("  ", "title", entryTitle(rate), "")
		element("  ", "updated", timeText(rate.CollectedAt), "")
		link("  ", "alternate", "text/html", f.config.PublicURL+institutionPage(rate.InstitutionID))
		element("  ", "content", entryText(rate), ` type="text"`)
		out.WriteString(" </entry>\n")
	}
	out.WriteString("</feed>\n")
	return out.Bytes(), nil
}
