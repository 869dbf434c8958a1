package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)

// fixture is an archive whose clock the test sets.
type fixture struct {
	t   *testing.T
	dir archive.Dir
	now time.Time
	log bytes.Buffer
	archive.Config
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, dir: archive.Dir(filepath.Join(t.TempDir(), "archive")), now: start}
	f.Config = archive.Config{Dir: string(f.dir), Clock: func() time.Time { return f.now }, Logger: slog.New(slog.NewTextHandler(&f.log, nil))}
	return f
}

// keep writes documents of one page, an hour apart, with a writer of its own.
func (f *fixture) keep(id string, page int, bodies ...string) (archive.Stats, error) {
	f.t.Helper()
	w := archive.New(f.Config)
	for _, body := range bodies {
		f.now = f.now.Add(time.Hour)
		w.Keep(record(id, page, body, f.now))
	}
	w.Start()
	err := w.Close()
	return w.Stats(), err
}

func record(id string, page int, body string, at time.Time) archive.Record {
	return archive.Record{
		Definition: &source.Definition{ID: id, Pages: []source.Page{{Name: "usd", Requests: []source.Request{{URL: "https://a.example/usd"}}}, {Name: "eur"}}},
		Page:       page, Published: true, Rates: []archive.Rate{{InstitutionID: "bhd", Currency: "USD", Buy: "58"}},
		Document: &source.Document{URL: "https://a.example/", Headers: map[string]string{"Server": "nginx"}, Body: []byte(body), FetchedAt: at},
	}
}

// bodies returns the documents of a source, oldest first.
func (f *fixture) bodies(id string) (texts []string) {
	f.t.Helper()
	entries, problems := f.dir.List(id, time.Time{})
	for i := range entries {
		document, err := f.dir.Document(&entries[i])
		if err != nil {
			problems = append(problems, err)
			continue
		}
		texts = append(texts, string(document.Body))
	}
	if len(problems) > 0 {
		f.t.Errorf("%s: %v", id, errors.Join(problems...))
	}
	return texts
}

func (f *fixture) want(id string, want ...string) {
	f.t.Helper()
	if got := f.bodies(id); fmt.Sprint(got) != fmt.Sprint(want) {
		f.t.Errorf("%s has %.300q, want %.300q", id, got, want)
	}
}

// TestWriter_KeepsNoTokenOfASession wants the query of an address only if the definition has it.
func TestWriter_KeepsNoTokenOfASession(t *testing.T) {
	f := newFixture(t)
	w := archive.New(f.Config)
	for i, url := range []string{"https://a.example/usd?lang=es", "https://a.example/rates;usd?session=5eC3et"} {
		r := record("x-site", 0, url, f.now.Add(time.Duration(i)*time.Hour))
		r.Definition.Pages[0].Requests[0].URL, r.Document.URL = "https://a.example/usd?lang=es", url
		w.Keep(r)
	}
	w.Start()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	entries, problems := f.dir.List("x-site", time.Time{})
	if len(entries) != 2 || len(problems) > 0 {
		t.Fatalf("%d entries, %v", len(entries), problems)
	}
	if first, second := entries[0].URL, entries[1].URL; first != "https://a.example/usd?lang=es" || second != "https://a.example/rates;usd" {
		t.Errorf("the addresses are %q and %q", first, second)
	}
}

