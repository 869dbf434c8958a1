package source

import (
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/values"
)

// The labels that definitions named one by one before there was the dictionary.
func TestTargetOfWords(t *testing.T) {
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
	} {
		for label := range strings.SplitSeq(labels, "|") {
			target, known := targetOfWords(values.NormaliseLabel(label))
			if got := target.Currency + " " + string(target.Channel); !known || got != want {
				t.Errorf("%q: %q, %v; want %q", label, got, known, want)
			}
		}
	}
	for label := range strings.SplitSeq(`Peso|RD$|$|Compra|Dólar euro|USD/EUR|Dólar (ayer)|Remesas en dólares|Dólar tarjeta|Yen|Dólar australiano|`+
		`Corona danesa|Dólar referencia|Promedio dólar|Libra escocesa|Dólar Sucursales Digital|Banco Popular|Dólar 2|Euro dólar|`+
		`Franco dólar|Eurobonos|`, "|") {
		if target, known := targetOfWords(values.NormaliseLabel(label)); known {
			t.Errorf("%q is read as %+v", label, target)
		}
	}
}
