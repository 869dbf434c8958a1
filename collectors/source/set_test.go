package source_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// embeddedFiles are the definition files that the program carries, by name.
func embeddedFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(os.DirFS("."), "definitions/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
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

// Who publishes nothing that can be collected: banks that are gone, and cooperatives of which no rates are known.
func silentInstitutions() []string {
	return []string{"bancamerica", "progreso", "coopnama", "vega-real"}
}

func TestEveryInstitutionHasASource(t *testing.T) {
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
		if silent := slices.Contains(silentInstitutions(), institution.ID); spokenFor[institution.ID] == silent {
			t.Errorf("%s: has a source: %v, want %v", institution.ID, spokenFor[institution.ID], !silent)
		}
	}
}

// The own sources of the institutions that publish at an address of their own, and the aggregators.
func TestEverySourceThatIsKnownHasADefinition(t *testing.T) {
	enabled := strings.Fields(`ademi-site agente-la-nacional-site apap-site banesco-site banreservas-json banreservas-site bcrd-currencies
		bcrd-reference bcrd-usd bdi-site bhd-site bonanza-site caribe-express-site caribe-site empire-site infodolar la-nacional-site
		lafise-site livedolar lopez-de-haro-site peravia-site popular-html popular-site promerica-site qik-site quezada-cash quezada-site
		santa-cruz-site scotiabank-site union-site vimenca-site`)
	disabled := strings.Fields("activo-site bhd-table indexa jmmb-site santa-cruz-json")
	for _, d := range source.DefaultSet().Definitions() {
		known := enabled
		if d.Disabled != "" {
			known = disabled
		}
		if !slices.Contains(known, d.ID) {
			t.Errorf("%s stands in no list of this test, or in the wrong one (disabled: %q)", d.ID, d.Disabled)
		}
	}
	if got := len(source.DefaultSet().Definitions()); got != len(enabled)+len(disabled) {
		t.Errorf("%d definitions, want %d", got, len(enabled)+len(disabled))
	}
}

// Who is asked twice has one first word and one that stands in (S11); aggregators come after everybody.
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

func TestDamagedEmbeddedDefinitionsPanic(t *testing.T) {
	defer func() {
		if text, ok := recover().(string); !ok || !strings.Contains(text, "embedded definitions are damaged") {
			t.Errorf("recovered %q", text)
		}
	}()
	source.MustRead(fstest.MapFS{"definitions/a.json": {Data: []byte("{")}}, "definitions")
}

// extend is the default set with some files of an operator.
func extend(t *testing.T, files map[string]string) (*source.Set, error) {
	t.Helper()
	dir := fstest.MapFS{}
	for name, text := range files {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return source.DefaultSet().Extend(dir, ".")
}

func TestAnOperatorAddsAndReplacesDefinitions(t *testing.T) {
	set, err := extend(t, map[string]string{
		"mine.json": textFile, "popular-site.json": fieldsFile, "ca/popular.pem": "PEM", "README.md": "{", "old.json.bak": "{", "sub/x.json": "{",
	})
	if err != nil {
		t.Fatal(err)
	}
	popular, _ := set.Find("popular-site")
	if popular.Name != "Sitio web" || popular.CAFile != "ca/popular.pem" || len(popular.Pages[0].Requests) != 2 {
		t.Errorf("popular-site is not replaced as a whole: %+v", popular)
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
	set, err := extend(t, map[string]string{
		"a.json": `{"id": "popular-site", "disabled": "Bloqueado desde 2026-10-01"}`,
		"b.json": `{"id": "jmmb-site", "disabled": ""}`,
		"c.json": `{"id": "bhd-site", "priority": 90, "ignoreRobots": true, "caFile": "bhd.pem"}`, "bhd.pem": "PEM",
	})
	if err != nil {
		t.Fatal(err)
	}
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
}

func TestABrokenDirectoryIsRefusedAsAWhole(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"two problems": {map[string]string{"a.json": "{", "b.json": `{"id": "x-site", "disabled": "x"}`}, []string{"a.json: line 1", "b.json: there is no source x-site"}},
		"one id twice": {map[string]string{"a.json": textFile, "b.json": `{"id": "qik-site", "disabled": "x"}`}, []string{"b.json: the source qik-site stands already in a.json"}},
		"no such PEM":  {map[string]string{"a.json": `{"id": "qik-site", "caFile": "qik.pem"}`}, []string{"a.json: caFile", "qik.pem"}},
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
	pipe := fstest.MapFS{"own/a.json": {Data: []byte(textFile), Mode: fs.ModeNamedPipe}} // a real one would be waited for
	if _, err := source.DefaultSet().Extend(pipe, "own"); err == nil || !strings.Contains(err.Error(), "a.json: want a file, found p") {
		t.Errorf("a pipe: %v", err)
	}
}

func TestDefinitionsAreCheckedAgainstTheCatalogue(t *testing.T) {
	unknown := strings.NewReplacer(`"popular"`, `"impopular"`, `"EUR"`, `"XXX"`, "popular-site", "manual", `, "caFile": "ca/popular.pem"`, "").Replace(fieldsFile)
	set, err := extend(t, map[string]string{"a.json": unknown, "b.json": strings.Replace(jsonFile, `"popular"`, `"nadie"`, 1)})
	if err != nil {
		t.Fatal(err)
	}
	err = set.Check(engine.DefaultCatalogue())
	for _, want := range []string{`source manual: there is no institution "impopular"`, `no currency "XXX"`, "typed by hand", `institution "nadie"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestSourcesForTheCatalogue(t *testing.T) {
	set, err := extend(t, map[string]string{"a.json": fieldsFile, "ca/popular.pem": "PEM"})
	if err != nil {
		t.Fatal(err)
	}
	catalogue := engine.DefaultCatalogue().WithSources(set.Sources()...)
	popular := catalogue.Source("popular-site")
	if popular.Priority != 90 || popular.Lifetime.String() != "20h0m0s" || len(popular.Bounds) != 2 || popular.Name != "Sitio web" ||
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
	for _, table := range []map[string]broken{brokenHeads(), brokenRequests(), brokenExtracts()} {
		for _, b := range table {
			f.Add([]byte(strings.Replace(b.file, b.old, b.fresh, 1)))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := source.Read("f.json", data)
		if err != nil {
			return
		}
		text := writtenText(t, d)
		again, err := source.Read("f.json", text)
		if err != nil {
			t.Fatalf("what was read is refused when it is written again: %v\n%s", err, text)
		}
		if !sameMeaning(d, again) {
			t.Fatalf("read\n%+v\nagain\n%+v\n%s", d, again, text)
		}
	})
}
