package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	indexDigits    = 20 // the library names a segment by the index of its first frame
	snapshotPrefix = "snapshot-"
	tempSuffix     = ".tmp"
)

// numberedFile is a file named by a number: a segment by its first frame, a snapshot by its sequence.
type numberedFile struct {
	number uint64
	path   string
}

// listing is the files of a log directory, sorted by number.
type listing struct {
	mark      []string // its path, if it exists
	segments  []numberedFile
	snapshots []numberedFile
	temps     []string // unfinished snapshots
	foreign   []string // files that the library would act on
}

// listDir sorts the names in the directory. It skips names that neither this package nor the library uses, such as
// files that were moved aside. A missing directory is empty.
func listDir(dir string) (listing, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return listing{}, err
	}
	var l listing
	for _, e := range entries {
		l.add(filepath.Join(dir, e.Name()), e.Name(), e.Type().IsRegular())
	}
	byNumber := func(a, b numberedFile) int { return cmp.Compare(a.number, b.number) }
	slices.SortFunc(l.segments, byNumber)
	slices.SortFunc(l.snapshots, byNumber)
	return l, nil
}

func (l *listing) add(path, name string, regular bool) {
	if name == markName {
		l.mark = []string{path}
		return
	}
	if rest, ok := strings.CutPrefix(name, snapshotPrefix); ok {
		l.addSnapshot(path, rest, regular)
		return
	}
	if len(name) < indexDigits {
		return
	}
	index, ok := parseIndex(name[:indexDigits])
	if !ok {
		return
	}
	switch suffix := name[indexDigits:]; {
	case suffix == "" && regular && index > 0:
		l.segments = append(l.segments, numberedFile{index, path})
	case suffix == "", suffix == ".START", suffix == ".END":
		// On finding one of the last two the library deletes segments. It makes them when it truncates, which this
		// package never lets it do.
		l.foreign = append(l.foreign, path)
	}
}

func (l *listing) addSnapshot(path, rest string, regular bool) {
	if number, ok := strings.CutSuffix(rest, tempSuffix); ok {
		if _, ok := parseIndex(number); ok && regular {
			l.temps = append(l.temps, path)
		}
		return
	}
	sequence, ok := parseIndex(rest)
	switch {
	case ok && regular && sequence > 0:
		l.snapshots = append(l.snapshots, numberedFile{sequence, path})
	case ok:
		l.foreign = append(l.foreign, path)
	}
}

// parseIndex reads exactly 20 decimal digits.
func parseIndex(s string) (uint64, bool) {
	if len(s) != indexDigits || strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

func segmentPath(dir string, index uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%0*d", indexDigits, index))
}

func snapshotPath(dir string, sequence uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%0*d", snapshotPrefix, indexDigits, sequence))
}
