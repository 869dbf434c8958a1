package source_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// Missing names the sides that a definition declares and a document lacks, one by one.
func TestMissing(t *testing.T) {
	both := func(currency string) engine.Observation {
		return engine.Observation{InstitutionID: "x", Currency: currency, Channel: engine.Unspecified, Buy: "58.10", Sell: "60.10"}
	}
	for _, c := range []struct {
		source       string
		observations []engine.Observation
		want         string
	}{
		{"bcrd-reference", []engine.Observation{both("USD")}, ""},
		{"bcrd-reference", []engine.Observation{{InstitutionID: "x", Currency: "USD", Channel: engine.Unspecified, Buy: "58.10", Sell: "unreadable: 60.10?"}}, "USD sell"},
		{"bcrd-reference", nil, "USD buy, USD sell"},
		{"caribe-site", []engine.Observation{both("USD")}, "EUR buy, EUR sell"},
		{"caribe-site", []engine.Observation{both("USD"), {InstitutionID: "x", Currency: "EUR", Channel: engine.Unspecified, Buy: "0.00", Sell: "70"}}, "EUR buy"},
		{"vimenca-site", []engine.Observation{both("USD"), both("EUR"), both("CAD"), both("GBP")}, "CHF buy, CHF sell"},
		{"caribe-express-site", []engine.Observation{both("USD"), both("EUR"), both("CAD"), both("GBP"), {InstitutionID: "x", Currency: "CHF", Channel: engine.Unspecified, Buy: "70"}}, ""},
		{"qik-site", []engine.Observation{{InstitutionID: "x", Currency: "USD", Channel: engine.Digital, Buy: "58"}}, "USD sell (digital)"},
		{"empire-site", []engine.Observation{both("USD")}, "EUR buy, EUR sell"},
		{"empire-site", []engine.Observation{ // its sides are on pages of their own
			{InstitutionID: "x", Currency: "USD", Channel: engine.Unspecified, Buy: "58"}, {InstitutionID: "x", Currency: "USD", Channel: engine.Unspecified, Sell: "60"}, both("EUR"),
		}, ""},
		{"santa-cruz-site", []engine.Observation{both("USD"), both("EUR")}, ""},
		{"infodolar", nil, ""},
		{"indexa", nil, "CAD buy, CAD sell, CHF buy, CHF sell, EUR buy, EUR sell, GBP buy, GBP sell, USD buy, USD sell"},
	} {
		d, _ := source.DefaultSet().Find(c.source)
		observations := slices.Clone(c.observations)
		for i := range observations {
			observations[i].InstitutionID = d.Institution
		}
		if got := strings.Join(d.Missing(observations), ", "); got != c.want {
			t.Errorf("%s: missing %q, want %q", c.source, got, c.want)
		}
	}
}
