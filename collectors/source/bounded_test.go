package source_test

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// What reading one document may cost, whatever is in it.
const (
	parseTimeMax = time.Second
	parseHeapMax = 64 << 20 // besides the document itself
)

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

// heapWatch is the most that the heap had since it began.
type heapWatch struct {
	stop, done chan struct{}
	peak       uint64
}

func watchHeap() *heapWatch {
	w := &heapWatch{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		ticker := time.NewTicker(4 * time.Millisecond)
		defer ticker.Stop()
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			w.peak = max(w.peak, now.HeapAlloc)
			select {
			case <-w.stop:
				return
			case <-ticker.C:
			}
		}
	}()
	return w
}

func (w *heapWatch) end() uint64 {
	close(w.stop)
	<-w.done
	return w.peak
}

// readers are the definitions whose selectors, patterns and paths cost most with a document.
func readers(document string) []string {
	if strings.HasPrefix(document, "{") || strings.HasPrefix(document, "[") {
		return []string{"vimenca-site", "lafise-site"}
	}
	return []string{"apap-site", "infodolar", "qik-site", "quezada-site"}
}

// cost is what reading a document takes. Others use the machine too: of what seems too long the shortest of three is meant.
func cost(d *source.Definition, body string) (time.Duration, uint64) {
	var took time.Duration
	var heap uint64
	for try := range 3 {
		document := &source.Document{Body: []byte(body)}
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		watch, start := watchHeap(), time.Now() //nolint:forbidigo // what reading really takes
		_, _ = d.Parse(0, document)
		again := time.Since(start) //nolint:forbidigo // the same
		if peak := watch.end(); peak > before.HeapAlloc {
			heap = max(heap, peak-before.HeapAlloc)
		}
		if try == 0 || again < took {
			took = again
		}
		if took <= parseTimeMax {
			break
		}
	}
	return took, heap
}

// Whatever a document holds, reading it takes a second and 64 MiB at most. The race detector makes both ten times as much.
func TestHostileDocumentsAreBounded(t *testing.T) {
	if source.RaceDetector || testing.Short() {
		t.Skip("times are measured without the race detector")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	documents := hostile()
	var slowest, largest string
	var longest time.Duration
	var most uint64
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		for _, id := range readers(documents[name]) {
			d, _ := source.DefaultSet().Find(id)
			took, heap := cost(d, documents[name])
			if took > longest {
				longest, slowest = took, name+", "+id
			}
			if heap > most {
				most, largest = heap, name+", "+id
			}
		}
	}
	t.Logf("slowest is %s with %v, largest %s with %d MiB", slowest, longest.Round(time.Millisecond), largest, most>>20)
	if longest > parseTimeMax || most > parseHeapMax {
		t.Errorf("want at most %v and %d MiB", parseTimeMax, parseHeapMax>>20)
	}
}
