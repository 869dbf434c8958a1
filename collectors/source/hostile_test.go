package source_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// spoilings make of a number something that is none, or that is another one only by a guess.
func spoilings() map[string]func(string) string {
	half := func(text, between string) string { return text[:2] + between + text[2:] }
	return map[string]func(string) string{
		"a sign":              func(v string) string { return "-" + v },
		"a long sign":         func(v string) string { return "\u2212" + v },
		"a sign and a blank":  func(v string) string { return "- " + v },
		"an exponent":         func(v string) string { return v + "e1" },
		"a footnote":          func(v string) string { return v + " 1" },
		"a superscript":       func(v string) string { return v + "\u00b9" },
		"a raised footnote":   func(v string) string { return v + "<sup>1</sup>" },
		"a blank in the way":  func(v string) string { return half(v, " ") },
		"a blank behind it":   func(v string) string { return half(v, ". ") },
		"a no-break space":    func(v string) string { return half(v, "\u00a0") },
		"a line in the way":   func(v string) string { return half(v, "\n") },
		"a tag in the way":    func(v string) string { return half(v, "<span> </span>") },
		"two points":          func(v string) string { return v + ".5" },
		"two points together": func(v string) string { return half(v, "..") },
		"a range":             func(v string) string { return v + "-" + v[:1] + "9.99" },
		"two numbers":         func(v string) string { return v + " 61.75" },
		"a letter":            func(v string) string { return half(v, "O") },
		"other digits":        func(v string) string { return "\uff15" + v[1:] },
		"a lone point":        func(v string) string { return v[:2] + "." },
		"not a number":        func(string) string { return "NaN" },
		"without end":         func(string) string { return "Infinity" },
		"hexadecimal":         func(v string) string { return "0x" + v },
		"thirty digits":       func(v string) string { return v + strings.Repeat("1", 30) },
	}
}

// sweep returns whole when SWEEP=whole asks for complete sweeps, as make check does, and sample otherwise.
func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

// said is every side of an answer that is a decimal, by quote.
func said(answer source.Answer) map[string]string {
	sides := map[string]string{}
	for _, o := range answer.Observations {
		key := o.InstitutionID + " " + o.Currency + " " + string(o.Channel)
		for name, text := range map[string]string{" buy": o.Buy, " sell": o.Sell} {
			if _, err := engine.ReadDecimal(text); err == nil {
				sides[key+name] = text
			}
		}
	}
	return sides
}

// pages are the pages of every definition, as the simulated institutions publish them.
func pages() *simulated.Site {
	market := simulated.NewMarket(7)
	for range 20 {
		market.Step(time.Date(2026, 9, 17, 16, 0, 0, 0, time.UTC))
	}
	return simulated.NewSite(simulated.SiteConfig{Market: market})
}

// Whatever is done to a number on a page, what is read is that number or nothing: every definition, in turn.
func TestI3_SpoiledNumbersAreNeverReadAsOthers(t *testing.T) {
	site, spoiled, refused := pages(), 0, 0
	for _, d := range source.DefaultSet().Definitions() {
		for page := range d.Pages {
			if d.Pages[page].Extract.Method != source.XLSXRows {
				made, without, wrong := spoilPage(d, page, site.Document(d.ID, page))
				spoiled, refused = spoiled+made, refused+without
				for _, reading := range wrong {
					t.Error(reading)
				}
			}
		}
	}
	t.Logf("%d spoiled documents, %d of them without the value", spoiled, refused)
	if spoiled < 500 || refused == 0 {
		t.Errorf("only %d spoiled documents, %d of them without the value: the test proves nothing", spoiled, refused)
	}
}

