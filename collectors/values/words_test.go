package values

import (
	"strings"
	"testing"
)

// The labels that definitions named one by one before there was the dictionary.
func TestLabelWords(t *testing.T) {
	for want, labels := range map[string]string{
		"CAD ": `CAD | DOLARES CANADIENSES | Dólar (CA) | Dólar (CAD) | Dólar Canadiense | Dólar Canadiense (CA) | Dólar Canadiense (CAD) | 
			Dólar canadiense | Dólares canadienses`,
		"CHF ": `CHF | FRANCOS SUIZOS | Franco suizo | Francos suizos`,
		"EUR ": `EU | EUR | EUR$ | EUROS | Euro | Euro (EU) | Euro (EUR) | Euro (€) | Euro EUR | Euro € | Euros | Euros (EUR) | Euros (€) | 
			€`,
		"GBP ": `GBP | LIBRAS ESTERLINAS | Libra | Libra esterlina | Libras | Libras esterlinas`,
		"USD ": `DOLARES AMERICANOS | Dólar | Dólar (US$) | Dólar (US) | Dólar (USD) | Dólar US | Dólar US$ | Dólar USD | Dólar americano | 
			Dólar estadounidense | Dólares | Dólares (US$) | Dólares (US) | Dólares (USD) | Dólares US | Dólares US$ | Dólares USD | 
			Dólares americanos | Dólares estadounidenses | US | US Dollar | US Dólar | US Dólares | US$ | USD`,
		"USD branch": `Dólar (US$) Sucursales | Dólar (US) Sucursales | Dólar (USD) Sucursales | Dólar US Sucursales | Dólar US$ Sucursales | 
			Dólar USD Sucursales | Dólares (US$) Sucursales | Dólares (US) Sucursales | Dólares (USD) Sucursales | 
			Dólares US Sucursales | Dólares US$ Sucursales | Dólares USD Sucursales`,
		"USD digital": `Dólar (US$) Canales Digitales | Dólar (US) Canales Digitales | Dólar (USD) Canales Digitales | 
			Dólar US Canales Digitales | Dólar US$ Canales Digitales | Dólar USD Canales Digitales | Dólares (US$) Canales Digitales | 
			Dólares (US) Canales Digitales | Dólares (USD) Canales Digitales | Dólares US Canales Digitales | 
			Dólares US$ Canales Digitales | Dólares USD Canales Digitales`,
		"USD buy":  `Compra USD | Compra US $ | Compra dólares`,
		"EUR sell": `Venta euro | Venta € | Venta: EUR`,
	} {
		for label := range strings.SplitSeq(labels, "|") {
			currency, channel, side, known := LabelWords(NormaliseLabel(label))
			if got := currency + " " + channel + side; !known || got != want {
				t.Errorf("%q: %q, %v; want %q", label, got, known, want)
			}
		}
	}
	for label := range strings.SplitSeq(`Peso|RD$|$|Compra|Dólar euro|USD/EUR|Dólar (ayer)|Remesas en dólares|Dólar tarjeta|Yen|Dólar australiano|`+
		`Corona danesa|Dólar referencia|Promedio dólar|Libra escocesa|Dólar Sucursales Digital|Banco Popular|Dólar 2|Euro dólar|`+
		`Franco dólar|Eurobonos|`, "|") {
		if currency, _, _, known := LabelWords(NormaliseLabel(label)); known {
			t.Errorf("%q is read as %s", label, currency)
		}
	}
}

func TestOtherRate(t *testing.T) {
	for text, want := range map[string]string{
		"Dólar compra 58.10 venta RD$ 60.10": "", "Envíos: compra 58.10": "Envíos", "Compra (ayer) 58.10": "ayer", "Euros 66.10": "Euros", "€ 66.10": "€",
		"Dólar canadiense 41.10": "Dólar canadiense", "Promedio 58.10": "Promedio", "Vendemos a 60.10": "Vendemos", "Asociación de Ahorros 58.10": "",
	} {
		side := ""
		if want == "Vendemos" {
			side = "sell"
		}
		if got := OtherRate(text, "USD", side); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
