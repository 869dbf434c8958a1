package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files that do not exist yet")

// TestW11_GoldenFormat1 opens a directory of format version 1 and writes the same bytes again. The fixture is never
// replaced, also not with -update; a later format gets its own.
func TestW11_GoldenFormat1(t *testing.T) {
	fixture := filepath.Join("testdata", "v1")
	if _, err := os.Stat(fixture); *update && errors.Is(err, os.ErrNotExist) {
		must(t, os.MkdirAll(fixture, 0o755))
		fresh := filepath.Join(t.TempDir(), "log")
		compacted(t, fresh)
		writeFiles(t, fixture, readFiles(t, fresh))
	}
	kept := readFiles(t, fixture)
	if len(segmentNames(kept)) < 2 {
		t.Fatalf("%d segments in %s", len(segmentNames(kept)), fixture)
	}
	dir := filepath.Join(t.TempDir(), "log")
	writeFiles(t, dir, kept)
	report, err := Verify(dir)
	if err != nil || report.Mark != MarkWhole || len(report.Snapshots) != 2 || report.TornBytes != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	l := mustOpen(t, dir, testOptions())
	wantWhole(t, l)
	mustAppend(t, l, 3)
	mustClose(t, l)
	fresh := filepath.Join(t.TempDir(), "log")
	compacted(t, fresh)
	now := readFiles(t, fresh)
	if !maps.EqualFunc(now, kept, bytes.Equal) {
		t.Error("the same history is written with other bytes: that needs a new format version")
	}
}

// TestW11_NewerFormatIsRefused opens logs with a file of version 2.
func TestW11_NewerFormatIsRefused(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	compacted(t, dir)
	all := readFiles(t, dir)
	first := segmentNames(all)[0]
	var newest string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(name) > len(snapshotPrefix) && name[:len(snapshotPrefix)] == snapshotPrefix {
			newest = name
		}
	}
	for name, change := range map[string]func([]byte){
		first: func(b []byte) {
			_, prefix := binary.Uvarint(b)
			b[prefix+4] = 2
			binary.LittleEndian.PutUint32(b[prefix+36:], checksum(b[prefix:][:36]))
		},
		newest: func(b []byte) {
			b[4] = 2
			binary.LittleEndian.PutUint32(b[16:], checksum(b[:16]))
		},
		markName: func(b []byte) {
			b[4] = 2
			binary.LittleEndian.PutUint32(b[508:], checksum(b[:508]))
		},
	} {
		broken := maps.Clone(all)
		broken[name] = slices.Clone(all[name])
		change(broken[name])
		writeFiles(t, dir, broken)
		before := hashDir(t, dir)
		for what, err := range map[string]error{
			"open": errorOf(Open(dir, testOptions())), "verify": errorOf(Verify(dir)), "repair": errorOf(Repair(dir, testOptions())),
		} {
			var format *FormatError
			if !errors.As(err, &format) || filepath.Base(format.File) != name || format.Version != 2 || format.Supported != 1 ||
				strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "newer") {
				t.Errorf("%s with %s: %v", what, name, err)
			}
		}
		if hashDir(t, dir) != before {
			t.Errorf("%s: the directory was changed", name)
		}
	}
}