// TestWriter_KeepsWhatChanges wants each document that differs from the last of its page, also after a restart, with
// the bytes of equal documents once, and in files that only the owner reads.
func TestWriter_KeepsWhatChanges(t *testing.T) {
	f := newFixture(t)
	for _, body := range []string{"a", "a", "b", "a"} { // each after a restart
		if _, err := f.keep("x-site", 0, body, body); err != nil {
			t.Fatal(err)
		}
	}
	stats, err := f.keep("x-site", 1, "a")
	if err != nil || stats.Documents != 4 || stats.Bytes < 4*4096 || stats.Failures != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
	f.want("x-site", "a", "b", "a", "a")
	objects, err := filepath.Glob(filepath.Join(string(f.dir), "objects", "*", "*"))
	if err != nil || len(objects) != 2 {
		t.Errorf("objects %v, %v", objects, err)
	}
	err = filepath.WalkDir(string(f.dir), func(path string, entry fs.DirEntry, err error) error {
		info, _ := entry.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[entry.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	entries, _ := f.dir.List("x-site", f.now)
	if len(entries) != 1 || entries[0].Page != "eur" || entries[0].Headers["Server"] != "nginx" || !entries[0].Published || entries[0].Rates[0].Buy != "58" {
		t.Errorf("the newest is %+v", entries)
	}
}

// TestDir_At wants the document of each page that was valid at a time.
func TestDir_At(t *testing.T) {
	f := newFixture(t)
	_, _ = f.keep("x-site", 0, "a", "b")
	_, _ = f.keep("x-site", 1, "c")
	for hours, want := range map[int]string{0: "", 1: "usd", 2: "usd", 3: "usd eur", 99: "usd eur"} {
		entries, problems := f.dir.At("x-site", start.Add(time.Duration(hours)*time.Hour))
		var pages []string
		for i := range entries {
			pages = append(pages, entries[i].Page)
		}
		if got := strings.Join(pages, " "); got != want || len(problems) > 0 {
			t.Errorf("after %d hours: %q, want %q; %v", hours, got, want, problems)
		}
	}
	for _, id := range []string{"../x-site", "", "none", "x-site/."} {
		if entries, problems := f.dir.At(id, f.now); len(entries)+len(problems) > 0 {
			t.Errorf("%q has %v, %v", id, entries, problems)
		}
	}
}

// TestWriter_Prunes wants what is too old removed, and of what is too much the oldest of the source that needs most.
func TestWriter_Prunes(t *testing.T) {
	f := newFixture(t)
	noise := rand.NewChaCha8([32]byte{1}) // can't be compressed
	large := func() string {
		text := make([]byte, 40<<10)
		_, _ = noise.Read(text)
		return string(text)
	}
	f.BytesMax = 500 << 10
	_, _ = f.keep("small", 0, "a", "b")
	bodies := []string{}
	for range 15 {
		bodies = append(bodies, large())
	}
	stats, err := f.keep("large", 0, bodies...)
	if err != nil || stats.Bytes > 500<<10 {
		t.Errorf("%+v, %v", stats, err)
	}
	f.want("small", "a", "b")
	if kept := f.bodies("large"); len(kept) < 8 || len(kept) > 12 || kept[len(kept)-1] != bodies[14] {
		t.Errorf("%d large documents are kept", len(kept))
	}
	f.now = f.now.Add(archive.AgeMaxDefault)
	if stats, err = f.keep("small", 0, "c"); err != nil || stats.Documents != 1 {
		t.Errorf("after %v: %+v, %v", archive.AgeMaxDefault, stats, err)
	}
	f.want("small", "c")
	f.want("large")
	if objects, _ := filepath.Glob(filepath.Join(string(f.dir), "objects", "*", "*")); len(objects) != 1 {
		t.Errorf("%d objects remain", len(objects))
	}
}

// TestWriter_KeepsAgainWhatWasPruned wants a page that does not change to get its document back after a sweep took it.
func TestWriter_KeepsAgainWhatWasPruned(t *testing.T) {
	f := newFixture(t)
	f.BytesMax = 20 << 10 // two documents, with the blocks of their files
	w := archive.New(f.Config)
	for i, body := range []string{"a", "b", "c", "d"} {
		w.Keep(record("x-site", 1, body, f.now.Add(time.Duration(2*i)*time.Hour)))
		w.Keep(record("x-site", 0, "same", f.now.Add(time.Duration(2*i+1)*time.Hour)))
	}
	w.Start()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if entries, problems := f.dir.At("x-site", time.Time{}); len(entries) != 2 || len(problems) > 0 {
		t.Errorf("the newest are %+v, %v", entries, problems)
	}
}

// TestDir_Damaged wants damaged, torn and foreign files reported or ignored: they stop neither reading nor writing.
func TestDir_Damaged(t *testing.T) {
	f := newFixture(t)
	_, _ = f.keep("x-site", 0, "good", "flipped", "torn", "gone", "huge")
	entries, _ := f.dir.List("x-site", time.Time{})
	object := func(i int) string {
		return filepath.Join(string(f.dir), "objects", entries[i].Digest[:2], entries[i].Digest+".zst")
	}
	other, _ := os.ReadFile(object(0))
	bomb := bytes.Repeat([]byte{0}, 33<<20)
	entry := filepath.Join(string(f.dir), "entries", "x-site")
	for path, data := range map[string][]byte{
		object(1): other, object(2): other[:len(other)/2], object(4): bomb,
		filepath.Join(entry, "README"): nil, filepath.Join(string(f.dir), "entries", "note"): nil, filepath.Join(string(f.dir), "objects", "x"): nil,
		filepath.Join(entry, "20260630T120000.000Z-00-"+entries[0].Digest+".json"): []byte(`{"source": "x-si`),
		filepath.Join(entry, "20260630T120000.001Z-00-"+entries[0].Digest+".json"): []byte(`{"source": "y-site"}`),
		filepath.Join(entry, ".new-1"):                                             []byte("interrupted"),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(object(3)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(entry, ".new-1"), start, start); err != nil {
		t.Fatal(err)
	}
	listed, problems := f.dir.List("x-site", time.Time{})
	if len(listed) != 5 || len(problems) != 2 {
		t.Errorf("%d entries, %v", len(listed), problems)
	}
	for i := range listed {
		document, err := f.dir.Document(&listed[i])
		if good := err == nil && string(document.Body) == "good"; good != (i == 0) || good != (err == nil) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if stats, err := f.keep("x-site", 0, "more"); err != nil || stats.Failures != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
	if _, err := os.Stat(filepath.Join(entry, "README")); err != nil {
		t.Errorf("a foreign file was removed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(entry, ".new-1")); err == nil {
		t.Error("the file of an interrupted writer remains")
	}
}

// TestWriter_DiskFull wants a full or broken disk reported once, and documents kept as soon as it has room again.
func TestWriter_DiskFull(t *testing.T) {
	f := newFixture(t)
	free := int64(1 << 20)
	f.Free = func(string) (int64, error) { return free, nil }
	if stats, err := f.keep("x-site", 0, "a", "b", "c"); err == nil || stats.Failures != 3 || stats.Documents != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
	if records := strings.Count(f.log.String(), "level=WARN"); records != 1 {
		t.Errorf("%d records:\n%s", records, &f.log)
	}
	free = 1 << 40
	if _, err := f.keep("x-site", 0, "c"); err != nil {
		t.Error(err)
	}
	f.want("x-site", "c")
	full := newFixture(t)
	_, _ = full.keep("x-site", 0, "a")
	full.Free = func(string) (int64, error) { return free, nil }
	free = 1 << 20
	w := archive.New(full.Config) // page 1 changes, page 0 does not
	for i := range 6 {
		w.Keep(record("x-site", i%2, []string{"a", fmt.Sprint(i)}[i%2], start.Add(time.Duration(i)*time.Hour)))
	}
	w.Start()
	if err := w.Close(); err == nil || strings.Count(full.log.String(), "\n") != 1 {
		t.Errorf("%v; want one record:\n%s", err, &full.log)
	}
	broken := newFixture(t)
	if err := os.WriteFile(string(broken.dir), nil, 0o600); err != nil { // a file where the directory should be
		t.Fatal(err)
	}
	if stats, err := broken.keep("x-site", 0, "a"); err == nil || stats.Failures == 0 {
		t.Errorf("%+v, %v", stats, err)
	}
}

// TestWriter_SlowDisk wants Keep to drop documents, and not to wait, while the disk does nothing.
func TestWriter_SlowDisk(t *testing.T) {
	f := newFixture(t)
	hang, hung := context.WithCancel(t.Context())
	f.Free = func(string) (int64, error) { <-hang.Done(); return 1 << 40, nil }
	w := archive.New(f.Config)
	w.Start()
	body := strings.Repeat("x", 10<<20)
	for i := range 20 { // 200 MB
		w.Keep(record("x-site", 0, fmt.Sprint(i)+body, start.Add(time.Duration(i)*time.Hour)))
	}
	if failures := w.Stats().Failures; failures < 13 || failures > 14 {
		t.Errorf("%d documents were dropped", failures)
	}
	hung()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if kept, _ := f.dir.List("x-site", time.Time{}); len(kept) != int(20-w.Stats().Failures) {
		t.Errorf("%d were kept, %d dropped", len(kept), w.Stats().Failures)
	}
}
