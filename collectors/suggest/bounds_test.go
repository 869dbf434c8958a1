//go:build !race

// The race detector empties pools, so that regular expressions allocate up to 30 times as much.

package suggest_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/suggest"
)

// hostile documents take the longest. Some of them took over a second before the work was counted. The others are
// of nearly the largest size that is searched.
func hostile() map[string]string {
	return map[string]string{
		"nested":   strings.Repeat("<div class=compra>Dólar ", 500) + "58.10" + strings.Repeat("</div>", 500),
		"climbing": strings.Repeat("<div>", 480) + strings.Repeat("<i>58.10</i>", 400) + strings.Repeat(" app", 40_000),
		"headings": strings.Repeat("<div><h1>"+strings.Repeat("ayer ", 100)+"</h1>", 390) + strings.Repeat("<b>58.10</b>", 390),
		"prices":   `<div class="compra usd">` + strings.Repeat("<i>58.10 Dólar compra</i>", 400) + `</div>`,
		"words":    "<p>58.10 " + strings.Repeat("compra dólar ", 15_000),
		"joined":   "<p>58.10 " + strings.Repeat("dollarbuy", 25_000),
		"table":    "<table>" + strings.Repeat("<tr>"+strings.Repeat("<td>58.10", 4)+strings.Repeat("<td>compra", 20), 100),
		"rows":     "<table><tr><td>58.10" + strings.Repeat("<tr><td>x", 5_000) + strings.Repeat("<tr><td>58.10", 300),
		"script":   "<script>" + strings.Repeat(`usdCompra="58.10";`, 390) + strings.Repeat("{[", 50_000),
		"lists":    strings.Repeat(`{"compra":[{"b":"USD compra"},`, 30) + strings.Repeat(`{"usd":58.1},`, 399) + `{}` + strings.Repeat("]}", 30),
		"digits":   "<p>" + strings.Repeat("58.10", 50_000),
		"classes":  strings.Repeat(`<p class="`+strings.Repeat("compra ", 60)+`">58.10`, 390),
		"dates":    strings.Repeat("<p>Actualizado: 21/09/2026 ", 8_000) + "<b>Dólar compra 58.10</b>",
	}
}

// TestDescribe_Bounds: hostile documents take a bounded amount of memory. The work is bounded in TestSuggest_Refuses.
func TestDescribe_Bounds(t *testing.T) {
	const allocatedMax = 256 << 20
	for name, body := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		suggest.Describe(&source.Document{Body: []byte(body)})
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > allocatedMax {
			t.Errorf("%s: %d MiB", name, allocated>>20)
		}
	}
}