// spoilPage returns how many documents it made, and how many of them gave no value. A page without values makes none.
func spoilPage(d *source.Definition, page int, document *source.Document) (spoiled, refused int, wrong []string) {
	whole, err := d.Parse(page, document)
	if err != nil {
		return 0, 0, nil
	}
	before := said(whole)
	quotes := slices.Sorted(maps.Keys(before))
	for _, quote := range quotes[:min(len(quotes), sweep(1, 4))] {
		value := before[quote]
		if !strings.Contains(value, ".") || !bytes.Contains(document.Body, []byte(value)) {
			continue
		}
		for name, spoil := range spoilings() {
			body := bytes.ReplaceAll(document.Body, []byte(value), []byte(spoil(value)))
			answer, _ := d.Parse(page, &source.Document{Body: body, ContentType: document.ContentType})
			after := said(answer)
			spoiled++
			if after[quote] == "" {
				refused++
			}
			for other, text := range after {
				if text != before[other] {
					wrong = append(wrong, fmt.Sprintf("%s, page %d, %s in %s: %s reads %s, was %s", d.ID, page, name, value, other, text, before[other]))
				}
			}
		}
	}
	return spoiled, refused, wrong
}

// Control: a pattern that takes the first digits that it finds is caught.
func TestI3_CarelessPatternsAreCaught(t *testing.T) {
	d, _ := source.DefaultSet().Find("qik-site")
	careless := *d
	careless.Pages = slices.Clone(d.Pages)
	careless.Pages[0].Extract.Text = &source.Text{At: "body", Min: 1, Pattern: `(?s)Vendemos\D*(?P<sell>[0-9.]+).*?Compramos\D*(?P<buy>[0-9.]+)`}
	if _, _, wrong := spoilPage(&careless, 0, pages().Document("qik-site", 0)); len(wrong) == 0 {
		t.Error("a careless pattern reads nothing wrong: the test above proves nothing")
	}
}

// parseAllocatedMax bounds all that reading one document may allocate, garbage too.
const parseAllocatedMax = 256 << 20

