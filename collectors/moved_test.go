package collectors

import (
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
)

// TestFailure_SaysWhereTheRatesAre: the failure of a page that has changed names the prices, their place, and what to
// type.
func TestFailure_SaysWhereTheRatesAre(t *testing.T) {
	const page = `<p class="tasas">Dólar compra 58.10 venta 60.10</p>`
	const sentence = "want; the rates seem to have moved: USD 58.10/60.10 at p.tasas; try: tasard sources suggest bdi-site"
	for name, c := range map[string]struct {
		source, body string
		kind         source.FailureKind
		want         string
	}{
		"changed":              {"bdi-site", page, source.Layout, sentence},
		"without a value":      {"bdi-site", page, source.Empty, sentence},
		"blocked":              {"bdi-site", page, source.Blocked, "want"},
		"several institutions": {"infodolar", page, source.Layout, "want"},
		"no prices":            {"bdi-site", "<p>Ha ocurrido un error</p>", source.Layout, "want"},
	} {
		d, _ := source.DefaultSet().Find(c.source)
		got := withSuggestion(source.Failf(c.kind, "want"), d, 0, &source.Document{Body: []byte(c.body)})
		if got.Detail != c.want || strings.Count(got.Detail, "try:") > 1 {
			t.Errorf("%s: %q, want %q", name, got.Detail, c.want)
		}
	}
}
