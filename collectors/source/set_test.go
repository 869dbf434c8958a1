package source_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"reflect"
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
		d, err := source.Read(name, data)
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
	ids := make([]string, len(set.Definitions()))
	for i, d := range set.Definitions() {
		ids[i] = d.ID
	}
	if !slices.IsSorted(ids) {
		t.Errorf("definitions are not by id: %v", ids)
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

func extend(t *testing.T, files map[string]string) (*source.Set, error) {
	t.Helper()
	dir := fstest.MapFS{}
	for name, text := range files {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return source.DefaultSet().Extend(dir, ".")
}

func mustExtend(t *testing.T, files map[string]string) *source.Set {
	t.Helper()
	set, err := extend(t, files)
	must(t, err)
	return set
}

func TestAnOperatorAddsAndReplacesDefinitions(t *testing.T) {
	set, err := extend(t, map[string]string{
		"mine.json": textFile, "popular-site.json": fieldsFile, "ca/popular.pem": "PEM", "README.md": "{", "old.json.bak": "{", "sub/x.json": "{",
	})
	must(t, err)
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
		"b.json": `{"id": "jmmb-site", "disabled": ""}`,
		"d.json": `{"id": "caribe-site", "proxy": "socks5://10.0.0.1:1080"}`,
		"c.json": `{"id": "bhd-site", "priority": 90, "ignoreRobots": true, "caFile": "bhd.pem"}`, "bhd.pem": "PEM",
	})
	popular, _ := set.Find("popular-site")
	before, _ := source.DefaultSet().Find("popular-site")
	if popular.Disabled != "Bloqueado desde 2026-10-01" || before.Disabled != "" || popular.Name != before.Name || len(popular.Pages) != 1 {
		t.Errorf("popular-site is %+v", popular)
	}
	if jmmb, _ := set.Find("jmmb-site"); jmmb.Disabled != "" {
		t.Errorf("jmmb-site is still disabled: %s", jmmb.Disabled)
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
		_, err := extend(t, test.files)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
	if _, err := source.DefaultSet().Extend(fstest.MapFS{}, "nowhere"); err == nil {
		t.Error("a directory that is not there is no error")
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
	for _, table := range allBroken() {
		for _, b := range table {
			f.Add([]byte(strings.Replace(b.file, b.old, b.fresh, 1)))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := source.Read("f.json", data)
		if err != nil {
			return
		}
		if again, err := source.Read("f.json", data); err != nil || !reflect.DeepEqual(d, again) {
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
