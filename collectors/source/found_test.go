package source_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
)

// A failure names what stands in a changed document, and nothing in a good one, an empty one or a wall.
func TestFound(t *testing.T) {
	moved := `<div id="rates"><p>Compra <b class="buy new">RD$58.10</b></p><p>Venta <b>60.10</b></p></div><form class="f"><input value="66.50"></form>` +
		`<script>var a = "59.99"</script><p>2026</p><p>58.10.2026</p>`
	for _, c := range []struct{ source, body, kind, want string }{
		{"banreservas-site", page("Banreservas", moved), "layout", `the page "Banreservas" has RD$58.10 at b.buy, 60.10 at #rates b, 66.50 at form.f input`},
		{"banreservas-site", page("Inicio", `<div id="app"></div>`), "layout", `the page "Inicio" has no price in its text; a script may fill it`},
		{"qik-site", page("Qik", `<h4>Compramos: RD$58.10, vendemos: RD$60.10</h4><b>60.10</b>`), "layout", `the page "Qik" has 60.10 at b`},
		{"bhd-site", `{"data": {"id": 1, "attributes": {"rates": [], "updatedAt": "x"}}}`, "layout", `"data.attributes" is an object with the keys "rates", "updatedAt"`},
		{"bhd-site", `[1, 2]`, "layout", `the document is a list of 2 entries`},
		{"bhd-site", `{"data": {"attributes": null}}`, "layout", `"data.attributes" is null "null"`},
		{"bcrd-reference", `{"success": true, "result": {"actualPurchaseValue": "?", "actualSellingValue": "?", "date": "2026-09-17"}}`, "value", ``},
		{"bhd-site", `{"data": `, "wrong_content", ``},
		{"banreservas-site", page("", `Request unsuccessful. Incapsula incident ID: 1`), "blocked", ``},
	} {
		d, _ := source.DefaultSet().Find(c.source)
		_, err := d.Parse(0, &source.Document{Body: []byte(c.body)})
		var failure *source.Failure
		if !errors.As(err, &failure) || string(failure.Kind) != c.kind || failure.Found != c.want || strings.Contains(failure.Error(), "the page \"") {
			t.Errorf("%s, %s: %#v, want %s with %q", c.source, c.body, err, c.kind, c.want)
		}
	}
}
