package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
)

// Shapes and traps of sites that public readers have seen since the definitions were written.
func TestEvidenceOfSites(t *testing.T) {
	const rates = `"DollarBuyRate":58.1,"DollarSellRate":60.1,"EuroBuyRate":66,"EuroSellRate":71`
	banesco := func(date, buy, sell string) string {
		return fmt.Sprintf(`<html><body><div class="calculator" data-currency-date=%q data-currency-usd-rate-buy=%q data-currency-usd-rate-sell=%q `+
			`data-currency-eur-rate-buy="60" data-currency-eur-rate-sell="60"></div></body></html>`, date, buy, sell)
	}
	apap := func(script string) string {
		return `<html><b id="currency-buy-USD"></b><b id="currency-sell-USD"></b><script>` + script + `</script></html>`
	}
	for name, test := range map[string]struct {
		id, body, want string // want = institution, currency, sides and date of the first rate, or a part of the error
	}{
		"Popular's own date":        {"popular-site", `{"d":{"results":[{` + rates + `,"BuySellRatesAsOf":"2026-09-15T00:00:00Z"}]}}`, "popular USD 58.1/60.1 2026-09-15"},
		"its other form":            {"popular-site", `{"value":[{` + rates + `,"BuySellRatesAsOf":"2026-09-15T04:00:00Z"}]}`, "popular USD 58.1/60.1 2026-09-15"},
		"without a date":            {"popular-site", `{"value":[{` + rates + `}]}`, "popular USD 58.1/60.1 "},
		"a date that is not one":    {"popular-site", `{"value":[{` + rates + `,"BuySellRatesAsOf":"2026-19-15T04:00:00Z"}]}`, "layout: the date"},
		"Banesco":                   {"banesco-site", banesco("2026-09-15", "57.10", "60.10"), "banesco USD 57.10/60.10 2026-09-15"},
		"Banesco's unset fields":    {"banesco-site", banesco("2023-01-01", "50", "51"), "layout: there is no date"},
		"APAP's script":             {"apap-site", apap(`$("#currency-buy-USD").html(addZeroes("58.10")); $("#currency-sell-USD").html("60").delay(300)`), "apap USD 58.10/60 "},
		"APAP, a number in parts":   {"apap-site", apap(`$("#currency-buy-USD").html("58" + ".10"); $("#currency-sell-USD").html("60.10")`), "apap USD /60.10 "},
		"APAP, parts in a call":     {"apap-site", apap(`$("#currency-buy-USD").html(addZeroes(58) + ".10"); $("#currency-sell-USD").html("60.10")`), "apap USD /60.10 "},
		"La Nacional":               {"la-nacional-site", `<html><div id="tasasModal"><h5>Compra USD <b>RD$58.10</b></h5><h5>Venta USD <b>RD$60.10</b></h5></div></html>`, "la-nacional USD 58.10/60.10 "},
		"La Nacional, prices apart": {"la-nacional-site", `<html><div id="tasasModal"><h5>Compra USD</h5><p>RD$58.10</p><h5>Venta USD</h5><p>RD$60.10</p></div></html>`, "la-nacional USD 58.10/60.10 "},
		"Moneycorps":                {"moneycorps-site", `<html><script>let d={"monedas":[{"nombre":"EUR","compra":"66.10","venta":"70.20"}]}</script></html>`, "moneycorps EUR 66.10/70.20 "},
		"Moneycorps, one side only": {"moneycorps-site", `<html><script>let d={"monedas":[{"nombre":"USD","compra":"0.00","venta":"60.20"}]}</script></html>`, "moneycorps USD /60.20 "},
	} {
		d, _ := source.DefaultSet().Find(test.id)
		result, err := d.Parse(0, &source.Document{Body: []byte(test.body)})
		got := fmt.Sprint(err)
		if err == nil {
			o := result.Observations[0]
			got = fmt.Sprintf("%s %s %s/%s %s", o.InstitutionID, o.Currency, o.Buy, o.Sell, o.EffectiveDate)
		}
		if err == nil && got != test.want || err != nil && !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
