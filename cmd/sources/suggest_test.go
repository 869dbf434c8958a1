package sources

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
)

// TestSuggest_FromArchive repairs the definition of a page that was redesigned, with the documents of the archive.
func TestSuggest_FromArchive(t *testing.T) {
	now := time.Date(2026, 9, 21, 16, 0, 0, 0, time.UTC)
	market := simulated.NewMarket(1)
	data := t.TempDir()
	site, dir := simulated.NewSite(market), command.ArchiveDir(data)
	kept := archive.New(archive.Config{Dir: dir, Clock: func() time.Time { return now }})
	for _, fault := range []simulated.Fault{"", simulated.Layout} {
		market.Step(now)
		if err := site.SetFault("bdi-site", fault); err != nil {
			t.Fatal(err)
		}
		doc := *site.Document("bdi-site", 0)
		doc.FetchedAt = now
		kept.Keep("bdi-site", 0, &doc)
		now = now.Add(4 * time.Hour)
	}
	var stdout, stderr bytes.Buffer
	p := &process.Process{Stdout: &stdout, Stderr: &stderr, Clock: func() time.Time { return now }}
	o := &suggestOptions{}
	o.Config.Dir = data
	if err := o.run(t.Context(), p, []string{"bdi-site"}); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	for _, want := range []string{"document: ", "known prices: of ", "USD buy ", "EUR sell ", "side by the known price"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("standard error lacks %q:\n%s", want, stderr.String())
		}
	}
	d, err := source.ReadDefinition("bdi-site.json", stdout.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	result, err := d.Parse(0, site.Document("bdi-site", 0))
	if err != nil || len(result.Observations) != 2 {
		t.Errorf("read %+v, %v", result.Observations, err)
	}
}

func TestSuggest_Refuses(t *testing.T) {
	page := `<table><tr><th>Moneda</th><th>A</th><th>B</th></tr><tr><td>Dólar</td><td>58.10</td><td>60.10</td></tr></table>`
	for name, c := range map[string]struct {
		known []string
		args  []string
		code  int
		text  string
	}{
		"a side without a word":   {nil, []string{"bdi-site", "-"}, exit.NothingFound, "give the prices that are known"},
		"no document":             {nil, []string{"bdi-site"}, exit.Usage, "name a FILE"},
		"an unknown source":       {nil, []string{"bdi-sitio", "-"}, exit.Usage, "bdi-site"},
		"a price that is not one": {[]string{"USD=58,10/60"}, []string{"bdi-site", "-"}, exit.Usage, "want a currency and its prices"},
		"no currency":             {[]string{"58.10/60.10"}, []string{"bdi-site", "-"}, exit.Usage, "want a currency and its prices"},
	} {
		var stdout, stderr bytes.Buffer
		p := &process.Process{Stdin: strings.NewReader(page), Stdout: &stdout, Stderr: &stderr, Clock: func() time.Time { return time.Unix(1e9, 0) }}
		o := &suggestOptions{known: c.known}
		if err := o.run(t.Context(), p, c.args); exit.Code(err) != c.code || !strings.Contains(err.Error(), c.text) || stdout.Len() > 0 {
			t.Errorf("%s: %v, printed %q; want %d and %q", name, err, stdout.String(), c.code, c.text)
		}
	}
}
