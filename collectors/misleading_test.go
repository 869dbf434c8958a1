package collectors

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/suggest"
	"github.com/tasard/tasard/engine"
)

// misleading is a synthetic document with something that is not today's rate, and all that may be served of it as a
// first document.
type misleading struct {
	source, name, body, want string
	page                     int
}

// documents reads a file of documents: for each a line about it, its text in the next lines, and a blank line.
func documents(t *testing.T, name string) iter.Seq2[string, string] {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	return func(yield func(head, body string) bool) {
		for entry := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
			if head, body, _ := strings.Cut(entry, "\n"); !yield(head, body) {
				return
			}
		}
	}
}

// servedOf is what the engine serves of a document that is the first of its source: there is no last good value that
// could save it.
func servedOf(t *testing.T, d *source.Definition, page int, body string) (string, error) {
	t.Helper()
	at := time.Date(2026, 9, 17, 17, 0, 0, 0, engine.Location())
	answers := make([]source.Result, len(d.Pages))
	answer, err := d.Parse(page, &source.Document{Body: []byte(body), FetchedAt: at})
	if err != nil {
		return "", err
	}
	answers[page] = answer
	l := newTestEngine(t, engine.DefaultRules(), source.DefaultSet().Sources()...)
	l.observe(BuildRefreshes(d, answers, at, time.Time{}), at)
	var served []string
	for code, book := range l.currencies {
		for _, offer := range book.Snapshot().Saved().SourceQuotes {
			served = append(served, fmt.Sprintf("%s %s %s/%s", offer.Key.Institution, code, short(offer.Buy), short(offer.Sell)))
		}
	}
	slices.Sort(served)
	return strings.Join(served, "; "), nil
}

