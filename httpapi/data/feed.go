package data

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
)

const (
	typeAtom       = "application/atom+xml; charset=utf-8"
	typeJSONFeed   = "application/feed+json"
	feedEntriesMax = 200
)

// Texts of feeds. Feeds are in Spanish, the institutions' language.
const (
	feedLanguage  = "es"
	feedTitleText = "Cambios de tasas: "
)

// feed is a feed: the newest change of each rate selected by filter.
type feed struct {
	config *Config
	filter engine.Filter
	path   string // without the suffix
	title  string
	page   string // path of the page with the rates
}

// entry is the newest change of a rate: its present value.
type entry struct {
	id, title, text, page string
	rate                  *engine.Rate
}

// feed returns the handler of a feed, or nil if the name is neither an active institution nor a currency. An
// institution takes precedence over a currency.
func (c *Config) feed(file string) http.Handler {
	name, format, _ := strings.Cut(file, ".")
	f := &feed{config: c, path: "/feeds/" + name}
	currency, isCurrency := c.Catalogue.Currency(strings.ToUpper(name))
	switch institution, ok := c.Catalogue.Institution(name); {
	case ok && institution.Active:
		f.filter.Institution, f.title, f.page = institution.ID, institution.Name, institutionPage(institution.ID)
	case isCurrency && name == strings.ToLower(name):
		f.filter.Currency, f.title, f.page = currency.Code, currency.Code, "/?currency="+url.QueryEscape(currency.Code)
	default:
		return nil
	}
	switch format {
	case "atom":
		return c.file(file, typeAtom, latestCache, latestKept, f.atom)
	case "json":
		return c.file(file, typeJSONFeed, latestCache, latestKept, f.json)
	}
	return nil
}

func institutionPage(id string) string { return "/institutions/" + url.PathEscape(id) }

// entries returns the entries of the feed, newest first. An entry's id contains the time of the change, so that a feed
// reader shows each change as a new entry.
func (f *feed) entries() ([]entry, error) {
	rates, err := f.config.rates(f.filter)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rates, func(a, b *engine.Rate) int {
		return cmp.Or(b.CollectedAt.Compare(a.CollectedAt), cmp.Compare(a.ID, b.ID))
	})
	var entries []entry
	for _, rate := range rates[:min(len(rates), feedEntriesMax)] {
		entries = append(entries, entry{
			id: idOf("/changes/" + rate.ID + "/" + timeText(rate.CollectedAt)), title: entryTitle(rate), text: entryText(rate),
			page: f.config.PublicURL + institutionPage(rate.InstitutionID), rate: rate,
		})
	}
	return entries, nil
}

// idOf returns an IRI that identifies a feed or an entry for ever. It does not contain the site's address, because an
// id must not change when the site moves (RFC 4287, section 4.2.6).
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

// sidesOf returns the rate's sides, each with its price and a unit.
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

// entryText returns the text of an entry: prices with unit, source, and the source's dates.
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

// atom returns the feed as Atom (RFC 4287).
func (f *feed) atom() ([]byte, error) {
	entries, err := f.entries()
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
	if len(entries) > 0 {
		updated = entries[0].rate.CollectedAt
	}
	out.WriteString(xml.Header + `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="` + feedLanguage + "\">\n")
	element(" ", "id", idOf(f.path+".atom"), "")
	element(" ", "title", feedTitleText+f.title, "")
	element(" ", "updated", timeText(updated), "")
	link(" ", "self", "application/atom+xml", f.config.PublicURL+f.path+".atom")
	link(" ", "alternate", "text/html", f.config.PublicURL+f.page)
	out.WriteString(" <author><name>tasard</name></author>\n")
	for _, e := range entries {
		out.WriteString(" <entry>\n")
		element("  ", "id", e.id, "")
		element("  ", "title", e.title, "")
		element("  ", "updated", timeText(e.rate.CollectedAt), "")
		link("  ", "alternate", "text/html", e.page)
		element("  ", "content", e.text, ` type="text"`)
		out.WriteString(" </entry>\n")
	}
	out.WriteString("</feed>\n")
	return out.Bytes(), nil
}

// json returns the feed as JSON Feed 1.1 (jsonfeed.org). It omits addresses if the public URL is unknown, because they
// must be absolute.
func (f *feed) json() ([]byte, error) {
	entries, err := f.entries()
	if err != nil {
		return nil, err
	}
	body := encode.Field([]byte{'{'}, "version", "https://jsonfeed.org/version/1.1")
	body = encode.Field(body, "title", feedTitleText+f.title)
	body = encode.Field(body, "language", feedLanguage)
	if f.config.PublicURL != "" {
		body = encode.Field(body, "home_page_url", f.config.PublicURL+f.page)
		body = encode.Field(body, "feed_url", f.config.PublicURL+f.path+".json")
	}
	body = append(encode.Name(body, "items"), '[')
	for _, e := range entries {
		body = encode.Field(append(encode.Comma(body), '{'), "id", e.id)
		if f.config.PublicURL != "" {
			body = encode.Field(body, "url", e.page)
		}
		body = encode.Field(body, "title", e.title)
		body = encode.Field(body, "content_text", e.text)
		body = append(encode.Time(body, "date_published", e.rate.CollectedAt), '}')
	}
	return append(body, "]}\n"...), nil
}
