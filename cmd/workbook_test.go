package cmd

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// realWorkbook is a workbook of the central bank beside the repository; the test is skipped where it is not.
func realWorkbook(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob("../shared/data/" + pattern)
	if err != nil || len(names) == 0 {
		t.Skipf("../shared/data/%s is not here", pattern)
	}
	return names[0]
}

// TestImport_Workbooks wants the real workbook of the central bank for the dollar in history, each day as of its own; a
// second reading changes nothing.
func TestImport_Workbooks(t *testing.T) {
	t.Parallel()
	args := []string{"import", "--data", t.TempDir(), "--source", "bcrd-usd", realWorkbook(t, "*TASA_DOLAR_REFERENCIA_MC*.xlsx")}
	data := args[2]
	got := run(t, nil, nil, args...)
	if got.code != exit.OK || !strings.Contains(got.stdout, ": 8,111 accepted (8,111 new), 1 quarantined, 0 refused, 0 malformed") {
		t.Errorf("exit code %d: %s", got.code, got.stdout)
	}
	oneLine(t, got.stderr, ": bcrd USD 1991-01-25: quarantined as number 1: crossed: ")
	before := mustRun(t, "export", "--data", data)
	contains(t, mustRun(t, args...), "(0 new)")
	if mustRun(t, "export", "--data", data) != before {
		t.Error("the second reading changed something")
	}
	contains(t, startNode(t, data).mustGet("/v1/rates/history?currency=USD&institution=bcrd&from=2023-04-20&to=2023-04-20"),
		`"date":"2023-04-20"`, `"buy":"54.4749","sell":"54.6807"`, `"sourceId":"bcrd-usd"`)
}

// bhdPage is a document of bhd-site, made up after its shape: it says no date.
const bhdPage = `{"data":{"attributes":{"exchangeRates":[{"currency":"USD","buyingRate":50.10,"sellingRate":52.20},` +
	`{"currency":"EUR","buyingRate":60.10,"sellingRate":64.20}]}}}`

// TestImport_UndatedDocument wants a page without a date to be one of the instant at which it was saved, and to
// expire from then on; the golden file of bad input has what is refused.
func TestImport_UndatedDocument(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "rates.json", bhdPage)
	for saved, stale := range map[string]bool{"2022-01-01T10:00:00-04:00": true, "2026-06-30T10:00:00-04:00": false} {
		data := t.TempDir()
		mustRun(t, "import", "--data", data, "--source", "bhd-site", "--saved", saved, file)
		p := startNode(t, data)
		at, err := time.Parse(time.RFC3339, saved)
		if rate := rateOf(t, p, "USD", "bhd"); rate == nil || err != nil || rate.Stale != stale || !rate.LastCheckedAt.Equal(at) {
			t.Errorf("saved at %s: %+v", saved, rate)
		}
		p.signal(syscall.SIGTERM)
	}
}

// TestImport_DocumentOfToday wants a page of today to be taken in without further words.
func TestImport_DocumentOfToday(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	got := mustRun(t, "import", "--data", data, "--source", "lafise-site", writeFile(t, "rates.json", lafisePage))
	if !strings.Contains(got, ": 2 rows in ") || !strings.Contains(got, ": 2 accepted (2 new), 0 quarantined") {
		t.Errorf("taken in: %s", got)
	}
	p := startNode(t, data)
	if rate := rateOf(t, p, "USD", "lafise"); rate == nil || rate.Buy != "58.10" || rate.SourceID != "lafise-site" || rate.Stale {
		t.Errorf("published %+v", rate)
	}
}