// hostile are documents that cost as much as their size allows, each against something that readers do.
func hostile() map[string]string {
	const size = 5 << 20 // the most that is fetched
	fill := func(part string) string { return strings.Repeat(part, size/len(part)) }
	in := func(open string, times int, inside string) string {
		return page("x", strings.Repeat(open, times)+inside)
	}
	numbered := func(times int, format string) string {
		var b strings.Builder
		for i := range times {
			b.WriteString(strings.ReplaceAll(format, "%d", fmt.Sprint(i)))
		}
		return b.String()
	}
	const row, table = `<div class="_bns--table table plan"><table class="table" id="Dolar">`, `<tr><th class="nombre">Tipo<th>Moneda<th>Compra<th>Venta`
	return map[string]string{
		"a class of 5 MB":            in(`<div class="overlay tasas `+strings.Repeat("a ", size/3)+`">`, 1, strings.Repeat("<p><label>1</label></p>", 9000)),
		"half a million attributes":  in(`<div class="overlay" `+strings.Repeat("a ", size/4)+`>`, 1, strings.Repeat("<p><label>1</label></p>", 9000)),
		"one inside of another":      in(`<div class="overlay tasas _bns--table">`, 480, strings.Repeat("<ul><li><h2></h2></li></ul>", 9000)),
		"as deep as it may be":       in(`<div class="overlay tasas _bns--table">`, 120, strings.Repeat("<h2><strong><p></p></strong></h2>", 9000)),
		"wide":                       in("", 0, strings.Repeat("<ul>"+strings.Repeat("<li></li>", 9900)+"</ul>", 10)),
		"wide rows":                  in("", 0, strings.Repeat(row+"<tr>"+strings.Repeat("<td></td>", 9900)+"</table></div>", 9)),
		"cells over fifty others":    in(row, 1, strings.Repeat(`<tr><td colspan=50 rowspan=50>`+strings.Repeat("moneda ", 1000), 700)),
		"a cell of 5 MB over others": in(row, 1, `<tr><td colspan=50 rowspan=50>`+fill("tipo ")+strings.Repeat("<tr><td>1", 100)),
		"tables in tables":           in(`<table class="table" id="Dolar"><tr><td>`, 120, strings.Repeat("<tr><td>a<td>b<td>c", 2500)),
		"tables in wide tables":      in(row+`<tr class="subtitulo-dolar">`+strings.Repeat("<td>", 60), 100, ""),
		"rows":                       in(row+table, 1, strings.Repeat(`<tr><td class="nombre">RM<td>Euro (EU)<td>1<td>2`, 9900)),
		"rows that differ":           in(row+table, 1, numbered(9900, `<tr><td class="nombre">l%d<td>Euro %d<td>1<td>%d`)),
		"a million rows":             in(row, 1, strings.Repeat("<tr>", 1_000_000)),
		"text":                       in("<main>", 1, fill("vendemos ")),
		"entities":                   in("<main>", 1, fill("&nbsp;&#53;&amp;")),
		"the pattern, but its end":   in("<main>", 1, strings.Repeat("vendemos: RD$ 58.10 compramos: RD$ ", (1<<20)/40)),
		"the pattern":                in("<main>", 1, strings.Repeat("vendemos: RD$ 58.10 compramos: RD$ 57.10 ", (1<<20)/50)),
		"the pattern's beginning":    in("<marquee>", 1, strings.Repeat("dolar compra ", (1<<20)/16)),
		"scripts":                    in("", 0, strings.Repeat("<script>"+strings.Repeat("currency-buy-USD ", 60_000)+"</script>", 5)),
		"the same price":             in("", 0, strings.Repeat(`<p class="tasacambio-compraUS calculator da-ef">58.10</p>`, 9900)),
		"styles":                     in(`<div class="tasacambio-compraUS">`, 1, strings.Repeat(`<p style="`+strings.Repeat(" ", 5000)+`">1</p>`, 900)),
		"digits":                     in(`<p class="tasacambio-compraUS">`, 1, strings.Repeat("8", 1<<20-500)),
		"tags without an end":        fill("<"),
		"comments":                   page("x", fill("<!-- -->")),
		"numbers":                    strings.Repeat("58.10 ", (1<<20)/6),
		"lists in lists":             fill("["),
		"objects in objects":         fill(`{"a":`),
		"a list of numbers":          `{"data":[1` + fill(",1") + `]}`,
		"a list of objects":          `{"data":[{}` + fill(",{}") + `]}`,
		"entries":                    `{"status":"OK","data":[{}` + fill(`,{"coinCode":2,"saleValue":1}`) + `]}`,
		"keys":                       `{"data":1` + fill(`,"a":1`) + `}`,
		"escapes":                    `{"data":"` + fill(`\u0041`) + `"}`,
		"a number of 5 MB":           `{"rates":{"USD":{"buying":` + fill("9") + `}},"date":"2026-09-17"}`,
		"a large exponent":           `{"compraUS":1e999999999,"ventaUS":1e-999999999}`,
	}
}

// readers are the definitions whose selectors, patterns and paths cost most with a document.
func readers(document string) []string {
	if strings.HasPrefix(document, "{") || strings.HasPrefix(document, "[") {
		return []string{"vimenca-site", "lafise-site"}
	}
	return []string{"apap-site", "infodolar", "qik-site", "quezada-site"}
}

// TestHostileDocumentsAreBounded: whatever a document holds, reading it allocates little more than the document needs. What it takes
// on the clock and on the heap is TestFaultsD4_HostileDocuments.
func TestHostileDocumentsAreBounded(t *testing.T) {
	documents := hostile()
	var largest string
	var most uint64
	for i, name := range slices.Sorted(maps.Keys(documents)) {
		for j, id := range readers(documents[name]) {
			if (i+j)%sweep(8, 1) > 0 {
				continue
			}
			d, _ := source.DefaultSet().Find(id)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = d.Parse(0, &source.Document{Body: []byte(documents[name])})
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > most {
				most, largest = used, name+", "+id
			}
		}
	}
	t.Logf("largest is %s with %d MiB", largest, most>>20)
	if most > parseAllocatedMax {
		t.Errorf("%s allocates %d MiB, want at most %d", largest, most>>20, parseAllocatedMax>>20)
	}
}
