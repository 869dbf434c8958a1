package engine

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// extended extends a catalogue with a valid file.
func extended(t testing.TB, c *Catalogue, file string) *Catalogue {
	t.Helper()
	next, err := c.Extend(strings.NewReader(file), "own.json")
	if err != nil {
		t.Fatalf("extend with %s: %v", file, err)
	}
	return next
}

func TestWithSources(t *testing.T) {
	before := DefaultCatalogue()
	after := before.WithSources(Source{ID: "zz-site", Priority: 7}, Source{ID: "manual", Name: "Mesa"}, Source{ID: "aa-site"})
	var ids []string
	for _, source := range after.Sources() {
		ids = append(ids, source.ID)
	}
	if !slices.Equal(ids, []string{"aa-site", "manual", "zz-site"}) || after.Source("zz-site").Priority != 7 || after.Source("manual").Name != "Mesa" {
		t.Errorf("the sources are %v", ids)
	}
	if len(before.Sources()) != 1 || before.HasSource("zz-site") || !before.Source("manual").Manual {
		t.Error("the catalogue that was extended has changed")
	}
}

func TestP4_CatalogueListsAreSorted(t *testing.T) {
	for _, c := range []*Catalogue{
		DefaultCatalogue(),
		extended(t, DefaultCatalogue(), `{"institutions":[{"id":"aa","name":"A","type":"bank"}],"currencies":[{"code":"MXN","name":"Peso"}],
			"sources":[{"id":"zz"},{"id":"aa"}]}`),
	} {
		byID := func(a, b *Institution) int { return strings.Compare(a.ID, b.ID) }
		byCode := func(a, b *Currency) int { return strings.Compare(a.Code, b.Code) }
		bySource := func(a, b Source) int { return strings.Compare(a.ID, b.ID) }
		if !slices.IsSortedFunc(c.Institutions(), byID) || !slices.IsSortedFunc(c.Currencies(), byCode) || !slices.IsSortedFunc(c.Sources(), bySource) {
			t.Error("a list is not sorted")
		}
	}
}

