package source_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// unwanted is a synthetic page with something that is not today's rate, and all that may be served of it as a first document.
type unwanted struct {
	source, name, body, want string
	page                     int
}

// servedOf is what the engine serves of a document that is the first of its source: there is no last good value that could save it.
func servedOf(t *testing.T, d *source.Definition, page int, body string) (string, error) {
	t.Helper()
	at := time.Date(2026, 9, 17, 17, 0, 0, 0, engine.Location())
	answers := make([]source.Answer, len(d.Pages))
	answer, err := d.Parse(page, &source.Document{Body: []byte(body), FetchedAt: at})
	if err != nil {
		return "", err
	}
	answers[page] = answer
	catalogue := engine.DefaultCatalogue().WithSources(source.DefaultSet().Sources()...)
	parts, _ := engine.Split(catalogue, collectors.Refreshes(d, answers, at, time.Time{}))
	var served []string
	for code, list := range parts {
		book := engine.NewBook(code, catalogue, engine.DefaultRules())
		for _, part := range list {
			decided, err := book.Decide(engine.Observe{Refreshes: []engine.Refresh{part.Refresh}}, at)
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range decided.Events {
				book.Apply(event)
			}
		}
		for _, offer := range book.State().Offers {
			served = append(served, fmt.Sprintf("%s %s %s/%s", offer.Key.Institution, code, short(offer.Buy), short(offer.Sell)))
		}
	}
	slices.Sort(served)
	return strings.Join(served, "; "), nil
}

