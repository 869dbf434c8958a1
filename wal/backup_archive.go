package wal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	archiveMagic         = "tsBK"
	skippableFrameMagic  = 0x184D2A5E // begins a frame that every zstd decoder skips
	archiveHeaderBytes   = 16
	archiveVersionOffset = 12
	archiveTrailerBytes  = 8 + sha256.Size
	archiveWindowBytes   = 1 << 20 // about the memory that a reader needs
)

// archiveHeader is the first zstd frame of a backup file: it names the format.
func archiveHeader() []byte {
	b := binary.LittleEndian.AppendUint32(nil, skippableFrameMagic)
	b = binary.LittleEndian.AppendUint32(b, archiveHeaderBytes-8)
	b = append(b, archiveMagic...)
	return append(b, backupFormat, 0, 0, 0)
}

// archiveTrailer is the last zstd frame: the sum of everything before it.
func archiveTrailer(sum hash.Hash) []byte {
	b := binary.LittleEndian.AppendUint32(nil, skippableFrameMagic)
	b = binary.LittleEndian.AppendUint32(b, sha256.Size)
	return sum.Sum(b)
}

// archiveWriter compresses what is written to it.
type archiveWriter struct {
	*zstd.Encoder
	out *bufio.Writer
	sum hash.Hash // of everything written to out
}

// NewBackupFile returns a writer that compresses a stream of Backup into a backup file. Without its Close the file is
// incomplete; to stays open.
func NewBackupFile(to io.Writer) (io.WriteCloser, error) {
	w := &archiveWriter{sum: sha256.New()}
	w.out = bufio.NewWriterSize(io.MultiWriter(to, w.sum), backupChunkBytes)
	_, _ = w.out.Write(archiveHeader()) // it fits the buffer
	var err error
	w.Encoder, err = zstd.NewWriter(w.out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(archiveWindowBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return w, nil
}

// Close implements io.Closer.
func (w *archiveWriter) Close() error {
	if err := errors.Join(w.Encoder.Close(), w.out.Flush()); err != nil {
		return err
	}
	_, _ = w.out.Write(archiveTrailer(w.sum)) // it fits the buffer
	return w.out.Flush()
}

// archiveReader decompresses a backup file. It returns io.EOF only after a trailer with the right sum; before that the
// content is not known to be whole.
type archiveReader struct {
	from    *hashingReader
	decoder *zstd.Decoder
}

func newArchiveReader(from io.Reader, name string) (*archiveReader, error) {
	r := &archiveReader{from: &hashingReader{from: from, name: name, sum: sha256.New()}}
	if err := r.from.readHeader(); err != nil {
		return nil, err
	}
	var err error
	r.decoder, err = zstd.NewReader(r.from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(archiveWindowBytes))
	if err != nil {
		return nil, r.damageOf(err)
	}
	return r, nil
}

func (r *archiveReader) close() { r.decoder.Close() }

// Read implements io.Reader.
func (r *archiveReader) Read(p []byte) (int, error) {
	n, err := r.decoder.Read(p)
	return n, r.damageOf(err)
}

// damageOf returns the error of the file if there is one, and a DamageError for one of zstd.
func (r *archiveReader) damageOf(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF) && errors.Is(r.from.err, io.EOF):
		return err
	case r.from.err != nil && !errors.Is(r.from.err, io.EOF):
		return r.from.err
	}
	return r.from.damageError(r.from.offset, "zstd data", err.Error())
}

// hashingReader reads a backup file between its header and its trailer, and sums it.
type hashingReader struct {
	from    io.Reader
	name    string
	sum     hash.Hash
	buffer  [64 << 10]byte
	pending []byte // part of the buffer; its last archiveTrailerBytes may be the trailer
	offset  int64  // of pending in the file
	err     error  // of from, or a DamageError
}

func (r *hashingReader) damageError(at int64, expected, found string) error {
	return &DamageError{File: r.name, Offset: at, Expected: expected, Found: found, Hint: hintOtherBackup}
}

func (r *hashingReader) readHeader() error {
	for len(r.pending) < archiveHeaderBytes && r.err == nil {
		r.fill()
	}
	b, want := r.pending, archiveHeader()
	known := min(len(b), archiveVersionOffset)
	switch {
	case len(b) < archiveHeaderBytes && !errors.Is(r.err, io.EOF):
		return r.err
	case len(b) == 0:
		return &DamageError{File: r.name, Found: "is empty", Hint: hintNoBackup}
	case !bytes.Equal(b[:known], want[:known]):
		return &DamageError{File: r.name, Found: fmt.Sprintf("begins with %q", b[:known]), Hint: hintNoBackup}
	case len(b) < archiveHeaderBytes:
		return r.damageError(int64(len(b)), fmt.Sprintf("a header of %d bytes", archiveHeaderBytes), "the end of the file")
	case b[archiveVersionOffset] != backupFormat:
		return &FormatError{File: r.name, Version: b[archiveVersionOffset], Supported: backupFormat}
	case !bytes.Equal(b[:archiveHeaderBytes], want):
		at := archiveVersionOffset + 1
		return r.damageError(int64(at), fmt.Sprintf("% x", want[at:]), fmt.Sprintf("% x", b[at:archiveHeaderBytes]))
	}
	r.consume(archiveHeaderBytes)
	return nil
}

// fill reads more bytes after the pending ones.
func (r *hashingReader) fill() {
	kept := copy(r.buffer[:], r.pending)
	n, err := r.from.Read(r.buffer[kept:])
	r.pending, r.err = r.buffer[:kept+n], err
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = fmt.Errorf("read %s: %w", r.name, err)
	}
}

// consume returns n pending bytes and adds them to the sum.
func (r *hashingReader) consume(n int) []byte {
	out := r.pending[:n]
	_, _ = r.sum.Write(out) // a hash never fails
	r.pending, r.offset = r.pending[n:], r.offset+int64(n)
	return out
}

// Read implements io.Reader. At the end of the file it checks the sum.
func (r *hashingReader) Read(p []byte) (int, error) {
	for len(r.pending) <= archiveTrailerBytes && r.err == nil {
		r.fill()
	}
	if len(r.pending) > archiveTrailerBytes {
		return copy(p, r.consume(min(len(p), len(r.pending)-archiveTrailerBytes))), nil
	}
	if errors.Is(r.err, io.EOF) {
		switch want := archiveTrailer(r.sum); {
		case len(r.pending) < archiveTrailerBytes || !bytes.Equal(r.pending[:8], want[:8]):
			r.err = r.damageError(r.offset+int64(len(r.pending)), "a SHA-256 at the end", "the end of the file")
		case !bytes.Equal(r.pending, want):
			r.err = r.damageError(r.offset+8, fmt.Sprintf("a file with SHA-256 %x", r.pending[8:]), fmt.Sprintf("%x", want[8:]))
		}
	}
	return 0, r.err
}
