package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Modes of files and directories in all that is made.
const (
	modeFile    = 0o644
	modeProgram = 0o755
	modeDir     = 0o755
	modePrivate = 0o700
	modeAny     = 0o1777
)

// file is a file or directory to pack. Its owner is root unless it says otherwise.
type file struct {
	name  string // with slashes, relative; a directory ends with one
	data  []byte
	mode  int64 // 0 = modeFile, or modeDir of a directory
	owner int
}

// rights are the mode, with its default.
func (f file) rights() int64 {
	if strings.HasSuffix(f.name, "/") {
		return cmp.Or(f.mode, modeDir)
	}
	return cmp.Or(f.mode, modeFile)
}

// sorted puts files in the one order that everything is packed in.
func sorted(files []file) []file {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files
}

// writeTar packs files, in the order that they have, as of one time.
func writeTar(out io.Writer, files []file, at time.Time) error {
	w := tar.NewWriter(out)
	for _, f := range files {
		header := &tar.Header{
			Name: f.name, Mode: f.rights(), Size: int64(len(f.data)), ModTime: at, Uid: f.owner, Gid: f.owner, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
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

// zipped is data compressed by gzip, without name and time.
func zipped(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}