func short(value engine.Decimal) string {
	if text := value.String(); strings.Contains(text, ".") {
		return strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return value.String()
}

// misleadingDocuments are those of testdata/misleading.txt, each after a line with source, page, name and what may be
// served.
func misleadingDocuments(t *testing.T) (all []misleading) {
	t.Helper()
	for head, body := range documents(t, "misleading.txt") {
		what, want, _ := strings.Cut(head, " =>")
		words := strings.SplitN(what, " ", 3)
		page, err := strconv.Atoi(words[1])
		must(t, err)
		all = append(all, misleading{words[0], words[2], body, strings.TrimSpace(want), page})
	}
	return all
}

// A suggested definition reads each side of a currency as people read it in these documents, or not at all.
func TestSuggest_MisleadingDocuments(t *testing.T) {
	last := []engine.Observation{{Currency: "USD", Buy: "58.10", Sell: "60.10"}, {Currency: "EUR", Buy: "66.10", Sell: "70.10"}}
	right := strings.Fields("USD-buy-58.1 USD-sell-60.1 EUR-buy-66.1 EUR-sell-70.1 EUR-buy-66 EUR-sell-70 GBP-buy-75.1 GBP-sell-80.1 CAD-buy-41.1 CAD-sell-44.1")
	suggested := 0
	for _, c := range misleadingDocuments(t) {
		for _, known := range [][]engine.Observation{nil, last} {
			at := time.Date(2026, 9, 17, 17, 0, 0, 0, engine.Location())
			s := suggest.Suggest(source.DefaultSet().File(c.source), c.page, &source.Document{Body: []byte(c.body)}, known, engine.DateOf(at))
			if s.Definition != nil {
				suggested++
			}
			for _, f := range s.Found {
				if price := short(decimal(f.Price)); !slices.Contains(right, fmt.Sprintf("%s-%s-%s", f.Currency, f.Side, price)) {
					t.Errorf("%s/%s, known %t: %s %s %s; %q", c.source, c.name, known != nil, f.Currency, f.Side, price, f.Reasons)
				}
			}
		}
	}
	if suggested < 60 {
		t.Errorf("%d suggestions", suggested)
	}
}

// Documents that must not become a rate: of each only the rates that people would read in it are served.
func TestI3_DocumentsThatMustNotBecomeARate(t *testing.T) {
	all := misleadingDocuments(t)
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
	if len(all) < 130 {
		t.Errorf("only %d documents", len(all))
	}
}

func page(title, body string) string {
	return `<!DOCTYPE html><html lang="es"><head><title>` + title + `</title></head><body>` + body + `</body></html>`
}

// shape is the document of a definition. BUY and SELL stand for the prices of the dollar.
type shape struct {
	source, body string
	page, sides  int      // with one side, the source has only what the institution buys for
	unread       []string // parts of forms that the definition does not read
}

// shapes are those of testdata/shapes.txt, each after a line with source, page, number of sides and unread parts.
func shapes(t *testing.T) (all []shape) {
	t.Helper()
	for head, body := range documents(t, "shapes.txt") {
		s := shape{body: body}
		_, err := fmt.Sscan(head, &s.source, &s.page, &s.sides)
		must(t, err)
		s.unread = strings.Fields(head)[3:]
		all = append(all, s)
	}
	return all
}

// A row of InfoDolar has the date that the row says. A row without a date has none; one with another text is skipped.
func TestInfoDolarRowsHaveTheirDates(t *testing.T) {
	var rows strings.Builder
	for name, title := range map[string]string{
		"RM": "2026-09-12T11:05:00-04:00", "SCT": "2026-09-17 14:30:00Z", "Alaver": "2026-09-16T09:00", "Duarte": "ayer",
		"Girosol": "", "Panora": "2026-09-17T12:00:00", "BHD": "2026-09-17T12:00:00", "Caribe": "jueves, 17 de septiembre de 2026 10:30 a",
	} {
		date := `<abbr class="timeago" title="` + title + `">hace</abbr>`
		if name == "Girosol" {
			date = ""
		}
		rows.WriteString(`<tr><td class="nombre">` + name + `</td><td>$58.10</td><td>$60.10</td><td>` + date + `</td></tr>`)
	}
	d, _ := source.DefaultSet().Find("infodolar")
	body := page("", `<table id="Dolar"><tr><th>Entidad</th><th>Compra</th><th>Venta</th></tr>`+rows.String()+`</table>`)
	result, err := d.Parse(0, &source.Document{Body: []byte(body)})
	must(t, err)
	dates := map[string]string{}
	for _, o := range result.Observations {
		dates[o.InstitutionID] = o.EffectiveDate.String() + " " + o.PublishedAt.Format("15:04")
	}
	want := map[string]string{
		"rm": "2026-09-12 15:05", "sct": "2026-09-17 14:30", "alaver": "2026-09-16 13:00", "panora": "2026-09-17 16:00",
		"bhd": "2026-09-17 16:00", "caribe": "2026-09-17 14:30", "girosol": engine.Date(0).String() + " 00:00",
	}
	if !maps.Equal(dates, want) || !strings.Contains(strings.Join(result.Notes, " "), "duarte USD is skipped") {
		t.Errorf("got %v with notes %q, want %v", dates, result.Notes, want)
	}
}

// Each built-in definition reads its prices from every shape that its site is known to have had, in the usual forms of
// a price but those that the shape names as unread. A JSON form without quotes is a number.
func TestShapes_InEveryFormOfAPrice(t *testing.T) {
	forms := [][2]string{{"58.10", "60.10"}, {"58.1000", "60.1"}, {"RD$58.10", "RD$ 60.10"}, {"58.10 DOP", "DOP 60.10"}, {"\u00a058,10\u00a0", "60,10"}}
	covered := map[string]bool{"bcrd-usd": true, "bcrd-currencies": true} // workbooks
	for _, s := range shapes(t) {
		covered[s.source] = true
		d, known := source.DefaultSet().Find(s.source)
		if !known {
			t.Fatalf("there is no definition %s", s.source)
		}
		want := []string{"58.1/", "58.1/60.1"}[s.sides-1]
		for _, form := range forms {
			isUnread := func(part string) bool { return strings.Contains(form[0]+form[1], part) }
			if slices.ContainsFunc(s.unread, isUnread) {
				continue
			}
			if form != forms[0] && strings.IndexAny(s.body, "{[") == 0 {
				form = [2]string{`"` + form[0] + `"`, `"` + form[1] + `"`}
			}
			body := strings.NewReplacer("BUY", form[0], "SELL", form[1]).Replace(s.body)
			if served, err := servedOf(t, d, s.page, body); !strings.HasSuffix(served, " "+want) {
				t.Errorf("%s, %q: served %q, want %q (%v)\n%s", s.source, form, served, want, err, body)
			}
		}
	}
	for _, d := range source.DefaultSet().Definitions() {
		if !covered[d.ID] {
			t.Errorf("%s has no shape", d.ID)
		}
	}
}
