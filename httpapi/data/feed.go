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
)

const (
	typeAtom       = "application/atom+xml; charset=utf-8"
	feedEntriesMax = 200
)

// feedTitleText begins the title of a feed. Feeds are in Spanish, the institutions' language.
const feedTitleText = "Cambios de tasas: "

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
	element(" ", "title", feedTitleText+f.title, "")
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
