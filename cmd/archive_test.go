package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/httpapi/admin"
)

// comparison is the JSON of replay and diff.
type comparison struct {
	Differing int
	Documents []struct {
		Published     bool
		Before, After struct {
			Failure string
			Rates   []archive.Rate
		}
		Changes []struct{ Before, After *archive.Rate }
	}
	Damaged []string
}

// TestArchive_FromFetchToReplay lets a node fetch documents and keep them, and wants to learn from them what a changed
// definition would have published, and would publish.
func TestArchive_FromFetchToReplay(t *testing.T) {
	t.Parallel()
	data, definitions := t.TempDir(), t.TempDir()
	p := startWith(t, realNow, []string{withSite + "=7,bdi-site=layout"}, collectArgs(data)...).listening()
	collected(t, p, data)
	reading := asJSON[admin.SourceRun](t, mustRun(t, "sources", "run", "bhd-site", "--data", data, "--json", "--by", "ana"))
	if len(reading.Rates) != 2 || reading.Failure != nil || reading.Rates[0].Reason != "" || reading.Pages[0].Digest == "" {
		t.Errorf("run says %+v", reading)
	}
	p.Await("changed by an operator")
	failed := run(t, nil, nil, "sources", "run", "bdi-site", "--data", data)
	if failed.code != exit.Unavailable || !strings.HasPrefix(failed.stdout, "bdi-site: 0 rates read, 0 accepted\n  page -: layout: ") {
		t.Errorf("code %d: %s%s", failed.code, failed.stdout, failed.stderr)
	}
	if all := askSocket(t, data, admin.MetricsPath); !strings.Contains(all, "\ntasard_archive_failures_total 0\n") || strings.Contains(all, "\ntasard_archive_documents 0\n") {
		t.Errorf("metrics:\n%s", all)
	}
	p.stop(syscall.SIGTERM)

	if table := mustRun(t, "sources", "replay", "bhd-site", "--data", data); table != "bhd-site: 1 document, 0 with changes\n" {
		t.Errorf("replayed with the same definition:\n%s", table)
	}
	// The changed definition exchanges the sides.
	changed := strings.NewReplacer("buyingRate", "sellingRate", "sellingRate", "buyingRate").Replace(mustRun(t, "definitions", "show", "bhd-site"))
	file := filepath.Join(definitions, "bhd-site.json")
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"sources", "replay", "bhd-site", "--data", data, "--sources", definitions, "--since", "2026-06-30"}, {"sources", "diff", file, "--archive", filepath.Join(data, "archive")},
	} {
		if table := mustRun(t, args...); !strings.HasPrefix(table, "bhd-site: 1 document, 1 with changes\n  FETCHED ") || !strings.Contains(table, "bhd:USD:unspecified:commercial") {
			t.Errorf("%q:\n%s", args, table)
		}
		got := asJSON[comparison](t, mustRun(t, append(args, "--json")...))
		if len(got.Documents) != 1 || len(got.Documents[0].Changes) != 2 || !got.Documents[0].Published {
			t.Fatalf("%q: %+v", args, got)
		}
		for _, c := range got.Documents[0].Changes {
			if c.Before.Buy == "" || c.Before.Buy != c.After.Sell || c.Before.Sell != c.After.Buy {
				t.Errorf("%q: %+v and %+v", args, c.Before, c.After)
			}
		}
	}
	// A page that could not be read then can be read in no other way either, but it is there.
	if got := asJSON[comparison](t, mustRun(t, "sources", "replay", "bdi-site", "--data", data, "--json")); len(got.Documents) != 1 || !strings.HasPrefix(got.Documents[0].Before.Failure, "layout: ") {
		t.Errorf("%+v", got)
	}
	nothing := writeFile(t, "bhd-site.json", strings.Replace(changed, "data.attributes", "attributes", 1))
	if lost := run(t, nil, nil, "sources", "diff", nothing, "--data", data); lost.code != exit.NoInput || !strings.Contains(lost.stdout, " layout: ") {
		t.Errorf("a definition that reads nothing: %+v", lost)
	}
	for want, args := range map[string][]string{
		"no archive; name it with --archive DIR": {"sources", "replay", "bhd-site"},
		"none: there is no archive; a node":      {"sources", "replay", "bhd-site", "--archive", "none"},
		"has no document of jmmb-site":           {"sources", "replay", "jmmb-site", "--data", data, "--json"},
		"has no document of bhd-site since 2027": {"sources", "replay", "bhd-site", "--data", data, "--since", "2027-01-01", "--json"},
		"there is no source bhd to change":       {"sources", "diff", writeFile(t, "a.json", `{"id": "bhd", "priority": 1}`), "--data", data},
		"read the definition: open ":             {"sources", "diff", "nowhere.json", "--data", data},
	} {
		if got := run(t, nil, nil, args...); got.code == exit.OK || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// TestSources_CheckSaves wants check --save to make an archive, and no command to make one unasked.
func TestSources_CheckSaves(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	check := func(args ...string) {
		t.Helper()
		p := startWith(t, realNow, []string{withSite + "=7"}, append([]string{"sources", "check", "bhd-site", "--archive", dir}, args...)...)
		if code := p.AwaitExit(); code != exit.OK {
			t.Errorf("exit code %d:\n%s", code, p.Output())
		}
	}
	check()
	if _, err := os.Stat(dir); err == nil {
		t.Error("check has made an archive without --save")
	}
	check("--save")
	got := asJSON[comparison](t, mustRun(t, "sources", "replay", "bhd-site", "--archive", dir, "--json"))
	if len(got.Documents) != 1 || got.Documents[0].Published || len(got.Documents[0].Changes) != 0 || got.Documents[0].Before.Rates[0].Refused != collectors.NotPublished {
		t.Errorf("%+v", got)
	}
}

// TestServe_ArchiveOff wants a node to keep nothing with --archive off, and a demo never.
func TestServe_ArchiveOff(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := startWith(t, realNow, []string{withSite + "=7"}, collectArgs(data, "--archive", "off")...).listening()
	collected(t, p, data)
	if all := askSocket(t, data, admin.MetricsPath); strings.Contains(all, "tasard_archive") {
		t.Errorf("metrics:\n%s", all)
	}
	p.signal(syscall.SIGTERM)
	if _, err := os.Stat(filepath.Join(data, "archive")); err == nil {
		t.Error("there is an archive")
	}
}
