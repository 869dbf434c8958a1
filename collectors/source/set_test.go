package source_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

func embeddedFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(os.DirFS("."), "definitions/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		must(t, err)
		files[path.Base(name)] = data
	}
	return files
}

// read reads the only definition of a directory. The error has the problems of its file.
func read(name string, data []byte) (*source.Definition, error) {
	set, err := source.NewSet().Extend(fstest.MapFS{name: {Data: data}, "ca/popular.pem": {}}, ".")
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // of each file
		return nil, joined.Unwrap()[0]
	}
	if err != nil {
		return nil, err
	}
	return set.Definitions()[0], nil
}

func TestEmbeddedDefinitionsAreWhole(t *testing.T) {
	set := source.DefaultSet()
	files := embeddedFiles(t)
	if got := len(set.Definitions()); got != len(files) {
		t.Errorf("%d definitions of %d files", got, len(files))
	}
	if err := set.Check(engine.DefaultCatalogue()); err != nil {
		t.Error(err)
	}
	for name, data := range files {
		d, err := read(name, data)
		if err != nil {
			t.Error(err)
			continue
		}
		if name != d.ID+".json" {
			t.Errorf("%s has the source %s", name, d.ID)
		}
		if d.Note == "" {
			t.Errorf("%s says nothing of its evidence and traps in note", d.ID)
		}
		if found, ok := set.Find(d.ID); !ok || found.ID != d.ID {
			t.Errorf("%s is not in the set", d.ID)
		}
	}
	if !slices.IsSortedFunc(set.Definitions(), func(a, b *source.Definition) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("definitions are not by id")
	}
}

func TestEveryInstitutionHasASource(t *testing.T) {
	without := []string{"bancamerica", "progreso", "coopnama", "vega-real"} // banks that are gone, and cooperatives without rates
	spokenFor := map[string]bool{}
	for _, d := range source.DefaultSet().Definitions() {
		if d.Disabled != "" {
			continue
		}
		spokenFor[d.Institution] = true
		for _, page := range d.Pages {
			if page.Extract.Rows != nil {
				for _, target := range page.Extract.Rows.Labels {
					spokenFor[target.Institution] = true
				}
			}
		}
	}
	for _, institution := range engine.DefaultCatalogue().Institutions() {
		if silent := slices.Contains(without, institution.ID); spokenFor[institution.ID] == silent {
			t.Errorf("%s: has a source: %v, want %v", institution.ID, spokenFor[institution.ID], !silent)
		}
	}
}

// Of two sources of an institution one has priority; aggregators come last.
func TestS11_PrioritiesOfTheEmbeddedDefinitions(t *testing.T) {
	type place struct {
		institution string
		channel     engine.Channel
		priority    int64
	}
	first := map[place]string{}
	for _, d := range source.DefaultSet().Definitions() {
		if d.Disabled != "" {
			continue
		}
		if (d.UpstreamSource != "") != (d.Priority >= 200) {
			t.Errorf("%s has the priority %d and repeats %q", d.ID, d.Priority, d.UpstreamSource)
		}
		at := place{d.Institution, d.Channel, d.Priority}
		if other, taken := first[at]; taken && d.Institution != "" && d.ID != "bcrd-currencies" && other != "bcrd-currencies" {
			t.Errorf("%s and %s speak for %s with one priority", other, d.ID, d.Institution)
		}
		first[at] = d.ID
	}
}

