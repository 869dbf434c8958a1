package data

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/tasard/tasard/engine"
)

// feedWords are the texts of feeds in one language.
type feedWords struct {
	language, root                            string // root is the beginning of the paths of this language
	feedTitle, buy, sell                      string
	source, via, manual, effective, published string
	channels                                  map[engine.Channel]string
	reference                                 string
}

// words returns the texts in all languages.
func words() []*feedWords {
	return []*feedWords{
		{
			language: "es", feedTitle: "Cambios de tasas: ", buy: "compra", sell: "venta",
			source: "Fuente", via: "vía", manual: "registrada a mano por el operador", effective: "Fecha de la tasa", published: "Publicada",
			channels: map[engine.Channel]string{
				engine.Digital: "digital", engine.Branch: "sucursal", engine.Cash: "efectivo", engine.Transfer: "transferencia",
			},
			reference: "tasa de referencia",
		},
		{
			language: "en", root: "/en", feedTitle: "Rate changes: ", buy: "buys at", sell: "sells at",
			source: "Source", via: "via", manual: "typed in by the operator", effective: "Date of the rate", published: "Published",
			channels: map[engine.Channel]string{
				engine.Digital: "digital", engine.Branch: "branch", engine.Cash: "cash", engine.Transfer: "transfer",
			},
			reference: "reference rate",
		},
	}
}

func (w *feedWords) institutionPage(id string) string {
	return w.root + "/institutions/" + url.PathEscape(id)
}

func (w *feedWords) currencyPage(code string) string {
	return cmp.Or(w.root, "/") + "?currency=" + url.QueryEscape(code)
}

// title returns the title of an entry: USD · Banco Colón (digital): compra 58.30, venta 59.30.
func (w *feedWords) title(rate *engine.Rate) string {
	var tags []string
	if channel := w.channels[rate.Channel]; channel != "" {
		tags = append(tags, channel)
	}
	if rate.Kind == engine.Reference {
		tags = append(tags, w.reference)
	}
	title := rate.Currency + " · " + rate.InstitutionName
	if len(tags) > 0 {
		title += " (" + strings.Join(tags, ", ") + ")"
	}
	return title + ": " + strings.Join(w.sides(rate, ""), ", ")
}

// sides returns the sides that a rate has, each with its price and a unit.
func (w *feedWords) sides(rate *engine.Rate, unit string) []string {
	var sides []string
	if !rate.Buy.IsNull() {
		sides = append(sides, w.buy+" "+rate.Buy.String()+unit)
	}
	if !rate.Sell.IsNull() {
		sides = append(sides, w.sell+" "+rate.Sell.String()+unit)
	}
	return sides
}

// text returns the text of an entry: the prices with their unit, the source, and the dates that the source states.
func (w *feedWords) text(rate *engine.Rate) string {
	source := rate.SourceName
	switch {
	case rate.Manual:
		source = w.manual
	case !strings.Contains(source, rate.UpstreamSource):
		source += " (" + w.via + " " + rate.UpstreamSource + ")"
	}
	text := strings.Join(w.sides(rate, " "+engine.QuoteCurrency), ", ") + ". " + w.source + ": " + source + "."
	if !rate.EffectiveDate.IsZero() {
		text += " " + w.effective + ": " + rate.EffectiveDate.String() + "."
	}
	if !rate.PublishedAt.IsZero() {
		text += " " + w.published + ": " + timeText(rate.PublishedAt) + "."
	}
	return text
}
