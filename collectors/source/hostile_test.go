package source_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
)

func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

// parseAllocatedMax bounds all that reading one document may allocate, garbage too.
const parseAllocatedMax = 256 << 20

// hostile are documents that cost as much as their size allows, each against something that readers do.
func hostile() map[string]string {
	const size = 5 << 20 // the most that is fetched
	fill := func(part string) string { return strings.Repeat(part, size/len(part)) }
	in := func(open string, times int, inside string) string {
		return wholePage(strings.Repeat(open, times) + inside)
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
		"comments":                   wholePage(fill("<!-- -->")),
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

func readers(document string) []string {
	if strings.HasPrefix(document, "{") || strings.HasPrefix(document, "[") {
		return []string{"vimenca-site", "lafise-site"}
	}
	return []string{"apap-site", "infodolar", "qik-site", "quezada-site"}
}

// TestHostileDocumentsAreBounded: whatever a document holds, reading it allocates little more than the document
// needs. TestFaultsD4_HostileDocuments measures time and heap.
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

func wholePage(body string) string {
	return "<html><head><title>x</title></head><body>" + body + "</body></html>"
}
