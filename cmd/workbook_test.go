package cmd

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/engine"
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

// csvRows reads a file of observations by the names of its columns.
func csvRows(t *testing.T, text string) []map[string]string {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	noError(t, err)
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// TestImport_Workbooks wants the real workbook of the central bank for the dollar in history, each day as of its own,
// with the values that the real observations have where they overlap, over HTTP and in an export; a second reading
// changes nothing.
func TestImport_Workbooks(t *testing.T) {
	t.Parallel()
	needReal(t)
	data := t.TempDir()
	files := map[string]string{"bcrd-usd": realWorkbook(t, "*TASA_DOLAR_REFERENCIA_MC*.xlsx")}
	summaries := map[string]string{"bcrd-usd": ": 8,111 accepted (8,111 new), 1 quarantined, 0 refused"}
	for source, file := range files {
		got := run(t, nil, nil, "import", "--data", data, "--source", source, file)
		if got.code != exit.OK || !strings.Contains(got.stdout, summaries[source]) || !strings.Contains(got.stdout, " 0 refused, 0 malformed") {
			t.Errorf("%s: %s", source, got.stdout)
		}
		for line := range strings.Lines(got.stderr) {
			if !strings.Contains(line, ": bcrd USD ") || !strings.Contains(line, ": quarantined as number ") {
				t.Fatalf("reported as %s", line)
			}
		}
	}
	before := mustRun(t, "export", "--data", data)
	for source, file := range files {
		if again := mustRun(t, "import", "--data", data, "--source", source, file); !strings.Contains(again, "(0 new)") {
			t.Errorf("the second time: %s", again)
		}
	}
	if mustRun(t, "export", "--data", data) != before {
		t.Error("the second reading changed something")
	}
	exported := map[string]map[string]string{}
	for _, row := range csvRows(t, mustRun(t, "export", "--data", data)) {
		exported[row["currency"]+row["effectiveDate"]] = row
	}
	compareWithReal(t, exported, historyOf(t, startNode(t, data), "2019-09-01", "2020-08-30"))
}

// compareWithReal holds the real observations of the central bank against an export and against /v1.
func compareWithReal(t *testing.T, exported map[string]map[string]string, answered map[string]engineDay) {
	t.Helper()
	real, err := os.ReadFile(realFile)
	noError(t, err)
	compared, overHTTP := 0, 0
	for _, row := range csvRows(t, string(real)) {
		if row["institutionId"] != "bcrd" {
			continue
		}
		ours, found := exported[row["currency"]+row["effectiveDate"]]
		if !found || !equalSides(t, ours["buy"], row["buy"]) || !equalSides(t, ours["sell"], row["sell"]) {
			t.Errorf("%s: the workbook has %s / %s, the observations %s / %s", row["effectiveDate"], ours["buy"], ours["sell"], row["buy"], row["sell"])
			continue
		}
		compared++
		if day, found := answered[row["effectiveDate"]]; found {
			overHTTP++
			if !equalSides(t, day.Buy, row["buy"]) || !equalSides(t, day.Sell, row["sell"]) || day.SourceID != "bcrd-usd" {
				t.Errorf("%s: /v1 has %+v, the observations %s / %s", row["effectiveDate"], day, row["buy"], row["sell"])
			}
		}
	}
	t.Logf("%d days equal in the export, %d of them over HTTP", compared, overHTTP)
	if compared < 200 || overHTTP < 100 {
		t.Error("too few days to compare")
	}
}

// engineDay is a row of history as /v1 tells it.
type engineDay struct{ Date, Buy, Sell, SourceID string }

// historyOf are the days of the dollar's reference rate, by date.
func historyOf(t *testing.T, p *program, from, to string) map[string]engineDay {
	t.Helper()
	days := map[string]engineDay{}
	for cursor := 0; ; {
		var page struct {
			Data []engineDay
			Meta struct{ NextCursor *int }
		}
		body := p.mustGet(fmt.Sprintf("/v1/rates/history?currency=USD&institution=bcrd&from=%s&to=%s&limit=200&cursor=%d", from, to, cursor))
		noError(t, json.Unmarshal([]byte(body), &page))
		for _, day := range page.Data {
			days[day.Date] = day
		}
		if page.Meta.NextCursor == nil {
			return days
		}
		cursor = *page.Meta.NextCursor
	}
}

// equalSides compares two sides as numbers: a workbook has no zeros at the end.
func equalSides(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := engine.ReadDecimal(a)
	if err != nil {
		return false
	}
	y, err := engine.ReadDecimal(b)
	return err == nil && x.Equal(y)
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
