package suggest_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/suggest"
	"github.com/tasard/tasard/engine"
)

// noon is a Monday, so that the reference rate of Friday counts.
var noon = time.Date(2026, 9, 21, 16, 0, 0, 0, time.UTC)

// sourcePage is a page of a definition, but no workbook.
type sourcePage struct {
	d     *source.Definition
	index int
}

func (p sourcePage) String() string { return fmt.Sprintf("%s/%d", p.d.ID, p.index) }

// prices are the prices of a document by currency, channel and side.
func prices(d *source.Definition, observations []engine.Observation) map[string]string {
	all := map[string]string{}
	for _, o := range observations {
		for side, price := range map[string]string{"buy": o.Buy, "sell": o.Sell} {
			if price != "" {
				channel := o.Channel
				if channel == d.Channel {
					channel = ""
				}
				all[fmt.Sprint(o.Currency, " ", channel, " ", side)] = plain(price)
			}
		}
	}
	return all
}

func plain(price string) string {
	d, err := engine.ParseDecimal(price)
	if err != nil {
		return price
	}
	text := d.String()
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// sites are two sites of one market: one of them gets faults.
type sites struct {
	market        *simulated.Market
	good, changed *simulated.Site
	pages         []sourcePage // that the good site has, and that their definitions read
}

func newSites() *sites {
	market := simulated.NewMarket(1)
	market.Step(noon)
	s := &sites{market, simulated.NewSite(market), simulated.NewSite(market), nil}
	for _, d := range source.DefaultSet().Definitions() {
		for i := range d.Pages {
			doc := s.good.Document(d.ID, i)
			if doc == nil || d.Pages[i].Extract.Method == source.XLSXRows {
				continue
			}
			if _, err := d.Parse(i, doc); err == nil {
				s.pages = append(s.pages, sourcePage{d, i})
			}
		}
	}
	return s
}

func (s *sites) suggest(t *testing.T, p sourcePage, fault simulated.Fault) (suggested suggest.Suggestion, want map[string]string) {
	t.Helper()
	good, err := p.d.Parse(p.index, s.good.Document(p.d.ID, p.index))
	must(t, err)
	must(t, s.changed.SetFault(p.d.ID, fault))
	doc := s.changed.Document(p.d.ID, p.index)
	return suggest.Suggest(source.DefaultSet().File(p.d.ID), p.index, doc, good.Observations, engine.DateOf(noon)), prices(p.d, good.Observations)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// key is how prices names the side of a finding.
func key(f suggest.Finding) string { return fmt.Sprint(f.Currency, "  ", f.Side) }

// TestSuggest_Faults wants no finding that is not a price of the page as it should be, whatever is wrong with it.
func TestSuggest_Faults(t *testing.T) {
	s, suggestions := newSites(), 0
	for _, fault := range simulated.Faults() {
		if fault == simulated.Hang {
			continue
		}
		for _, p := range s.pages {
			suggested, want := s.suggest(t, p, fault)
			if suggested.Definition != nil {
				suggestions++
			}
			for _, f := range suggested.Found {
				if want[key(f)] != plain(f.Price) {
					t.Errorf("%s, %s: found %s %s at %s, want %q; %q", p, fault, key(f), f.Price, f.Place, want[key(f)], f.Reasons)
				}
			}
		}
	}
	if suggestions < 100 {
		t.Errorf("%d suggestions", suggestions)
	}
}

// TestSuggest_LaterDocuments renames the classes, ids, keys and headings of every page, which no definition survives,
// and reads 60 later documents of each page with the definition that was suggested.
func TestSuggest_LaterDocuments(t *testing.T) {
	s, read, failed := newSites(), 0, 0
	definitions := map[sourcePage]*source.Definition{}
	for _, p := range s.pages {
		if suggested, want := s.suggest(t, p, simulated.Layout); suggested.Definition != nil && len(suggested.Found) == len(want) {
			d, err := source.ReadDefinition("suggested.json", suggested.Definition)
			must(t, err)
			definitions[p] = d
		}
	}
	const documents = 60 // of an hour each: a price that is missing, or in another place, is rare
	for step := range documents {
		s.market.Step(noon.Add(time.Duration(step+1) * time.Hour))
		for p, d := range definitions {
			good, err := p.d.Parse(p.index, s.good.Document(p.d.ID, p.index))
			if err != nil {
				continue // the institution is silent today
			}
			later, err := d.Parse(p.index, s.changed.Document(p.d.ID, p.index))
			if err != nil {
				failed++
				continue
			}
			want := prices(p.d, good.Observations)
			for side, price := range prices(p.d, later.Observations) {
				if read++; want[side] != price {
					t.Errorf("%s, step %d: read %s %s, want %q", p, step, side, price, want[side])
				}
			}
		}
	}
	t.Logf("%d prices read by %d definitions, %d documents not read", read, len(definitions), failed)
	if len(definitions) < 30 || read < 100*documents || failed > read/50 {
		t.Error("want 30 definitions, a hundred prices in each step, and nearly all documents read")
	}
}

// TestSuggest_Refuses wants no definition where the words are missing or contradict each other.
func TestSuggest_Refuses(t *testing.T) {
	for name, c := range map[string]struct{ body, note string }{
		"a side without a word":  {`<table><tr><th>Moneda</th><th>A</th><th>B</th></tr><tr><td>Dólar</td><td>58.10</td><td>60.10</td></tr></table>`, "no price has clear words"},
		"two prices of one side": {`<p>Dólar compra 58.10 venta 60.10</p><p>Dólar compra 57.10 venta 60.10</p>`, "USD: buy is 58.10 and 57.10"},
		"sides exchanged":        {`<p>Dólar compra 60.10 venta 58.10</p>`, "USD: buy 60.10 is not below sell 58.10"},
		"another currency":       {`<b class="eur_compra">US$ 58.10</b><b class="eur_venta">US$ 60.10</b>`, "no price has clear words"},
		"no prices":              {`<p>Ha ocurrido un error inesperado</p>`, "no price has clear words"},
		"remittances":            {`<h3>Remesas</h3><p>Dólar compra 58.10 venta 60.10</p>`, "no price has clear words"},
		"too large":              {`<p>Dólar compra 58.10 venta 60.10</p>` + strings.Repeat(" ", 256<<10), "at most 262144 are searched"},
		"too many prices":        {strings.Repeat(`<p>58.10</p>`, 401), "more than 400 prices"},
		"a challenge":            {`<html><script src="/_Incapsula_Resource?x"></script>Request unsuccessful. Incapsula incident ID: 1</html>`, "bot protection"},
		"too much work":          {strings.Repeat(`<div class="compra">`, 250) + strings.Repeat("<i>58.10</i> compra venta ", 400), "too many words and prices in each other"},
		"other rates":            {`<p>Dólar compra efectivo 58.10</p>`, "another rate, another day or a channel"},
		"not JSON":               {`{"USD":{"compra":58.10`, "the JSON can't be read"},
	} {
		s := suggest.Suggest(source.DefaultSet().File("bdi-site"), 0, &source.Document{Body: []byte(c.body)}, nil, engine.DateOf(noon))
		if s.Definition != nil || !strings.Contains(strings.Join(s.Notes, "\n"), c.note) {
			t.Errorf("%s: found %+v, %q, want no definition and %q", name, s.Found, s.Notes, c.note)
		}
	}
}

// TestSuggest_JSONInAScript finds the prices of a JSON value in a script, beside their label, or by their keys.
func TestSuggest_JSONInAScript(t *testing.T) {
	for _, script := range []string{
		`var x = {"monedas":[{"nombre":"EUR","compra":"66.10","venta":"70.10"},{"nombre":"USD","compra":"58.10","venta":"60.10"}],"ancho":120};`,
		`window.tasas = [{}]; f({"usd_compra":58.1,"usd_venta":60.1,"eur_compra":66.1,"eur_venta":70.1});`,
	} {
		body := "<html><body><p>Moneycorps</p></body><script>" + script + "</script></html>"
		s := suggest.Suggest(source.DefaultSet().File("moneycorps-site"), 0, &source.Document{Body: []byte(body)}, nil, engine.DateOf(noon))
		d, err := source.ReadDefinition("moneycorps-site.json", s.Definition)
		if err != nil {
			t.Errorf("%s: %v, %q", script, err, s.Notes)
			continue
		}
		later := strings.NewReplacer("58.1", "59.1", "66.1", "67.1").Replace(body)
		result, err := d.Parse(0, &source.Document{Body: []byte(later)})
		want := map[string]string{"USD  buy": "59.1", "USD  sell": "60.1", "EUR  buy": "67.1", "EUR  sell": "70.1"}
		if got := prices(d, result.Observations); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read %v, %v", script, got, err)
		}
	}
}

// TestSuggest_ASingleSideInTheOthersPlace refuses a price at which the other side was.
func TestSuggest_ASingleSideInTheOthersPlace(t *testing.T) {
	for _, buy := range []string{"66.50", ""} {
		known := []engine.Observation{{Currency: "EUR", Buy: buy, Sell: "70.20"}}
		body := `<p>Euro compra 70.20</p>`
		s := suggest.Suggest(source.DefaultSet().File("bdi-site"), 0, &source.Document{Body: []byte(body)}, known, engine.DateOf(noon))
		if len(s.Found) > 0 || !strings.Contains(strings.Join(s.Notes, "\n"), "not near the known price") {
			t.Errorf("%q: found %+v, %q", buy, s.Found, s.Notes)
		}
	}
}

// TestSuggest_Keeps wants all of the definition as it was, but for how the page is read and the evidence.
func TestSuggest_Keeps(t *testing.T) {
	body := `<p>Dólar compra 58.10 venta 60.10</p><small>Actualizado: 21/09/2026 12:00</small>`
	s := suggest.Suggest(source.DefaultSet().File("bdi-site"), 0, &source.Document{Body: []byte(body)}, nil, engine.DateOf(noon))
	d, err := source.ReadDefinition("bdi-site.json", s.Definition)
	must(t, err)
	base, _ := source.DefaultSet().Find("bdi-site")
	if d.Pages[0].Extract.Date == nil || d.Evidence.Seen != "2026-09-21" {
		t.Errorf("date %+v, evidence %+v", d.Pages[0].Extract.Date, d.Evidence)
	}
	d.Pages[0].Extract, d.Evidence = base.Pages[0].Extract, base.Evidence
	if !reflect.DeepEqual(d, base) {
		t.Errorf("got  %+v\nwant %+v", d, base)
	}
}
