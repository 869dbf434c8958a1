package simulated

import "github.com/tasard/tasard/engine"

// publishedSides says which sides an institution publishes.
type publishedSides uint8

const (
	usuallyBoth publishedSides = iota
	alwaysBoth                 // never one side: without labels on the page, it could be either
	buyOnly                    // as some associations and exchange houses do
	singleRate                 // one price for both sides, as the central bank does for most currencies
)

// dating says with which date an institution publishes its rates.
type dating uint8

const (
	undated      dating = iota // no date
	dayDated                   // the day of the request
	minuteDated                // day and minute of the last price change
	businessDays               // the newest business day whose rate has been published
)

// quoteSpec describes quotes of one institution.
type quoteSpec struct {
	institution string
	spread      int64 // sell - buy for USD, in ten-thousandths of a peso; other currencies: levelSpec
	currencies  []string
	channel     engine.Channel
	published   publishedSides
	dating      dating
}

// levelSpec describes the market rate of a currency at the start of the simulation.
type levelSpec struct {
	code           string
	level          int64 // rate between buy and sell in mid-2026, in ten-thousandths of a peso
	spreadPermille int64 // usual spread, in thousandths of the spread of USD
}

// levelSpecs returns the currencies. First come those that institutions buy and sell, then those for which only the
// central bank publishes a rate.
func levelSpecs() []levelSpec {
	return []levelSpec{
		{"USD", 59_1000, 1000}, {"EUR", 69_4000, 1500}, {"GBP", 79_5000, 2000}, {"CHF", 74_5000, 2000}, {"CAD", 42_5000, 1600},
		{"AUD", 38_9000, 0}, {"BRL", 10_8000, 0}, {"CNY", 8_3100, 0}, {"DKK", 9_3000, 0}, {"JPY", 3900, 0},
		{"NOK", 5_8500, 0}, {"SEK", 6_2600, 0}, {"VES", 2400, 0}, {"XDR", 80_6000, 0},
	}
}

// quoteSpecs describes the quotes of all institutions, grouped by institution. Spreads are medians of 2026.
func quoteSpecs() []quoteSpec {
	usd, usdEUR := []string{"USD"}, []string{"USD", "EUR"}
	fiveCurrencies := []string{"USD", "EUR", "GBP", "CHF", "CAD"}
	return []quoteSpec{
		{institution: "bcrd", spread: 3500, currencies: usd, dating: businessDays},
		{institution: "bcrd", published: singleRate, dating: businessDays, currencies: []string{
			"EUR", "GBP", "CHF", "CAD", "AUD", "BRL", "CNY", "DKK", "JPY", "NOK", "SEK", "VES", "XDR",
		}},
		{institution: "banreservas", spread: 3_0000, currencies: usdEUR},
		{institution: "popular", spread: 3_9500, currencies: usdEUR},
		{institution: "bhd", spread: 3_7000, currencies: usdEUR},
		{institution: "scotiabank", spread: 3_7000, currencies: usd, channel: engine.Branch},
		{institution: "scotiabank", spread: 3_5000, currencies: usd, channel: engine.Digital},
		{institution: "scotiabank", spread: 3_7000, currencies: []string{"EUR", "CAD"}},
		{institution: "santa-cruz", spread: 3_0000, currencies: usdEUR},
		{institution: "promerica", spread: 3_5000, currencies: usdEUR},
		{institution: "lopez-de-haro", spread: 2_8000, currencies: usdEUR},
		{institution: "bdi", spread: 2_2500, currencies: usdEUR, dating: minuteDated},
		{institution: "vimenca", spread: 2_7000, currencies: fiveCurrencies},
		{institution: "caribe", spread: 2_5000, currencies: usdEUR},
		{institution: "ademi", spread: 2_4000, currencies: usd, published: alwaysBoth},
		{institution: "lafise", spread: 3_3000, currencies: usdEUR, dating: dayDated},
		{institution: "banesco", spread: 3_0000, currencies: usdEUR, dating: dayDated},
		{institution: "activo", spread: 3_1000, currencies: usdEUR},
		{institution: "qik", spread: 2_6000, currencies: usd, channel: engine.Digital, published: alwaysBoth},
		{institution: "jmmb", spread: 2_9000, currencies: usdEUR},
		{institution: "union", spread: 2_1000, currencies: usd, published: alwaysBoth},
		{institution: "motor-credito", spread: 1_7000, currencies: usd},
		{institution: "bonanza", spread: 2_0000, currencies: usd, published: alwaysBoth},
		{institution: "empire", spread: 2_5000, currencies: usdEUR, published: alwaysBoth},
		{institution: "apap", spread: 3_0000, currencies: usdEUR},
		{institution: "cibao", spread: 3_2000, currencies: usdEUR},
		{institution: "la-nacional", spread: 2_6000, currencies: usdEUR, published: alwaysBoth},
		{institution: "alaver", spread: 2_7000, currencies: usd},
		{institution: "peravia", spread: 2_4000, currencies: usd, published: alwaysBoth},
		{institution: "duarte", spread: 2_5000, currencies: usd},
		{institution: "mocana", spread: 2_4000, currencies: usd, published: buyOnly},
		{institution: "romana", spread: 2_6000, currencies: usd, published: buyOnly},
		{institution: "abonap", spread: 2_2000, currencies: usd},
		{institution: "caribe-express", spread: 1_2000, currencies: fiveCurrencies, published: buyOnly},
		{institution: "agente-la-nacional", spread: 1_0000, currencies: fiveCurrencies, published: buyOnly},
		{institution: "quezada", spread: 1_2500, currencies: usd, published: alwaysBoth},
		{institution: "quezada", spread: 1_2000, currencies: fiveCurrencies, channel: engine.Cash},
		{institution: "girosol", spread: 1_2500, currencies: usd},
		{institution: "moneycorps", spread: 8000, currencies: usd},
		{institution: "capla", spread: 1_2000, currencies: usd},
		{institution: "taveras", spread: 7500, currencies: usd},
		{institution: "cambio-extranjero", spread: 8000, currencies: usd},
		{institution: "gamelin", spread: 9000, currencies: usd},
		{institution: "rm", spread: 7000, currencies: usd},
		{institution: "sct", spread: 1_0000, currencies: usd},
		{institution: "panora", spread: 8500, currencies: usdEUR},
		{institution: "imbert-y-balbuena", spread: 9500, currencies: usdEUR},
	}
}
