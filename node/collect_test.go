package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/httpapi/admin"
)

// TestS11_CatalogueWinsOverDefinitions: a catalogue file decides about a source, except for its plausible ranges.
func TestS11_CatalogueWinsOverDefinitions(t *testing.T) {
	catalogue := `{"sources": [{"id": "bcrd-usd", "name": "Ours", "priority": 7}]}`
	file := filepath.Join(t.TempDir(), "c.json")
	must(t, os.WriteFile(file, []byte(catalogue), 0o600))
	known, err := LoadReferenceData(file, "")
	must(t, err)
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

// TestCollect_SaysWhenItBegins: a line says that collecting has begun, and when the next slot is.
func TestCollect_SaysWhenItBegins(t *testing.T) {
	var lines bytes.Buffer
	clock := func() time.Time { return time.Date(2026, 11, 28, 15, 0, 0, 0, time.UTC) }
	c := Config{Clock: clock, Logger: slog.New(slog.NewTextHandler(&lines, nil))}.withDefaults()
	l := &liveCollector{
		config: &c, set: source.DefaultSet(),
		collector: collectors.New(collectors.Config{Clock: clock, Random: rand.New(rand.NewPCG(1, 2)), Logger: slog.New(slog.DiscardHandler)}),
	}
	l.start(t.Context())
	l.cancel()
	<-l.done
	if want := fmt.Sprintf(`msg="collecting has begun" sources=%d nextSlot=2026-11-28T16:00:00Z`, len(l.set.Definitions())); !strings.Contains(lines.String(), want) {
		t.Errorf("it says %q, want %s", lines.String(), want)
	}
}

// TestUnmeasured_AfterAFirstCollection: the line about currencies without anything to compare with comes once, after
// the first collection.
func TestUnmeasured_AfterAFirstCollection(t *testing.T) {
	l := &liveCollector{collector: collectors.New(collectors.Config{
		Clock: time.Now, Definitions: source.DefaultSet().Definitions(), Random: rand.New(rand.NewPCG(1, 2)), Logger: slog.New(slog.DiscardHandler), //nolint:forbidigo // not read
	})}
	if l.collectedOnce() {
		t.Error("no source was tried")
	}
	if l.collector = nil; !l.collectedOnce() {
		t.Error("a node that collects nothing waits for its sources")
	}
}

// The log says how many requests were refused in a minute and why, once, and nothing if there were none.
func TestRefusals(t *testing.T) {
	var out bytes.Buffer
	var r refusals
	for _, step := range []struct {
		minute, day uint64
		says        string
	}{{0, 0, ""}, {3, 1, "overQuotaOfMinute=3 overQuotaOfDay=1"}, {3, 1, ""}, {3, 5, "overQuotaOfMinute=0 overQuotaOfDay=4"}} {
		out.Reset()
		r.log(slog.New(slog.NewTextHandler(&out, nil)), func() (minute, day uint64) { return step.minute, step.day })
		if got := out.String(); !strings.Contains(got, step.says) || got != "" && step.says == "" {
			t.Errorf("%+v: the log says %q", step, got)
		}
	}
}
