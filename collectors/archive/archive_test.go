package archive

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

var start = time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)

// fixture is an archive whose clock the test sets.
type fixture struct {
	t   *testing.T
	now time.Time
	log bytes.Buffer
	Config
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, now: start}
	f.Config = Config{Dir: filepath.Join(t.TempDir(), "archive"), Clock: func() time.Time { return f.now }, Logger: slog.New(slog.NewTextHandler(&f.log, nil))}
	return f
}

// keep gives documents of one page, an hour apart, to a writer.
func (f *fixture) keep(w *Writer, id string, page int, bodies ...string) {
	for _, body := range bodies {
		f.now = f.now.Add(time.Hour)
		w.Keep(id, page, &source.Document{Body: []byte(body), FetchedAt: f.now})
	}
}

// bodies returns the documents of a source, oldest first.
func (f *fixture) bodies(id string) (texts []string) {
	f.t.Helper()
	names, err := filepath.Glob(filepath.Join(f.Dir, "*", id, "*.zst"))
	for _, name := range names {
		data, readErr := os.ReadFile(name)
		body, unpackErr := Unpack(data)
		err = errors.Join(err, readErr, unpackErr)
		texts = append(texts, string(body))
		if digest := (&source.Document{Body: body}).Digest(); !strings.HasSuffix(name, digest+".zst") {
			f.t.Errorf("%s has a document with the digest %s", name, digest)
		}
		if info, statErr := os.Stat(name); statErr != nil || info.Mode().Perm() != 0o600 {
			f.t.Errorf("%s: %v, %v", name, info, statErr)
		}
	}
	if err != nil {
		f.t.Error(err)
	}
	return texts
}

func (f *fixture) want(id string, want ...string) {
	f.t.Helper()
	if got := f.bodies(id); !slices.Equal(got, want) {
		f.t.Errorf("%s has %.300q, want %.300q", id, got, want)
	}
}

// Each document that differs from the last of its page is kept, also after a restart.
func TestKeep_WhatChanges(t *testing.T) {
	f := newFixture(t)
	for _, body := range []string{"a", "a", "b", "a"} { // each after a restart
		f.keep(New(f.Config), "x-site", 0, body, body)
	}
	w := New(f.Config)
	f.keep(w, "x-site", 1, "a")
	f.keep(w, "y-site", 0, "")
	f.want("x-site", "a", "b", "a", "a")
	f.want("y-site", "")
	if stats := w.Stats(); stats.Documents != 5 || stats.Bytes < 5*10 || stats.Failures != 0 {
		t.Errorf("%+v", stats)
	}
}

// Old files go, but the newest of each page stays. Foreign files are not touched; files of older versions are removed
// when they are too old.
func TestSweep(t *testing.T) {
	f := newFixture(t)
	f.AgeMax = 30 * 24 * time.Hour
	w := New(f.Config)
	f.keep(w, "x-site", 0, "a", "b")
	f.keep(w, "x-site", 1, "c")
	f.keep(w, "gone", 0, "d", "e")
	f.now = f.now.Add(20 * 24 * time.Hour)
	f.keep(w, "x-site", 0, "f")
	for _, name := range []string{"notes.txt", "entries/x-site/a.json", "objects/aa/a.zst", "2026-06-30/x-site/.new-1"} {
		path := filepath.Join(f.Dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600), os.Chtimes(path, start, start))
		if err != nil {
			t.Fatal(err)
		}
	}
	f.now = f.now.Add(20 * 24 * time.Hour)
	f.keep(w, "y-site", 0, "g")
	f.want("x-site", "c", "f")
	f.want("gone", "e")
	if stats := w.Stats(); stats.Documents != 4 {
		t.Errorf("%+v", stats)
	}
	var others []string
	_ = filepath.WalkDir(f.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, ".zst") {
			others = append(others, filepath.Base(path))
		}
		return err
	})
	if !slices.Equal(others, []string{"notes.txt"}) {
		t.Errorf("other files: %q", others)
	}
	f.keep(New(f.Config), "gone", 0, "e") // known after a restart
	f.want("gone", "e")
}

// A failure is counted and logged once, and again when it ends.
func TestKeep_Failures(t *testing.T) {
	f := newFixture(t)
	free := int64(1 << 20)
	f.Free = func(string) (int64, error) { return free, nil }
	w := New(f.Config)
	f.keep(w, "x-site", 0, "a", "b")
	free = 1 << 40
	f.keep(w, "x-site", 0, "c")
	f.want("x-site", "c")
	if stats := w.Stats(); stats.Failures != 2 || strings.Count(f.log.String(), "not archived") != 1 || strings.Count(f.log.String(), "archived again") != 1 {
		t.Errorf("%+v\n%s", stats, f.log.String())
	}
	if err := os.RemoveAll(f.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.keep(w, "x-site", 0, "d")
	if stats := w.Stats(); stats.Failures != 3 {
		t.Errorf("a file instead of the directory: %+v", stats)
	}
}

func TestUnpack(t *testing.T) {
	if got, err := Unpack([]byte("<html>")); err != nil || string(got) != "<html>" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Unpack([]byte("\x28\xb5\x2f\xfdxxxx")); err == nil {
		t.Error("a damaged file is no error")
	}
}