// Package httpapi looks up texts of a buffer that it reuses.
func TestCatalogue_LookupsDoNotAllocate(t *testing.T) {
	c, currency, institution := DefaultCatalogue(), []byte("USD"), []byte("agente-la-nacional")
	if got := testing.AllocsPerRun(100, func() {
		_, _ = c.Currency(string(currency))
		_, _ = c.Institution(string(institution))
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func TestExtend_AddsAndReplaces(t *testing.T) {
	before := testCatalogue()
	after := extended(t, before, `{
		"institutions": [{"id": "popular", "name": "Popular", "type": "bank", "active": false},
			{"id": "new", "name": "Nueva", "type": "cooperative", "website": "https://nueva.example/?a=b#c", "contact": "809-555-0100"}],
		"currencies": [{"code": "USD", "name": "Dólar", "lowest": "30.5"}, {"code": "MXN", "name": "Peso mexicano", "symbol": "MX$"}],
		"sources": [{"id": "infodolar", "priority": 9007199254740991}, {"id": "desk", "name": "Mesa", "url": "http://desk.example/",
			"priority": 0, "upstreamSource": "Otra", "lifetime": "1h30m", "manual": true}]}`)
	if got, _ := after.Institution("popular"); *got != (Institution{ID: "popular", Name: "Popular", Type: Bank}) {
		t.Errorf("a replaced institution keeps something: %+v", got)
	}
	want := Institution{ID: "new", Name: "Nueva", Type: Cooperative, Website: "https://nueva.example/?a=b#c", Contact: "809-555-0100", Active: true}
	if got, ok := after.Institution("new"); !ok || *got != want {
		t.Errorf("a new institution: %+v", got)
	}
	if got, _ := after.Currency("USD"); got.Symbol != "USD" || got.Lowest.String() != "30.5" || !got.Highest.IsNull() {
		t.Errorf("a replaced currency: %+v", got)
	}
	if got := after.Source("infodolar"); !reflect.DeepEqual(got, Source{ID: "infodolar", Name: "infodolar", Priority: 9007199254740991, Lifetime: LifetimeDefault}) {
		t.Errorf("a replaced source: %+v", got)
	}
	desk := Source{ID: "desk", Name: "Mesa", URL: "http://desk.example/", UpstreamSource: "Otra", Lifetime: 90 * time.Minute, Manual: true}
	if got := after.Source("desk"); !reflect.DeepEqual(got, desk) {
		t.Errorf("a new source: %+v", got)
	}
	if len(after.Institutions()) != 48 || len(after.Currencies()) != 15 || len(after.Sources()) != 6 {
		t.Errorf("%d institutions, %d currencies, %d sources", len(after.Institutions()), len(after.Currencies()), len(after.Sources()))
	}
	if got, _ := before.Institution("popular"); !got.Active || len(before.Institutions()) != 47 || before.Source("infodolar").Priority != 200 {
		t.Error("the catalogue that was extended has changed")
	}
}

// oneEntry is a file with one entry in one list.
func oneEntry(list, fields string) string { return `{"` + list + `":[{` + fields + `}]}` }

// catalogueFaults are files with one fault each, and a part of the error.
func catalogueFaults() map[string]string {
	all := fileFaults()
	maps.Copy(all, institutionFaults())
	maps.Copy(all, currencyFaults())
	maps.Copy(all, sourceFaults())
	return all
}

func fileFaults() map[string]string {
	return map[string]string{
		``:                                       `not one JSON object`,
		`[]`:                                     `the file: is not a JSON object`,
		`null`:                                   `the file: is not a JSON object`,
		"{\n\n\"institutions\":[,]}":             `line 3: the file is not one JSON object`,
		`{} {}`:                                  `after top-level value`,
		"\xef\xbb\xbf{}":                         `byte order mark`,
		"{\"\xff\":1}":                           `not UTF-8`,
		`{"banks":[]}`:                           `the file: unknown field "banks"`,
		`{"sources":[],"sources":[]}`:            `has the key "sources" twice`,
		`{"sources":{}}`:                         `the file: cannot unmarshal object into Go struct field .Sources`,
		`{"sources":[7]}`:                        `sources[0]: cannot unmarshal number`,
		strings.Repeat(" ", catalogueBytesMax+1): `longer than 1048576 bytes`,
	}
}

func institutionFaults() map[string]string {
	bank := func(rest string) string { return oneEntry("institutions", `"id":"x","name":"X","type":"bank"`+rest) }
	return map[string]string{
		bank(`,"label":"X"`):                                                `institutions[0]: unknown field "label"`,
		bank(`,"id":"y"`):                                                   `has the key "id" twice`,
		bank(`,"active":"yes"`):                                             `institutions[0]: cannot unmarshal string into Go struct field Institution.active`,
		bank(`,"contact":5`):                                                `institutions[0]: cannot unmarshal number into Go struct field Institution.contact`,
		bank(`,"contact":"a\u0000b"`):                                       `contact: has a control character`,
		bank(`,"contact":"\ud800"`):                                         `contact: has a control character`,
		bank(`,"website":"x.example"`):                                      `website: is not a web address`,
		bank(`,"website":"ftp://x.example"`):                                `website: is not a web address`,
		bank(`,"website":"https://"`):                                       `website: is not a web address`,
		bank(`,"website":"https://a b"`):                                    `website: is not a web address`,
		bank(`,"website":"https://a.example/ñ"`):                            `website: is not a web address`,
		bank(`,"website":"https://a/%zz"`):                                  `website: is not a web address`,
		bank(`,"website":"https://me:pw@a/"`):                               `website: is not a web address`,
		bank(`,"website":"javascript:alert(1)"`):                            `website: is not a web address`,
		oneEntry("institutions", `"id":"x","type":"bank"`):                  `institutions[0].name: is missing`,
		oneEntry("institutions", `"id":"x","name":"","type":"bank"`):        `name: is missing or empty`,
		oneEntry("institutions", `"name":"X","type":"bank"`):                `institutions[0].id: is missing`,
		oneEntry("institutions", `"id":"Popular","name":"X","type":"bank"`): `institutions[0].id: "Popular" is not of the form`,
		oneEntry("institutions", `"id":"","name":"X","type":"bank"`):        `id: is missing or empty`,
		oneEntry("institutions", `"id":"`+strings.Repeat("a", 81)+`","name":"X","type":"bank"`):      `is not of the form`,
		oneEntry("institutions", `"id":"x","name":"X","type":"Bank"`):                                `type: is not one of bank, association, exchange`,
		oneEntry("institutions", `"id":"x","name":"X"`):                                              `type: is not one of`,
		oneEntry("institutions", `"id":"x","name":"`+strings.Repeat("ñ", 201)+`","type":"bank"`):     `name: has 201 characters; shorten it to 200`,
		`{"institutions":[{"id":"x","name":"X","type":"bank"},{"id":"x","name":"Y","type":"bank"}]}`: `institutions[1]: x stands already in institutions[0]`,
	}
}

func currencyFaults() map[string]string {
	usd := func(rest string) string { return oneEntry("currencies", `"code":"USD","name":"Dólar"`+rest) }
	return map[string]string{
		oneEntry("currencies", `"code":"usd","name":"Dólar"`):                  `code: "usd" is not of the form ^[A-Z]{3}$`,
		oneEntry("currencies", `"code":"USDX","name":"Dólar"`):                 `code: "USDX" is not of the form`,
		oneEntry("currencies", `"name":"Dólar"`):                               `code: is missing`,
		oneEntry("currencies", `"code":"DOP","name":"Peso"`):                   `take the entry out`,
		oneEntry("currencies", `"code":"USD"`):                                 `name: is missing`,
		usd(`,"lowest":"100","highest":"40"`):                                  `lowest 100 is above highest 40`,
		usd(`,"lowest":40`):                                                    `currencies[0]: cannot unmarshal number into Go struct field currencyEntry.Lowest`,
		usd(`,"highest":"1e2"`):                                                `highest: not a decimal`,
		usd(`,"symbol":"12345678901234567"`):                                   `symbol: has 17 characters; shorten it to 16`,
		`{"currencies":[{"code":"USD","name":"a"},{"code":"USD","name":"b"}]}`: `currencies[1]: USD stands already in currencies[0]`,
	}
}

func sourceFaults() map[string]string {
	source := func(rest string) string { return oneEntry("sources", `"id":"x"`+rest) }
	return map[string]string{
		source(`,"priority":-1`):                                       `priority: is not a whole number`,
		source(`,"priority":1.5`):                                      `sources[0]: cannot unmarshal number 1.5 into Go struct field sourceEntry.Priority`,
		source(`,"priority":9007199254740992`):                         `priority: is not a whole number`,
		source(`,"lifetime":"26"`):                                     `lifetime: is not a duration from 1s to 8784h0m0s`,
		source(`,"lifetime":"0s"`):                                     `lifetime: is not a duration`,
		source(`,"lifetime":"-1h"`):                                    `lifetime: is not a duration`,
		source(`,"lifetime":"9000h"`):                                  `lifetime: is not a duration`,
		source(`,"manual":1`):                                          `sources[0]: cannot unmarshal number into Go struct field sourceEntry.Manual`,
		source(`,"url":"infodolar"`):                                   `url: is not a web address`,
		source(`,"upstreamSource":"` + strings.Repeat("ñ", 201) + `"`): `upstreamSource: has 201 characters; shorten it to 200`,
		`{"sources":[{"id":"x"},{"id":"x"}]}`:                          `sources[1]: x stands already in sources[0]`,
	}
}

func TestExtend_TellsEachFault(t *testing.T) {
	for file, want := range catalogueFaults() {
		got, err := DefaultCatalogue().Extend(strings.NewReader(file), "own%s.json")
		if got != nil || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "own%s.json: ") {
			t.Errorf("%.100s:\n%v\nwant: own%%s.json ... %s", file, err, want)
		}
	}
}

func TestExtend_FaultControl(t *testing.T) {
	extended(t, DefaultCatalogue(), `{
		"institutions": [{"id":"x","name":"X","type":"bank","contact":"","website":"","description":"Una línea.","active":true}],
		"currencies": [{"code":"USD","name":"Dólar","symbol":"1234567890123456","lowest":"40","highest":"40"}],
		"sources": [{"id":"`+strings.Repeat("a", 80)+`","upstreamSource":"`+strings.Repeat("ñ", 200)+`","lifetime":"8784h"}]}`)
}

func TestExtend_TellsAllFaultsAtOnce(t *testing.T) {
	for file, want := range map[string]string{
		`{"x": 1, "institutions": [{"id": "A%d", "name": "X", "type": "y"}, 5], "currencies": [{"code": "usd", "name": "Dólar", "lowest": "x"}],
			"sources": [{"id": "s", "lifetime": "x", "priority": -1}]}`: "the file, institutions[0].id, institutions[0].type, institutions[1], currencies[0].code, currencies[0].lowest, sources[0].lifetime, sources[0].priority",
		`{"currencies": [{"code": "DOP", "name": "P"}, {"code": "DOP", "name": "P"}]}`: "currencies[0], currencies[1], currencies[1]",
	} {
		_, err := DefaultCatalogue().Extend(strings.NewReader(file), "own.json")
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			t.Fatalf("no joined error: %v", err)
		}
		var places []string
		for _, fault := range joined.Unwrap() {
			place, _, _ := strings.Cut(strings.TrimPrefix(fault.Error(), "own.json: "), ": ")
			places = append(places, place)
		}
		wanted := strings.Split(want, ", ")
		slices.Sort(places)
		slices.Sort(wanted)
		if !slices.Equal(places, wanted) {
			t.Errorf("%v\nplaces %q\nwant   %q", err, places, wanted)
		}
	}
}

func TestExtend_TellsAReaderThatFails(t *testing.T) {
	broken := errors.New("broken pipe")
	if got, err := DefaultCatalogue().Extend(iotest.ErrReader(broken), "own.json"); got != nil || !errors.Is(err, broken) || !strings.Contains(err.Error(), "own.json") {
		t.Errorf("%v, %v", got, err)
	}
}

// TestNearest: a mistyped id, code or name finds its entry; an inactive institution and what resembles nothing do not.
func TestNearest(t *testing.T) {
	c := DefaultCatalogue()
	for text, want := range map[string]string{
		"popuar": "popular", "POPULAR": "popular", "bhdd": "bhd", "banco populr dominicano": "popular", "": "", "zzzzzz": "",
		strings.Repeat("popular", 1000): "",
	} {
		if got := c.NearestInstitution(text); got != want {
			t.Errorf("%.30q: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"US": "USD", "usd": "USD", "euros": "EUR", "XQZ": ""} {
		if got := c.NearestCurrency(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
