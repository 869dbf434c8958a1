package source

import (
	"strings"
	"testing"

	"github.com/tasard/tasard/engine"
)

func fieldsOf(places map[string]Place) []Field {
	var fields []Field
	for _, currency := range []string{"USD", "EUR"} {
		for _, side := range []Side{BuySide, SellSide} {
			for _, alternative := range []string{"", "+"} {
				if place, known := places[currency+" "+string(side)+alternative]; known {
					fields = append(fields, Field{Currency: currency, Side: side, Place: place})
				}
			}
		}
	}
	return fields
}

// Elements with a class, several of each: desktop, mobile and a menu.
func TestHTMLFields_Classes(t *testing.T) {
	d := sourceOf(Extract{Method: HTMLFields, Fields: fieldsOf(map[string]Place{
		"USD buy": {At: ".compraUS"}, "USD sell": {At: ".ventaUS"}, "EUR buy": {At: ".compraEU"}, "EUR sell": {At: ".ventaEU"},
	})})
	quotes := `<span class="compraUS">56.50</span><span class="ventaUS">59.50</span>
		<b class="compraEU">66,20</b><b class="ventaEU">RD$&nbsp;70.40</b>`
	want := []string{"test USD unspecified [56.50] [59.50]", "test EUR unspecified [66.20] [70.40]"}
	checkCases(t, d, []parseCase{
		{"once", pageOf(quotes), want, "", ""},
		{"twice, and in a menu", pageOf(quotes + `<a class="compraUS">Compra 56.50</a><div class="compraUS"> 56.5 </div>`), want, "", ""},
		{"a mobile twin that is still zero", pageOf(`<i class="compraUS">0.00</i>` + quotes), want, "", ""},
		{"two that differ", pageOf(quotes + `<p class="compraUS">57.00</p>`), nil, Value, "says 56.50 and 57.00"},
		{"one is missing", pageOf(strings.ReplaceAll(quotes, "ventaEU", "other")), []string{
			want[0], "test EUR unspecified [66.20] []", `note: test EUR: no sell stands at ".ventaEU"`,
		}, "", ""},
		{"one has no value", pageOf(strings.ReplaceAll(quotes, "66,20", "-")), []string{want[0], "test EUR unspecified [] [70.40]"}, "", ""},
		{"a currency without values", pageOf(strings.NewReplacer("66,20", "-", "RD$&nbsp;70.40", "N/D").Replace(quotes)), []string{
			want[0], "note: test EUR: no value",
		}, "", ""},
		{"other classes", pageOf(strings.NewReplacer("US", "_us", "EU", "_eu").Replace(quotes)), nil, Layout, `no buy stands at ".compraUS"`},
		{"not filled yet", pageOf(`<b class="compraUS">0</b><b class="ventaUS">0</b><b class="compraEU"></b>`), nil, Empty, ""},
	})
}

// Values of inputs, with the moment of publication in free text.
func TestHTMLFields_InputsAndMoment(t *testing.T) {
	d := sourceOf(Extract{
		Method: HTMLFields, Fields: fieldsOf(map[string]Place{
			"USD buy": {At: "#rd-compra", Attribute: "value"}, "USD sell": {At: "#rd-venta", Attribute: "value"},
		}),
		Date: &Date{Place: Place{At: ".modal-footer p", Pattern: `Actualizado:\s*(.*)`}, Form: DayTime},
	})
	inputs := `<input id="rd-compra" VALUE="57.25"><input id="rd-venta" value="59.50" title="1">`
	footer := `<div class="modal-footer"><p>Tasas sujetas a cambio</p><p>Actualizado: <b>17/09/2026</b> 08:15</p></div>`
	want := []string{"test USD unspecified [57.25] [59.50] 2026-09-17 2026-09-17T12:15:00Z"}
	checkCases(t, d, []parseCase{
		{"as it is", pageOf(inputs + footer), want, "", ""},
		{"the same date twice", pageOf(inputs + footer + footer), want, "", ""},
		{"no date", pageOf(inputs), nil, Layout, "no date stands at"},
		{"a date without a year", pageOf(inputs + strings.ReplaceAll(footer, "2026", "26")), nil, Layout, "dd/mm/yyyy hh:mm"},
		{"two dates", pageOf(inputs + footer + strings.ReplaceAll(footer, "17/", "18/")), nil, Layout, "2026-09-17T12:15:00Z and 2026-09-18T12:15:00Z"},
		{"no attribute", pageOf(strings.NewReplacer("VALUE=", "a=", "value=", "b=").Replace(inputs) + footer), nil, Layout, `attribute "value"`},
	})
}

