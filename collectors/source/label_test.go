package source

import "testing"

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
		if got := Normalise(c[0]); got != c[1] {
			t.Errorf("Normalise(%q) = %q, want %q", c[0], got, c[1])
		}
		if twice := Normalise(c[1]); twice != c[1] {
			t.Errorf("Normalise(%q) = %q: it is normalised already", c[1], twice)
		}
	}
}

// Names that contain each other stay different: they are different institutions.
func TestNormalise_TrapsStayApart(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"La Nacional", "Agente de Cambio La Nacional", "Caribe", "Caribe Express", "RM", "RM Express", "Scotiabank",
		"Scotiabank Cambio online", "APAP", "ACAP", "Dólar (US)", "Dólar (CA)", "Euro", "Euros",
	} {
		if other, twice := seen[Normalise(name)]; twice {
			t.Errorf("%q and %q are the same label", name, other)
		}
		seen[Normalise(name)] = name
	}
}

func FuzzNormalise(f *testing.F) {
	for _, text := range []string{"Dólar (US) *", "\u00a0İ", "a\u0301 .", "¹²", ". :a", "ﬁ", "\xff", "각", "ẞ", "ͅ"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Normalise(text)
		if twice := Normalise(once); twice != once {
			t.Fatalf("Normalise(%q) = %q, but twice it is %q", text, once, twice)
		}
		if plain := collapse(once); plain != once {
			t.Fatalf("Normalise(%q) = %q has blanks to spare", text, once)
		}
	})
}
