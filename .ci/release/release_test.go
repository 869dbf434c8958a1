package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// at returns the time of a commit.
func at() time.Time { return time.Date(2026, 11, 30, 14, 5, 6, 0, time.UTC) }

// TestTar_Reproducible checks that times, owners and modes are those given, not those of the machine.
func TestTar_Reproducible(t *testing.T) {
	files := sorted([]file{{name: "d/x", data: []byte("x"), mode: modeProgram}, {name: "d/", mode: modePrivate, owner: imageUser}, {name: "a"}})
	var first, second bytes.Buffer
	if err := errors.Join(writeTar(&first, files, at()), writeTar(&second, files, at())); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of the same files differ")
	}
	var got []string
	for reader := tar.NewReader(&first); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(at()) || header.Uname != "" || header.Uid != header.Gid {
			t.Errorf("%s: %+v", header.Name, header)
		}
		got = append(got, header.FileInfo().Mode().String()+" "+header.Name)
	}
	if want := "-rw-r--r-- a,drwx------ d/,-rwxr-xr-x d/x"; strings.Join(got, ",") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ","), want)
	}
}

func TestLicences_Table(t *testing.T) {
	got := licencesOf("MIT                example.com/a v1.0.0\nBSD-3-Clause,MIT   example.com/b/v2 v2.0.1\n2 modules linked, 0 with an unknown or copyleft licence\n")
	if len(got) != 2 || got["example.com/a@v1.0.0"] != "MIT" || got["example.com/b/v2@v2.0.1"] != "BSD-3-Clause AND MIT" {
		t.Errorf("got %q", got)
	}
}

// TestNotices_Missing checks that a module without a licence file is an error.
func TestNotices_Missing(t *testing.T) {
	dir := t.TempDir()
	if _, err := notices([]linkedModule{{path: "example.com/a", version: "v1.0.0", dir: dir}}); err == nil || !strings.Contains(err.Error(), "example.com/a v1.0.0 has no licence file") {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENCE.txt"), []byte("\nBe kind.\r\n"), modeFile); err != nil {
		t.Fatal(err)
	}
	got, err := notices([]linkedModule{{path: "example.com/a", version: "v1.0.0", dir: dir, licence: "MIT"}})
	if err != nil || !strings.Contains(string(got), "example.com/a v1.0.0 (MIT)\n") || !strings.HasSuffix(string(got), "\n\nBe kind.\n") {
		t.Errorf("%v: %s", err, got)
	}
}

// TestNotices_Files checks which names count as licence files.
func TestNotices_Files(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"LICENSE", "Licence.md", "COPYING", "NOTICE.txt", "PATENTS", "bundle.js.LICENSE.txt", "README.md", "licenses.go.txt.bak", "x_license.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), modeFile); err != nil {
			t.Fatal(err)
		}
	}
	found, err := legalFiles(dir)
	if got, want := string(bytes.Join(found, []byte(","))), "COPYING,LICENSE,Licence.md,NOTICE.txt,PATENTS,bundle.js.LICENSE.txt,licenses.go.txt.bak"; err != nil || got != want {
		t.Errorf("%v: got %s, want %s", err, got, want)
	}
}

// TestRootCertificates checks that the image's certificate file parses as a root store.
func TestRootCertificates(t *testing.T) {
	text, err := rootCertificates()
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) || bytes.Count(text, []byte("BEGIN CERTIFICATE")) < 100 {
		t.Errorf("%d certificates, want Mozilla's", bytes.Count(text, []byte("BEGIN CERTIFICATE")))
	}
}

// repository makes a repository with two commits, the first tagged v1.0.0.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"commit", "--quiet", "--allow-empty", "-m", "one"},
		{"tag", "v1.0.0"},
		{"commit", "--quiet", "--allow-empty", "-m", "two"},
	} {
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)
		if _, err := git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSource_Versions(t *testing.T) {
	for _, test := range []struct{ version, commit, want, why string }{
		{"", "v1.0.0", "1.0.0", ""},
		{"1.0.0", "v1.0.0", "1.0.0", ""},
		{"1.1.0-rc.2", "HEAD", "1.1.0-rc.2", ""},
		{"", "HEAD", "", "has no tag like v1.2.3; tag it, or give VERSION=1.2.3"},
		{"1.0.0", "HEAD", "", "the tag v1.0.0 is on commit"},
		{"v1.1.0", "HEAD", "", `version "v1.1.0": want`},
		{"1.1", "HEAD", "", `version "1.1": want`},
		{"1.1.0+x", "HEAD", "", `version "1.1.0+x": want`},
		{"1.1.0", "none", "", "find commit none in"},
	} {
		got, err := openSource(t.Context(), repository(t), test.version, test.commit, filepath.Join(t.TempDir(), "clone"))
		if test.why != "" {
			if err == nil || !strings.Contains(err.Error(), test.why) {
				t.Errorf("%q of %s: %v, want %q", test.version, test.commit, err, test.why)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q of %s: %v", test.version, test.commit, err)
			continue
		}
		tags, err := git(t.Context(), got.dir, "tag", "--points-at", "HEAD")
		if err != nil || got.version != test.want || tags != "v"+test.want {
			t.Errorf("%q of %s: version %q, tags %q, %v", test.version, test.commit, got.version, tags, err)
		}
	}
}

// TestRun_OutputNotEmpty checks that a release is not mixed with an older one.
func TestRun_OutputNotEmpty(t *testing.T) {
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "old"), nil, modeFile); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-repository", repository(t), "-version", "1.1.0", "-out", out}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("got %v", err)
	}
}
