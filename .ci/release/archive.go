package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Modes of packed files and directories.
const (
	modeFile    = 0o644
	modeProgram = 0o755
	modeDir     = 0o755
	modePrivate = 0o700
	modeAny     = 0o1777
)

// file is a file or directory to pack.
type file struct {
	name  string // relative, with slashes; the name of a directory ends with a slash
	data  []byte
	mode  int64 // 0 = modeFile, or modeDir for a directory
	owner int   // ID of the user and of the group that own the file; 0 = root
}

func (f file) modeOrDefault() int64 {
	if strings.HasSuffix(f.name, "/") {
		return cmp.Or(f.mode, modeDir)
	}
	return cmp.Or(f.mode, modeFile)
}

// sorted sorts files by name.
func sorted(files []file) []file {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files
}

// writeTar packs files in the order of the slice. at is the modification time that every file gets.
func writeTar(out io.Writer, files []file, at time.Time) error {
	w := tar.NewWriter(out)
	for _, f := range files {
		header := &tar.Header{
			Name: f.name, Mode: f.modeOrDefault(), Size: int64(len(f.data)), ModTime: at, Uid: f.owner, Gid: f.owner,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return nil
}

// compress compresses data with gzip. The header has no name and no time, so that the same data gives the same bytes.
func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}