func extend(files map[string]string) (*source.Set, error) {
	dir := fstest.MapFS{}
	for name, text := range files {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return source.DefaultSet().Extend(dir, ".")
}

func mustExtend(t *testing.T, files map[string]string) *source.Set {
	t.Helper()
	set, err := extend(files)
	must(t, err)
	return set
}

func TestAnOperatorAddsAndReplacesDefinitions(t *testing.T) {
	set := mustExtend(t, map[string]string{
		"mine.json": textFile, "popular-site.json": fieldsFile, "ca/popular.pem": "PEM", "README.md": "{", "old.json.bak": "{", "sub/x.json": "{",
	})
	popular, _ := set.Find("popular-site")
	if popular.Name != "Sitio web" || popular.CAFile != "ca/popular.pem" || len(popular.Pages[0].Requests) != 2 {
		t.Errorf("popular-site is not replaced as a whole: %+v", popular)
	}
	if string(set.File("popular-site")) != fieldsFile || len(set.File("bhd-site")) == 0 {
		t.Errorf("the files are not those of the definitions: %s", set.File("popular-site"))
	}
	if before, _ := source.DefaultSet().Find("popular-site"); before.Name != "Sitio web de Banco Popular" {
		t.Errorf("the default set has changed: %+v", before)
	}
	if qik, ok := set.Find("qik-site"); !ok || qik.Name != "Qik" {
		t.Errorf("qik-site is %+v", qik)
	}
	if got, want := len(set.Definitions()), len(source.DefaultSet().Definitions()); got != want {
		t.Errorf("%d definitions, want %d", got, want)
	}
}

func TestAnOperatorChangesADefinition(t *testing.T) {
	set := mustExtend(t, map[string]string{
		"a.json": `{"id": "popular-site", "disabled": "Bloqueado desde 2026-10-01"}`,
		"b.json": `{"id": "peravia-site", "disabled": ""}`,
		"d.json": `{"id": "caribe-site", "proxy": "socks5://10.0.0.1:1080"}`,
		"c.json": `{"id": "bhd-site", "priority": 90, "ignoreRobots": true, "caFile": "bhd.pem"}`, "bhd.pem": "PEM",
	})
	popular, _ := set.Find("popular-site")
	before, _ := source.DefaultSet().Find("popular-site")
	if popular.Disabled != "Bloqueado desde 2026-10-01" || before.Disabled != "" || popular.Name != before.Name || len(popular.Pages) != 1 {
		t.Errorf("popular-site is %+v", popular)
	}
	old, _ := source.DefaultSet().Find("peravia-site")
	if after, _ := set.Find("peravia-site"); after.Disabled != "" || !strings.HasPrefix(old.Disabled, "Old: last seen 2020. ") {
		t.Errorf("peravia-site is disabled: %q, before: %q", after.Disabled, old.Disabled)
	}
	if bhd, _ := set.Find("bhd-site"); bhd.Priority != 90 || !bhd.IgnoreRobots || bhd.CAFile != "bhd.pem" || bhd.Disabled != "" {
		t.Errorf("bhd-site is %+v", bhd)
	}
	if caribe, _ := set.Find("caribe-site"); caribe.Proxy != "socks5://10.0.0.1:1080" || len(caribe.Pages) != 1 {
		t.Errorf("caribe-site is %+v", caribe)
	}
}

func TestABrokenDirectoryIsRefusedAsAWhole(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"two problems": {map[string]string{"a.json": "{", "b.json": `{"id": "x-site", "disabled": "x"}`}, []string{"a.json: line 1", "b.json: there is no source x-site"}},
		"one id twice": {map[string]string{"a.json": textFile, "b.json": `{"id": "qik-site", "disabled": "x"}`}, []string{"b.json: the source qik-site is already in a.json"}},
	} {
		_, err := extend(test.files)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
	for want, dir := range map[string]fstest.MapFS{
		"open nowhere": {},
		"pipe.json: want a regular file, found a directory, pipe or device": {"nowhere/pipe.json": {Mode: fs.ModeNamedPipe}},
		"long.json: the file is longer than 1048576 bytes; shorten it":      {"nowhere/long.json": {Data: make([]byte, 1<<20+1)}},
	} {
		if _, err := source.DefaultSet().Extend(dir, "nowhere"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestDefinitionsAreCheckedAgainstTheCatalogue(t *testing.T) {
	unknown := strings.NewReplacer(`"popular"`, `"impopular"`, `"EUR"`, `"XXX"`, "popular-site", "manual", `, "caFile": "ca/popular.pem"`, "").Replace(fieldsFile)
	set := mustExtend(t, map[string]string{"a.json": unknown, "b.json": strings.Replace(jsonFile, `"popular"`, `"nadie"`, 1)})
	err := set.Check(engine.DefaultCatalogue())
	for _, want := range []string{`source manual: there is no institution "impopular"`, `no currency "XXX"`, "reserved for manual rates", `institution "nadie"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestSourcesForTheCatalogue(t *testing.T) {
	set := mustExtend(t, map[string]string{"a.json": fieldsFile, "ca/popular.pem": "PEM"})
	catalogue := engine.DefaultCatalogue().WithSources(set.Sources()...)
	popular := catalogue.Source("popular-site")
	if popular.Priority != 90 || popular.Lifetime.String() != "20h0m0s" || len(popular.PlausibleRanges) != 2 || popular.Name != "Sitio web" ||
		popular.URL != "https://popular.example/tasas" || popular.Manual {
		t.Errorf("popular-site is %+v", popular)
	}
	infodolar := catalogue.Source("infodolar")
	if infodolar.Priority != 200 || infodolar.UpstreamSource != "InfoDolar" {
		t.Errorf("infodolar is %+v", infodolar)
	}
	if manual := catalogue.Source("manual"); !manual.Manual {
		t.Errorf("manual is %+v", manual)
	}
}

func FuzzRead(f *testing.F) {
	for _, data := range embeddedFiles(f) {
		f.Add(data)
	}
	for _, text := range wholeFiles() {
		f.Add([]byte(text))
	}
	for _, b := range brokenDefinitions() {
		f.Add([]byte(strings.Replace(b.file, b.old, b.fresh, 1)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := read("f.json", data)
		if err != nil {
			return
		}
		if again, err := read("f.json", data); err != nil || !reflect.DeepEqual(d, again) {
			t.Fatalf("read\n%+v\nagain\n%+v, %v", d, again, err)
		}
		for page := range d.Pages { // what is accepted can be used: no document makes it our own fault
			_, err := d.Parse(page, &source.Document{Body: []byte("<html><p>58.90</p></html>")})
			var failure *source.Failure
			if errors.As(err, &failure) && failure.Kind == source.Internal {
				t.Fatalf("page %d: %v\n%+v", page, err, d)
			}
		}
	})
}

// The holiday weekend is that of 2026-11-09: a Monday on which neither the central bank nor the banks work.
func TestT3_ExpiryIsTheEarlierOfBothEnds(t *testing.T) {
	local := func(text string) time.Time {
		at, err := time.ParseInLocation("2006-01-02 15:04", text, engine.Location())
		must(t, err)
		return at
	}
	for _, test := range []struct{ id, what, checked, effective, want string }{
		{"scotiabank-site", "undated: 26 h after the check", "2026-11-06 17:00", "", "2026-11-07 19:00"},
		{"scotiabank-site", "a date that the source gives nonetheless ends nothing", "2026-11-06 17:00", "2020-01-01", "2026-11-07 19:00"},
		{"bdi-site", "dated today: the check ends first", "2026-11-06 17:00", "2026-11-06", "2026-11-07 19:00"},
		{"bdi-site", "Friday's value on the Monday holiday is believed", "2026-11-09 17:00", "2026-11-06", "2026-11-10 19:00"},
		{"bdi-site", "and on Tuesday morning", "2026-11-10 08:00", "2026-11-06", "2026-11-11 10:00"},
		{"bdi-site", "but not for ever: five days after Friday's end", "2026-11-11 17:00", "2026-11-06", "2026-11-12 00:00"},
		{"bdi-site", "a frozen page has expired already", "2026-11-20 17:00", "2026-11-06", "2026-11-12 00:00"},
		{"bdi-site", "without a date only the check counts", "2026-11-20 17:00", "", "2026-11-21 19:00"},
		{"bcrd-reference", "checked on Friday, no more answers: over the weekend and the holiday to Tuesday", "2026-11-06 17:00", "2026-11-06", "2026-11-10 19:00"},
		{"bcrd-reference", "checked at 17:00 on the holiday: the date ends first", "2026-11-09 17:00", "2026-11-06", "2026-11-12 00:00"},
		{"bcrd-reference", "Monday 08:00, an ordinary weekend", "2026-11-16 08:00", "2026-11-13", "2026-11-19 00:00"},
		{"bcrd-usd", "the frozen workbook of 2022 expired then", "2026-11-16 08:00", "2022-07-19", "2022-07-25 00:00"},
	} {
		d, known := source.DefaultSet().Find(test.id)
		if !known {
			t.Fatalf("there is no source %s", test.id)
		}
		var effective engine.Date
		if test.effective != "" {
			effective = engine.DateOf(local(test.effective + " 12:00"))
		}
		if got, want := d.ExpiresAt(local(test.checked), effective), local(test.want); !got.Equal(want) {
			t.Errorf("%s, %s: expires at %s, want %s", test.id, test.what, got.In(engine.Location()), want)
		}
	}
}

// A rate with a date is valid for at most five days after it, so that no frozen page is served as current.
func TestT3_DatedSourcesExpireByTheirDate(t *testing.T) {
	for _, d := range source.DefaultSet().Definitions() {
		dated := false
		for _, page := range d.Pages {
			rows := page.Extract.Rows
			dated = dated || page.Extract.Date != nil || page.Extract.Sheet != nil || rows != nil && rows.Date != nil
		}
		want := time.Duration(0)
		if dated {
			want = 120 * time.Hour
		}
		if d.Expiry.AfterDate != want {
			t.Errorf("%s expires %s after its date, want %s", d.ID, d.Expiry.AfterDate, want)
		}
	}
}

var update = flag.Bool("update", false, "write the list of sources in docs/sources.md anew")

// Each built-in definition names the programs that have read its site. Old ones are disabled; a confirmed one is newer
// than a year and parses the answer that confirms it.
func TestEvidence(t *testing.T) {
	samples := map[string]string{ // reduced to what the definition reads
		"bcrd-reference": `{"result": {"actualPurchaseValue": 58.9582, "actualSellingValue": 59.3318, "date": "2026-09-17T00:00:00Z"}, "success": true}`,
		"cibao-site":     `[{"codigoMoneda":"US$","compra":"62.00","nombre":"US$","venta":"64.00"},{"codigoMoneda":"EUR$","compra":"73.00","nombre":"EUR$","venta":"77.50"}]`,
		"vimenca-site": `{"status": "OK", "data": [{"coinCode": 2, "coinName": "DOLAR EE.UU", "purchaseValue": 58.0, "saleValue": 60.2},
			{"coinCode": 59, "coinName": "Libra Esterlina", "purchaseValue": 75.45, "saleValue": 81.0}]}`,
	}
	newest, year := "", 0
	for _, d := range source.DefaultSet().Definitions() {
		newest = max(newest, d.Evidence.Seen)
	}
	_, _ = fmt.Sscanf(newest, "%4d", &year)
	for _, d := range source.DefaultSet().Definitions() {
		e := d.Evidence
		switch {
		case e.Grade == "":
			t.Errorf("%s says nothing of its evidence", d.ID)
		case (e.Grade == source.Old) && d.Disabled == "":
			t.Errorf("%s is old and enabled", d.ID)
		case (e.Grade == source.Old) != (e.Seen[:4] <= "2024") || (e.Grade == source.Confirmed) && e.Sample == "":
			t.Errorf("%s is %s, seen %s, sample %q; old means: not since 2024", d.ID, e.Grade, e.Seen, e.Sample)
		case (e.Grade == source.Confirmed) != (samples[d.ID] != ""):
			t.Errorf("%s is %s, and has the sample %q here", d.ID, e.Grade, samples[d.ID])
		}
		if e.Grade != source.Confirmed {
			continue
		}
		if e.Seen < fmt.Sprint(year-1)+newest[4:] {
			t.Errorf("%s was confirmed %s, more than a year before %s: its grade is reported now", d.ID, e.Seen, newest)
		}
		result, err := d.Parse(0, &source.Document{Body: []byte(samples[d.ID])})
		if err != nil || len(result.Observations) == 0 || result.Observations[0].Buy == "" || result.Observations[0].Sell == "" {
			t.Errorf("%s: %+v, %v", d.ID, result, err)
		}
	}
}

// The list in docs/sources.md is made from the definitions.
func TestGoldenListOfSources(t *testing.T) {
	const begin, end = "<!-- begin of the list: go test ./collectors/source -run Golden -update -->\n", "<!-- end of the list -->"
	file := filepath.Join("..", "..", "docs", "sources.md")
	text, err := os.ReadFile(file)
	must(t, err)
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no list", file)
	}
	want := head + begin + listOfSources() + end + tail
	if *update {
		must(t, os.WriteFile(file, []byte(want), 0o600))
	} else if want != string(text) {
		t.Errorf("the list in %s is not that of the definitions; go test ./collectors/source -run Golden -update writes it", file)
	}
}

func listOfSources() string {
	var list strings.Builder
	list.WriteString("\n| Evidence | Seen | Sources |\n|---|---|---|\n")
	rows := map[string][]string{}
	for _, d := range source.DefaultSet().Definitions() {
		row := fmt.Sprintf("| %s | %s | ", d.Evidence.Grade, d.Evidence.Seen)
		rows[row] = append(rows[row], fmt.Sprintf("[%s](%s)", d.ID, d.URL))
	}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		list.WriteString(row + strings.Join(rows[row], ", ") + " |\n")
	}
	list.WriteByte('\n')
	return list.String()
}

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
		"APAP, a number in parts":   {"apap-site", apap(`$("#currency-buy-USD").html("58" + ".10"); $("#currency-sell-USD").html("60.10")`), "apap USD /60.10 "},
		"APAP, parts in a call":     {"apap-site", apap(`$("#currency-buy-USD").html(addZeroes(58) + ".10"); $("#currency-sell-USD").html("60.10")`), "apap USD /60.10 "},
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

func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

// parseAllocatedMax bounds all that reading one document may allocate, garbage too.
const parseAllocatedMax = 256 << 20

// hostile are documents that cost as much as their size allows, each against something that readers do.
func hostile() map[string]string {
	const size = 5 << 20 // the most that is fetched
	fill := func(part string) string { return strings.Repeat(part, size/len(part)) }
	in := func(open string, times int, inside string) string {
		return wholePage(strings.Repeat(open, times) + inside)
	}
	numbered := func(times int, format string) string {
		var b strings.Builder
		for i := range times {
			b.WriteString(strings.ReplaceAll(format, "%d", fmt.Sprint(i)))
		}
		return b.String()
	}
	const row, table = `<div class="_bns--table table plan"><table class="table" id="Dolar">`, `<tr><th class="nombre">Tipo<th>Moneda<th>Compra<th>Venta`
	return map[string]string{
		"a class of 5 MB":            in(`<div class="overlay tasas `+strings.Repeat("a ", size/3)+`">`, 1, strings.Repeat("<p><label>1</label></p>", 9000)),
		"half a million attributes":  in(`<div class="overlay" `+strings.Repeat("a ", size/4)+`>`, 1, strings.Repeat("<p><label>1</label></p>", 9000)),
		"one inside of another":      in(`<div class="overlay tasas _bns--table">`, 480, strings.Repeat("<ul><li><h2></h2></li></ul>", 9000)),
		"as deep as it may be":       in(`<div class="overlay tasas _bns--table">`, 120, strings.Repeat("<h2><strong><p></p></strong></h2>", 9000)),
		"wide":                       in("", 0, strings.Repeat("<ul>"+strings.Repeat("<li></li>", 9900)+"</ul>", 10)),
		"wide rows":                  in("", 0, strings.Repeat(row+"<tr>"+strings.Repeat("<td></td>", 9900)+"</table></div>", 9)),
		"cells over fifty others":    in(row, 1, strings.Repeat(`<tr><td colspan=50 rowspan=50>`+strings.Repeat("moneda ", 1000), 700)),
		"a cell of 5 MB over others": in(row, 1, `<tr><td colspan=50 rowspan=50>`+fill("tipo ")+strings.Repeat("<tr><td>1", 100)),
		"tables in tables":           in(`<table class="table" id="Dolar"><tr><td>`, 120, strings.Repeat("<tr><td>a<td>b<td>c", 2500)),
		"tables in wide tables":      in(row+`<tr class="subtitulo-dolar">`+strings.Repeat("<td>", 60), 100, ""),
		"rows":                       in(row+table, 1, strings.Repeat(`<tr><td class="nombre">RM<td>Euro (EU)<td>1<td>2`, 9900)),
		"rows that differ":           in(row+table, 1, numbered(9900, `<tr><td class="nombre">l%d<td>Euro %d<td>1<td>%d`)),
		"a million rows":             in(row, 1, strings.Repeat("<tr>", 1_000_000)),
		"text":                       in("<main>", 1, fill("vendemos ")),
		"entities":                   in("<main>", 1, fill("&nbsp;&#53;&amp;")),
		"the pattern, but its end":   in("<main>", 1, strings.Repeat("vendemos: RD$ 58.10 compramos: RD$ ", (1<<20)/40)),
		"the pattern":                in("<main>", 1, strings.Repeat("vendemos: RD$ 58.10 compramos: RD$ 57.10 ", (1<<20)/50)),
		"the pattern's beginning":    in("<marquee>", 1, strings.Repeat("dolar compra ", (1<<20)/16)),
		"scripts":                    in("", 0, strings.Repeat("<script>"+strings.Repeat("currency-buy-USD ", 60_000)+"</script>", 5)),
		"the same price":             in("", 0, strings.Repeat(`<p class="tasacambio-compraUS calculator da-ef">58.10</p>`, 9900)),
		"styles":                     in(`<div class="tasacambio-compraUS">`, 1, strings.Repeat(`<p style="`+strings.Repeat(" ", 5000)+`">1</p>`, 900)),
		"digits":                     in(`<p class="tasacambio-compraUS">`, 1, strings.Repeat("8", 1<<20-500)),
		"tags without an end":        fill("<"),
		"comments":                   wholePage(fill("<!-- -->")),
		"numbers":                    strings.Repeat("58.10 ", (1<<20)/6),
		"lists in lists":             fill("["),
		"objects in objects":         fill(`{"a":`),
		"a list of numbers":          `{"data":[1` + fill(",1") + `]}`,
		"a list of objects":          `{"data":[{}` + fill(",{}") + `]}`,
		"entries":                    `{"status":"OK","data":[{}` + fill(`,{"coinCode":2,"saleValue":1}`) + `]}`,
		"keys":                       `{"data":1` + fill(`,"a":1`) + `}`,
		"escapes":                    `{"data":"` + fill(`\u0041`) + `"}`,
		"a number of 5 MB":           `{"rates":{"USD":{"buying":` + fill("9") + `}},"date":"2026-09-17"}`,
		"a large exponent":           `{"compraUS":1e999999999,"ventaUS":1e-999999999}`,
	}
}

func readers(document string) []string {
	if strings.HasPrefix(document, "{") || strings.HasPrefix(document, "[") {
		return []string{"vimenca-site", "lafise-site"}
	}
	return []string{"apap-site", "infodolar", "qik-site", "quezada-site"}
}

// TestHostileDocumentsAreBounded: whatever a document holds, reading it allocates little more than the document
// needs. TestFaultsD4_HostileDocuments measures time and heap.
func TestHostileDocumentsAreBounded(t *testing.T) {
	documents := hostile()
	var largest string
	var most uint64
	for i, name := range slices.Sorted(maps.Keys(documents)) {
		for j, id := range readers(documents[name]) {
			if (i+j)%sweep(8, 1) > 0 {
				continue
			}
			d, _ := source.DefaultSet().Find(id)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = d.Parse(0, &source.Document{Body: []byte(documents[name])})
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > most {
				most, largest = used, name+", "+id
			}
		}
	}
	t.Logf("largest is %s with %d MiB", largest, most>>20)
	if most > parseAllocatedMax {
		t.Errorf("%s allocates %d MiB, want at most %d", largest, most>>20, parseAllocatedMax>>20)
	}
}

func wholePage(body string) string {
	return "<html><head><title>x</title></head><body>" + body + "</body></html>"
}
