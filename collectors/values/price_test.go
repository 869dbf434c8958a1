package values

import (
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func TestReadPrice_Forms(t *testing.T) {
	for mark, prices := range map[DecimalMark]map[string][]string{
		AnyMark: {
			"58.90": {
				"58.90", "RD$58.90", "US$58.90", "RD $58.90", "\u00a058.90\u2009", "\u202f58.90", "\ufeff58.90\u200b", "\n  58.90\r\n",
			},
			"58": {"58"}, "58.9582": {"58.9582"}, "62.90": {"$62.90", "$62.90 = $0.00"}, "64.05": {"RD$ 64.05", "rd$\u00a064.05"},
			"66.80": {"€ 66.80"}, "57.10": {"57.10 DOP", "57.10DOP"}, "58.10": {"DOP: 58.10", "USD: 58.10", "DOP : 58.10", "58.10 RD$"},
			"56.60": {"56,60"}, "56.6": {"56,6"}, "0.5582": {"0,5582"}, "0.558": {"0,558"}, "5640.123": {"5640,123"}, // no thousands begin with 0
			"1234.56": {"1.234,56"}, "64050.00": {"64,050.00"}, "64.050": {"64.050"}, "1234567": {"1,234,567", "1.234.567"},
			"6405000.00": {"6405000.00"}, "0": {"0"}, "0.00": {"0.00", "$0.00", "$0.00 = $0.00"},
			"": {
				"", " \u00a0\t", "-", "--", "—", "N/A", "n/a", "n/d", "N/D", "RD$ -", "$", "- = $0.00", "999999", "999999.00", "$999999.00",
			},
		},
		Point: {"62.90": {"$62.90 = -$0.10", "$62.90=$0.00"}, "64050.00": {"64,050.00"}, "64050": {"64,050"}, "": {"999,999"}},
		Comma: {"56.60": {"56,60"}, "56.605": {"56,605"}, "1234.56": {"1.234,56"}, "64050": {"64.050"}},
	} {
		for want, texts := range prices {
			for _, text := range texts {
				if got, err := ParsePrice(text, mark, 8); err != nil || got != want {
					t.Errorf("ReadPrice(%q, %q) = %q, %v; want %q", text, mark, got, err, want)
				}
			}
		}
	}
}

// Whatever is not certainly one price is refused. Each of these has been, or could be, on a page of rates.
func TestI3_ReadPriceGuessesNothing(t *testing.T) {
	type reading struct {
		mark DecimalMark
		most int
	}
	for how, texts := range map[reading][]string{
		{AnyMark, 8}: {
			"12 33", "58.90 1", "58.90 59.30", "58.90|59.30", "58.90\u00a01", "58.90/59.30", "5 8.90", "58. 90", "58 .90", "58.90\u200b1",
			"5.89e1", "5E1", "NaN", "Inf", "0x3A", "-58.90", "+58.90", "−58.90", "(58.90)", "$-58.90",
			"58.90¹", "58.9²", "58.90*", "58½", "①", "５８.９０", "٥٨", "58。90",
			"Compra 58.90", "58.90 compra", "58.90%", "58.O0", "l58.90", "64,050", "$64,050", "1,23.45", "1234,567.00",
			"0,123,456", "1,234.567,8", "58.90.10", "58..90", "58,,90", "1,234,56", "1.234.56", ".90", "58.", "58,", ",5", ".", ",",
			"58.949999999999996", "$62.90 = compra", "US$1 = RD$58.90", "1 = 58.90", "€1 = $1.08",
			"$1.00 = $58.90", "USD 1 = 0.50", "62.90 = 63.10 = 1", "62.90 =", "RD$60.10 = RD$7", "58\ufffd90", "58\x0090", "58.90 DOP DOP", "$$58.90",
			"123456789012", strings.Repeat("9", 100), strings.Repeat(" ", 300) + "58.90",
		},
		{Point, 8}: {"56,60", "64,0500"}, {Comma, 8}: {"58.90"},
		{AnyMark, 2}: {"58.905", "58.900"}, {AnyMark, 0}: {"58.9"}, {AnyMark, 20}: {"58.123456789"},
	} {
		for _, text := range texts {
			if got, err := ParsePrice(text, how.mark, how.most); err == nil {
				t.Errorf("ReadPrice(%q, %q, %d) = %q, want an error", text, how.mark, how.most, got)
			}
		}
	}
}

// priceFault holds a price to its promise: a decimal whose digits stand in the text in this order, with no more
// decimals than allowed.
func priceFault(text, price string, most int) string {
	if price == "" {
		return ""
	}
	if _, err := engine.ReadDecimal(price); err != nil {
		return err.Error()
	}
	if _, fraction, _ := strings.Cut(price, "."); len(fraction) > most {
		return "too many decimals"
	}
	rest := text
	for _, digit := range strings.ReplaceAll(price, ".", "") {
		at := strings.IndexRune(rest, digit)
		if at < 0 {
			return "digits that are not in the text"
		}
		if strings.ContainsAny(rest[:at], "0123456789") {
			return "digits of the text are passed over"
		}
		rest = rest[at+1:]
	}
	return ""
}

// A reader that rescales, rounds, invents or passes over digits is found.
func TestI2_PriceControl(t *testing.T) {
	for _, c := range [][2]string{
		{"58.90", "58.901"}, {"64,050", "64.50"}, {"1 58.90", "58.90"}, {"58.90", "0.5890"}, {"58.90", "1e3"}, {"5890", "58.123456789"},
	} {
		if priceFault(c[0], c[1], 8) == "" {
			t.Errorf("%q for %q is not found", c[1], c[0])
		}
	}
}

func FuzzReadPrice(f *testing.F) {
	for _, text := range []string{"58.90", "RD$ 1.234,56", "$62.90 = $0.00", "64,050", "N/A", "12 33", "58.90¹", "999999", "\u00a058"} {
		f.Add(text, byte(0), 8)
		f.Add(text, byte(1), 2)
	}
	f.Fuzz(func(t *testing.T, text string, mark byte, most int) {
		marks := []DecimalMark{AnyMark, Point, Comma}
		most = min(max(most, 0), 8)
		price, err := ParsePrice(text, marks[int(mark)%len(marks)], most)
		if err != nil {
			return
		}
		if fault := priceFault(text, price, most); fault != "" {
			t.Fatalf("ReadPrice(%q) = %q: %s", text, price, fault)
		}
	})
}

func TestNormalise(t *testing.T) {
	for _, c := range [][2]string{
		{"Dólar (US) Sucursales", "dolar (us) sucursales"},
		{"D\u00f3lar\u00a0(US)", "dolar (us)"},
		{"Do\u0301lar  \u00a0(US) ", "dolar (us)"},
		{"Dólar (US) Canales Digitales*", "dolar (us) canales digitales"},
		{"Dólar (US) Canales Digitales ¹", "dolar (us) canales digitales"},
		{"*BOLIVAR FUERTE VENEZOLANO", "bolivar fuerte venezolano"},
		{"REAL BRASILEÑO", "real brasileno"},
		{"Año", "ano"}, {"AÑO", "ano"}, {"Día:", "dia"},
		{" Abonap ", "abonap"}, {"EUROS.", "euros"}, {"E.U.", "e.u"},
		{"Dólares\r\n  US$", "dolares us$"},
		{"ﬁnanciera", "financiera"}, {"ＢＨＤ", "bhd"},
		{"Agente de Cambio La Nacional", "agente de cambio la nacional"},
		{"La\u200b Nacional", "la nacional"}, {"Na\u00adcional", "nacional"},
		{"840", "840"}, {"№ 5", "№ 5"},
		{"", ""}, {" :*. ", ""}, {"\u00a0", ""},
	} {
		if got := NormaliseLabel(c[0]); got != c[1] {
			t.Errorf("Normalise(%q) = %q, want %q", c[0], got, c[1])
		}
		if twice := NormaliseLabel(c[1]); twice != c[1] {
			t.Errorf("Normalise(%q) = %q: it is normalised already", c[1], twice)
		}
	}
}

// A number of JSON or of a workbook may mean that there is no price, as a text may.
func TestParseNumber_Placeholder(t *testing.T) {
	for text, want := range map[string]string{"999999": "", "999999.0": "", "999998": "999998", "99999.9": "99999.9"} {
		if got, err := ParseNumber(text, Point, 4); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestT10_DateForms(t *testing.T) {
	for form, days := range map[DateForm]map[string][]string{ // by what is read: a day, and a moment
		ISODate: {
			"2026-09-17 ": {
				"2026-09-17", "2026-09-17T00:00:00Z", "2026-09-17T00:00:00", "2026-09-17T00:00:00.000Z", "2026-09-17 00:00", "2026-09-17T00:00:00-04:00",
			},
			"2024-02-29 ": {" 2024-02-29\u00a0"},
		},
		DayTime: {
			"2026-09-17 2026-09-17T12:15:00Z": {"17/09/2026 08:15", "17/09/2026 8:15"},
			"2026-09-17 2026-09-18T03:59:58Z": {"17/09/2026 23:59:58"},
			"2026-09-17 2026-09-18T00:15:00Z": {"17/09/2026, 08:15 p. m."},
			"2026-09-17 2026-09-17T04:15:00Z": {"17/09/2026 12:15 AM"},
			"2026-09-17 2026-09-17T16:15:00Z": {"17/09/2026 12:15 pm"},
			"2026-09-17 2026-09-17T17:15:00Z": {"17/09/2026 - 1:15PM"},
		},
		Instant: {
			"2026-09-17 2026-09-18T02:30:00Z": {"2026-09-18T02:30:00Z"},
			"2026-09-17 2026-09-17T16:30:00Z": {"2026-09-17T12:30:00-04:00", "2026-09-17T12:30:00", "2026-09-17 12:30:00.123456", "jueves, 17 de septiembre de 2026 12:30 p", "17-sep-2026, 12:30"},
			"2026-01-22 2026-01-22T14:30:00Z": {"Jueves, 22 de enero de 2026 10:30 a", "22 de enero de 2026 10:30 a. m.", "22/ene/2026 10:30AM"},
			"2026-01-23 2026-01-23T18:45:00Z": {"viernes, 23 de enero de 2026 02:45 p"},
			"2026-01-22 2026-01-22T04:05:00Z": {"jueves, 22 de enero de 2026 12:05 a"},
		},
	} {
		for want, texts := range days {
			for _, text := range texts {
				day, moment, err := ParseDate(text, form)
				got := day.String() + " "
				if !moment.IsZero() {
					got += moment.Format(time.RFC3339)
				}
				if err != nil || got != want {
					t.Errorf("%s %q is %s, %v; want %s", form, text, got, err, want)
				}
			}
		}
	}
}

func TestT10_InvalidDates(t *testing.T) {
	for _, c := range []struct {
		form DateForm
		text string
	}{
		{Instant, "22 de enero de 2026"}, {Instant, "22 de enero de 2026 14:30 p"}, {Instant, "22/01/2026 10:30 a"}, {Instant, "30 de febrero de 2026 10:30 a"},
		{Instant, "22 de enero de 2026 10:30 x"}, {ISODate, ""}, {ISODate, "17/09/2026"}, {ISODate, "2026-9-17"}, {ISODate, "26-09-17"}, {ISODate, "2026-02-29"}, {ISODate, "2026-13-01"},
		{ISODate, "2026-09-17T03:00:00Z"}, {ISODate, "2026-09-17 y"}, {ISODate, "0000-01-01"}, {ISODate, "1899-12-31"}, {ISODate, "3000-01-01"},
		{ISODate, "２０２６-09-17"}, {ISODate, "2026-09-17T00:00:00Z 2026-09-18"},

		{DayTime, "17/09-2026 08:15"}, {DayTime, "17/09/2026"}, {DayTime, "17/09/26 08:15"}, {DayTime, "17/09/2026 24:00"}, {DayTime, "17/09/2026 08:60"},
		{DayTime, "17/09/2026 13:00 pm"}, {DayTime, "17/09/2026 0:30 am"}, {DayTime, "31/09/2026 08:15"}, {DayTime, "17/09/2026 08:15:61"},
		{Instant, "17 de 2026"}, {Instant, "17 de se de 2026"}, {Instant, "17 de xyz de 2026"}, {Instant, "31-sep-2026"},
		{Instant, "17-sep-26"}, {Instant, "Enero-Marzo"}, {Instant, "septiembre 2026"}, {Instant, "17 de january de 2026"},
		{Instant, "2026-09-17"}, {Instant, "2026-09-17T25:00:00Z"}, {Instant, "2026-09-17T12:30:00 -0400"},
		{Instant, "2026-09-17T12:30:00+99:99"}, {Instant, "0001-01-01T00:00:00Z"},
		{"", "2026-09-17"},
	} {
		if day, moment, err := ParseDate(c.text, c.form); err == nil {
			t.Errorf("%s %q is %s %s, want an error", c.form, c.text, day, moment)
		}
	}
}

func FuzzReadDate(f *testing.F) {
	for _, text := range []string{
		"2026-09-17", "2026-09-17T00:00:00Z", "17/09/2026 08:15 p. m.", "17 de septiembre de 2026", "2026-09-17T12:30:00-04:00", "1-ene-2026", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range []DateForm{ISODate, DayTime, Instant} {
			day, moment, err := ParseDate(text, form)
			switch {
			case err != nil && (!day.IsZero() || !moment.IsZero()):
				t.Fatalf("%s %q: an error with %s %s", form, text, day, moment)
			case err == nil && (day.IsZero() || day.String() < "1899-12-31" || day.String() > "3000-01-01"):
				t.Fatalf("%s %q is %s", form, text, day)
			case !moment.IsZero() && engine.DateOf(moment) != day:
				t.Fatalf("%s %q is %s and the moment %s", form, text, day, moment)
			}
		}
	})
}

// The labels that definitions named one by one before there was the dictionary.
func TestLabelWords(t *testing.T) {
	labelsOf := map[string]string{
		"CAD ": `CAD | DOLARES CANADIENSES | Dólar (CA) | Dólar (CAD) | Dólar Canadiense | Dólar Canadiense (CA) | Dólar Canadiense (CAD) | 
			Dólar canadiense | Dólares canadienses`,
		"CHF ": `CHF | FRANCOS SUIZOS | Franco suizo | Francos suizos`,
		"EUR ": `EU | EUR | EUR$ | EUROS | Euro | Euro (EU) | Euro (EUR) | Euro (€) | Euro EUR | Euro € | Euros | Euros (EUR) | Euros (€) | 
			€`,
		"GBP ": `GBP | LIBRAS ESTERLINAS | Libra | Libra esterlina | Libras | Libras esterlinas`,
		"USD ": `DOLARES AMERICANOS | Dólar | Dólar americano | Dólar estadounidense | Dólares | Dólares americanos | 
			Dólares estadounidenses | US | US Dollar | US Dólar | US Dólares | US$ | USD`,
		"USD buy":  `Compra USD | Compra US $ | Compra dólares`,
		"EUR sell": `Venta euro | Venta € | Venta: EUR`,
	}
	for _, name := range []string{"Dólar", "Dólares"} {
		for _, sign := range []string{"(US$)", "(US)", "(USD)", "US", "US$", "USD"} {
			for channel, words := range map[string]string{"": "", "branch": "Sucursales", "digital": "Canales Digitales"} {
				labelsOf["USD "+channel] += "|" + name + " " + sign + " " + words
			}
		}
	}
	for want, labels := range labelsOf {
		for label := range strings.SplitSeq(strings.Trim(labels, "|"), "|") {
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
