package source_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
)

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
	newest := ""
	for _, d := range source.DefaultSet().Definitions() {
		newest = max(newest, d.Evidence.Seen)
	}
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
		if seen := yearBefore(newest); e.Seen < seen {
			t.Errorf("%s was confirmed %s, more than a year before %s: its grade is reported now", d.ID, e.Seen, newest)
		}
		result, err := d.Parse(0, &source.Document{Body: []byte(samples[d.ID])})
		if err != nil || len(result.Observations) == 0 || result.Observations[0].Buy == "" || result.Observations[0].Sell == "" {
			t.Errorf("%s: %+v, %v", d.ID, result, err)
		}
	}
}

// yearBefore returns the date a year before a date as in Evidence.Seen.
func yearBefore(date string) string {
	var year int
	_, _ = fmt.Sscanf(date, "%4d", &year)
	return fmt.Sprint(year-1) + date[4:]
}

func TestOldSourcesAreEnabledByTheOperator(t *testing.T) {
	set := mustExtend(t, map[string]string{"a.json": `{"id": "peravia-site", "disabled": ""}`})
	before, _ := source.DefaultSet().Find("peravia-site")
	if after, _ := set.Find("peravia-site"); after.Disabled != "" || !strings.HasPrefix(before.Disabled, "Old: last seen 2020. ") {
		t.Errorf("peravia-site is disabled: %q, before: %q", after.Disabled, before.Disabled)
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