// short is a decimal without zeros at its end.
func short(value engine.Decimal) string {
	if text := value.String(); strings.Contains(text, ".") {
		return strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return value.String()
}

// Documents that must not become a rate: of each only the rates that people would read in it are served.
func TestI3_DocumentsThatMustNotBecomeARate(t *testing.T) {
	all := slices.Concat(unwantedFields(), unwantedTables(), unwantedTexts(), unwantedData())
	definitions := map[string]bool{}
	for _, c := range all {
		definitions[c.source] = true
		t.Run(c.source+"/"+c.name, func(t *testing.T) {
			d, known := source.DefaultSet().Find(c.source)
			if !known {
				t.Fatalf("there is no definition %s", c.source)
			}
			got, err := servedOf(t, d, c.page, c.body)
			if got != c.want {
				t.Errorf("served %q, want %q (%v)", got, c.want, err)
			}
		})
	}
	t.Logf("%d documents for %d definitions", len(all), len(definitions))
	if len(all) < 60 {
		t.Errorf("only %d documents", len(all))
	}
}

func page(title, body string) string {
	return `<!DOCTYPE html><html lang="es"><head><title>` + title + `</title></head><body>` + body + `</body></html>`
}

// unwantedFields are pages with an element for each value.
func unwantedFields() []unwanted { return slices.Concat(unwantedElements(), unwantedAttributes()) }

func unwantedElements() []unwanted {
	banreservas := func(buy, rest string) string {
		return page("Banreservas", `<span class="tasacambio-compraUS">`+buy+`</span><span class="tasacambio-ventaUS">60.10</span>`+rest)
	}
	caribe := func(buy, rest string) string {
		return page("Caribe", `<b id="us_buy_num">`+buy+`</b><b id="us_sell_num">RD$60.10</b>`+rest)
	}
	return []unwanted{
		{source: "banreservas-site", name: "as it is", body: banreservas("58.10", ""), want: "banreservas USD 58.1/60.1"},
		{source: "banreservas-site", name: "an older twin", body: banreservas("58.10", `<b class="tasacambio-compraUS">Compra 57.90</b>`)},
		{source: "banreservas-site", name: "an example in a template",
			body: banreservas("58.10", `<template><b class="tasacambio-compraUS">50.00</b></template>`), want: "banreservas USD 58.1/60.1"},
		{source: "banreservas-site", name: "only the example in a template",
			body: page("B", `<template><b class="tasacambio-compraUS">50.00</b><b class="tasacambio-ventaUS">60.00</b></template>`)},
		{source: "banreservas-site", name: "a comment",
			body: page("B", `<!-- <b class="tasacambio-compraUS">50.00</b> --><b class="tasacambio-ventaUS">60.10</b>`), want: only("banreservas")},
		{source: "banreservas-site", name: "yesterday struck out", body: banreservas("<del>57.90</del> 58.10", ""), want: "banreservas USD 58.1/60.1"},
		{source: "banreservas-site", name: "all of it struck out", body: banreservas("<s>57.90</s>", ""), want: only("banreservas")},
		{source: "banreservas-site", name: "a hidden value", body: banreservas(`<i style="display: none">57.90</i>58.10`, ""), want: "banreservas USD 58.1/60.1"},
		{source: "banreservas-site", name: "raised cents", body: banreservas("58<sup>10</sup>", ""), want: only("banreservas")},
		{source: "banreservas-site", name: "digits in spans", body: banreservas("<span>58</span><span>.10</span>", ""), want: only("banreservas")},
		{source: "banreservas-site", name: "digits from right to left", body: banreservas("\u202e01.85\u202c", "")},
		{source: "banreservas-site", name: "a mark of direction", body: banreservas("\u200f58.10\u200e", ""), want: "banreservas USD 58.1/60.1"},
		{source: "banreservas-site", name: "a letter for a digit", body: banreservas("5B.10", ""), want: only("banreservas")},
		{source: "banreservas-site", name: "placeholders", body: banreservas("{{compraUS}}", ""), want: only("banreservas")},

		{source: "caribe-site", name: "as it is", body: caribe("RD$58.10", ""), want: "caribe USD 58.1/60.1"},
		{source: "caribe-site", name: "another price for narrow screens", body: caribe("RD$58.10", `<b id="mus_buy_num">57.90</b>`)},
		{source: "caribe-site", name: "price of a euro", body: caribe("€ 66.80", "")},
		{source: "caribe-site", name: "in dollars of the US for a euro",
			body: page("Caribe", `<b id="eur_buy_num">US$ 58.10</b><b id="eur_sell_num">RD$70.10</b>`)},
		{source: "caribe-site", name: "both sides in one element", body: caribe("58.10 / 60.10", "")},
		{source: "caribe-site", name: "a rate for remittances behind it", body: caribe("58.10 (remesas 59.00)", "")},
		{source: "caribe-site", name: "one dollar equals", body: caribe("US$1.00 = RD$58.10", "")},
		{source: "caribe-site", name: "the other side behind an equals sign", body: caribe("60.05 = 58.10", "")},
		{source: "caribe-site", name: "a sell that was copied to buy", body: caribe("RD$61.10", "")},
		{source: "caribe-site", name: "per cent", body: caribe("58.10%", "")},
		{source: "caribe-site", name: "thousands", body: caribe("RD$58,100.00", "")},
		{source: "caribe-site", name: "a lost point", body: caribe("5810", "")},
	}
}

// unwantedAttributes are pages whose values stand in attributes, or that say of which day they are.
func unwantedAttributes() []unwanted {
	bdi := func(foot string) string {
		return page("BDI", `<input id="rd-compra" value="58.10"><input id="rd-venta" value="60.10"><div class="modal-footer">`+foot+`</div>`)
	}
	banesco := func(attributes string) string {
		return page("Banesco", `<div class="calculator" data-currency-usd-rate-buy="58.10" data-currency-usd-rate-sell="60.10" `+attributes+`></div>`)
	}
	apap := func(body string) string { return page("APAP", `<p id="currency-sell-USD">60.10 DOP</p>`+body) }
	popular := func(desktop string) string {
		return page("Popular", `<input id="compra_peso_dolar_modal" value="58.10"><input id="venta_peso_dolar_modal" value="60.10">`+
			`<input id="compra_peso_dolar_desktop" value="`+desktop+`">`)
	}
	quezada := func(text string) string { return page("Quezada", `<li class="da-ef">`+text+`</li>`) }
	return []unwanted{
		{source: "bdi-site", name: "as it is", body: bdi("<p>Actualizado: 17/09/2026 10:05</p>"), want: "bdi USD 58.1/60.1"},
		{source: "bdi-site", name: "no date", body: bdi("<p>Tasas sujetas a cambio</p>")},
		{source: "bdi-site", name: "two dates", body: bdi("<p>Actualizado: 17/09/2026 10:05</p><p>Actualizado: 16/09/2026 10:05</p>")},
		{source: "bdi-site", name: "two dates in one paragraph", body: bdi("<p>Actualizado: 16/09/2026 10:05\nActualizado: 17/09/2026 10:05</p>")},
		{source: "bdi-site", name: "a day of next month", body: bdi("<p>Actualizado: 17/10/2026 10:05</p>")},
		{source: "bdi-site", name: "month before day", body: bdi("<p>Actualizado: 09/17/2026 10:05</p>")},

		{source: "banesco-site", name: "as it is", body: banesco(`data-currency-date="2026-09-17"`), want: "banesco USD 58.1/60.1"},
		{source: "banesco-site", name: "no date", body: banesco("")},
		{source: "banesco-site", name: "a second calculator", body: banesco(`data-currency-date="2026-09-17"`) +
			`<div class="calculator" data-currency-usd-rate-buy="55.00" data-currency-usd-rate-sell="65.00"></div>`},
		{source: "banesco-site", name: "two dates", body: banesco(`data-currency-date="2026-09-17"`) +
			`<div class="calculator" data-currency-date="2026-09-16"></div>`},
		{source: "banesco-site", name: "euros in dollars", want: "banesco USD 58.1/60.1",
			body: banesco(`data-currency-date="2026-09-17" data-currency-eur-rate-buy="1.08" data-currency-eur-rate-sell="1.17"`)},

		{source: "apap-site", name: "as it is", body: apap(`<p id="currency-buy-USD">58.10 DOP</p>`), want: "apap USD 58.1/60.1"},
		{source: "apap-site", name: "two prices in the script", body: apap(`<p id="currency-buy-USD"></p><script>
			// $('#currency-buy-USD').text('50.00')
			$('#currency-buy-USD').text('58.10')</script>`)},
		{source: "apap-site", name: "a script as a text", body: apap(`<pre>$('#currency-buy-USD').text('50.00')</pre>`), want: only("apap")},

		{source: "popular-html", name: "as it is", body: popular("58.10"), want: "popular USD 58.1/60.1"},
		{source: "popular-html", name: "an older calculator", body: popular("50.00")},
		{source: "popular-html", name: "a calculator's default",
			body: page("P", `<input id="compra_peso_dolar_modal" value="1.00"><input id="venta_peso_dolar_modal" value="60.10">`)},

		{source: "quezada-cash", name: "as it is", body: quezada("COMPRA: 58.10 - VENTA 60.10"), want: "quezada USD 58.1/60.1"},
		{source: "quezada-cash", name: "sides exchanged", body: quezada("VENTA: 60.10 - COMPRA 58.10")},
		{source: "quezada-cash", name: "cheques too", body: quezada("COMPRA: 58.10 - VENTA 60.10 - CHEQUE 57.00"), want: "quezada USD 58.1/"},
		{source: "activo-site", name: "columns exchanged",
			body: page("A", `<table class="table"><tr><td class="subtitulo-dolar">Dólar</td><td>60.10</td><td>58.10</td></tr></table>`)},
	}
}

// only is what is left of a source whose buy can't be read.
func only(institution string) string { return institution + " USD /60.1" }
