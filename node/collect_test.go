package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/httpapi/admin"
)

// TestS11_CatalogueWinsOverDefinitions: a catalogue file decides about a source, except for its plausible ranges.
func TestS11_CatalogueWinsOverDefinitions(t *testing.T) {
	catalogue := `{"sources": [{"id": "bcrd-usd", "name": "Ours", "priority": 7}]}`
	file := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(file, []byte(catalogue), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := LoadReferenceData(file, "")
	if err != nil {
		t.Fatal(err)
	}
	described, _ := known.Sources.Find("bcrd-usd")
	got := known.Catalogue.Source("bcrd-usd")
	if got.Priority != 7 || got.Name != "Ours" || fmt.Sprint(got.PlausibleRanges) != fmt.Sprint(described.Bounds) || len(got.PlausibleRanges) == 0 {
		t.Errorf("bcrd-usd is %+v", got)
	}
	if other := known.Catalogue.Source("infodolar"); other.Priority != 200 || other.UpstreamSource == "" {
		t.Errorf("infodolar is %+v", other)
	}
}

func TestCollect_UserAgent(t *testing.T) {
	for _, test := range []struct{ version, contact, want string }{
		{"v1.2.3", "", "Mozilla/5.0 (compatible; tasard/1.2.3; +https://github.com/tasard/tasard)"},
		{"(devel)", "ana@example.com", "Mozilla/5.0 (compatible; tasard/dev; +https://github.com/tasard/tasard; ana@example.com)"},
		{"", "", "Mozilla/5.0 (compatible; tasard/dev; +https://github.com/tasard/tasard)"},
		{"v0.0.0-20261121-abc+dirty", "https://example.com/x", "Mozilla/5.0 (compatible; tasard/0.0.0-20261121-abc+dirty; +https://github.com/tasard/tasard; https://example.com/x)"},
	} {
		if got := userAgent(test.version, test.contact); got != test.want {
			t.Errorf("%q, %q: %s, want %s", test.version, test.contact, got, test.want)
		}
	}
}

// TestDescribeSources_Typed wants complete descriptions of sources that are not collected.
func TestDescribeSources_Typed(t *testing.T) {
	shown := DescribeSources(source.DefaultSet())
	if shown.Collecting || len(shown.Sources) < 30 || slices.ContainsFunc(shown.Sources, func(s admin.Source) bool { return s.ID == "" || len(s.Methods) == 0 || s.Host == "" }) {
		t.Errorf("%+v", shown)
	}
}