// One element with attributes for everything, its date a day.
func TestHTMLFields_Attributes(t *testing.T) {
	d := sourceOf(Extract{
		Method: HTMLFields, Fields: []Field{
			{Currency: "USD", Side: BothSides, Channel: engine.Digital, Place: Place{At: ".calculator", Attribute: "data-usd"}},
		},
		Date: &Date{Place: Place{At: ".calculator", Attribute: "data-currency-date"}, Form: ISODate},
	})
	checkCases(t, d, []parseCase{{
		"as it is", pageOf(`<div class="calculator" data-usd="58.00" data-currency-date="2026-09-17T00:00:00Z"></div>`),
		[]string{"test USD digital [58.00] [58.00] 2026-09-17"}, "", "",
	}})
}

// The element is empty and the number stands in a script beside it: the second way is tried only when the first has nothing.
func TestHTMLFields_Alternatives(t *testing.T) {
	d := sourceOf(Extract{Method: HTMLFields, Fields: fieldsOf(map[string]Place{
		"USD buy": {At: "#buy"}, "USD buy+": {At: "script", Pattern: `#buy[^0-9]{1,20}([0-9.]+)`},
		"USD sell": {At: "#sell"}, "USD sell+": {At: "script", Pattern: `#sell[^0-9]{1,20}([0-9.]+)`},
	})})
	script := `<script>var n = 5; $("#buy").text("57.10 DOP"); $("#sell").text("60.10 DOP")</script><script>"58.0"</script>`
	checkCases(t, d, []parseCase{
		{"elements", pageOf(`<p id="buy">58.10 DOP</p><p id="sell">61.10 DOP</p>` + script), []string{"test USD unspecified [58.10] [61.10]"}, "", ""},
		{"script", pageOf(`<p id="buy"></p>` + script), []string{"test USD unspecified [57.10] [60.10]"}, "", ""},
		{"script for zero", pageOf(`<p id="buy">0</p><p id="sell">61.10</p>` + script), []string{"test USD unspecified [57.10] [61.10]"}, "", ""},
		{"script for what can't be read", pageOf(`<p id="buy">5S.10</p><p id="sell">61.10</p>` + script), []string{
			"test USD unspecified [57.10] [61.10]",
			"note: USD: \"5S.10\" is no buy; taken from the next place, at \"script\", with the pattern \"#buy[^0-9]{1,20}([0-9.]+)\"",
		}, "", ""},
		{"neither", pageOf(`<p id="buy">?</p>`), nil, Value, "?"},
	})
}

// What a reader sees as two things never becomes one number.
func TestI3_VisibleText(t *testing.T) {
	for _, c := range [][2]string{
		{`58.90<sup>1</sup>`, "58.90 1"},
		{`58<sup>90</sup>`, "58 90"},
		{`58.90<a href="#nota">1</a>`, "58.90 1"},
		{`<span>58.90</span><span>59.30</span>`, "58.90 59.30"},
		{`58.90<br>59.30`, "58.90 59.30"},
		{`58.9<small>0</small>`, "58.9 0"},
		{`<b>58</b>.90`, "58.90"},
		{`<strong>58.</strong><em>90</em>`, "58.90"},
		{`58.90<script>12</script>`, "58.90"},
		{`58.90<style>p{width:10px}</style>`, "58.90"},
		{`58.90<!-- 12 -->`, "58.90"},
		{`58.90<noscript>12</noscript>`, "58.90"},
		{`58&nbsp;90`, "58 90"},
		{`58&#8203;90`, "58 90"},
		{`<span hidden>58.90</span>`, ""},
		{`<span style="color:red; Display : none">57.90</span>58.90`, "58.90"},
		{`<del>57.90</del> <s>57.95</s> 58.90`, "58.90"},
		{`<template>57.90</template>58.90`, "58.90"},
		{`5&#56;.90`, "58.90"},
	} {
		document, failure := parseHTML("<div id=x>" + c[0] + "</div>")
		if failure != nil {
			t.Fatal(failure)
		}
		if got := visibleText(document.Find("#x").Get(0)); got != c[1] {
			t.Errorf("the text of %s is %q, want %q", c[0], got, c[1])
		}
	}
}

// HTML nested without end is refused; it never fills the stack.
func TestHTML_Depth(t *testing.T) {
	d := sourceOf(Extract{Method: HTMLFields, Fields: []Field{{Side: BuySide, Place: Place{At: "b"}}}})
	for _, element := range []string{"<div>", "<b>", "<table><tr><td>", "<a>", "<svg>"} {
		_, err := d.Parse(0, documentOf(strings.Repeat(element, 20_000)))
		if err == nil {
			t.Errorf("%s nested 20000 times is read", element)
		}
	}
}
