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
	archiveWindowBytes   = 1 << 20 // window of the compression; a reader needs about this much memory
)

// archiveHeader returns the first zstd frame of a backup file. The frame names the format.
func archiveHeader() []byte {
	b := binary.LittleEndian.AppendUint32(nil, skippableFrameMagic)
	b = binary.LittleEndian.AppendUint32(b, archiveHeaderBytes-8)
	b = append(b, archiveMagic...)
	return append(b, backupFormat, 0, 0, 0)
}

// archiveTrailer returns the last zstd frame of a backup file. The frame has the SHA-256 of everything before it.
func archiveTrailer(sum hash.Hash) []byte {
	b := binary.LittleEndian.AppendUint32(nil, skippableFrameMagic)
	b = binary.LittleEndian.AppendUint32(b, sha256.Size)
	return sum.Sum(b)
}

// archiveWriter writes a compressed backup file.
type archiveWriter struct {
	*zstd.Encoder
	out *bufio.Writer
	sum hash.Hash // SHA-256 of everything that was written to out
}

// NewBackupFile returns a writer that compresses the output of Backup into file. Its Close completes the backup file,
// but does not close file.
func NewBackupFile(file io.Writer) (io.WriteCloser, error) {
	w := &archiveWriter{sum: sha256.New()}
	w.out = bufio.NewWriterSize(io.MultiWriter(file, w.sum), backupChunkBytes)
	_, _ = w.out.Write(archiveHeader()) // cannot fail: it fits the buffer
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
	_, _ = w.out.Write(archiveTrailer(w.sum)) // cannot fail: it fits the buffer
	return w.out.Flush()
}

// archiveReader decompresses a backup file. At the end it verifies the SHA-256 in the trailer, and returns io.EOF only
// if the SHA-256 is right. Before io.EOF the data may be incomplete.
type archiveReader struct {
	file    *hashingReader
	decoder *zstd.Decoder
}

func newArchiveReader(file io.Reader, name string) (*archiveReader, error) {
	r := &archiveReader{file: &hashingReader{src: file, name: name, sum: sha256.New()}}
	if err := r.file.readHeader(); err != nil {
		return nil, err
	}
	var err error
	r.decoder, err = zstd.NewReader(r.file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
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

// damageOf returns the error of reading the file if there was one. Otherwise it turns an error of zstd into a
// *DamageError.
func (r *archiveReader) damageOf(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF) && errors.Is(r.file.err, io.EOF):
		return err
	case r.file.err != nil && !errors.Is(r.file.err, io.EOF):
		return r.file.err
	}
	return r.file.damageError(r.file.offset, "zstd data", err.Error())
}

// hashingReader reads the part of a backup file between header and trailer. It verifies the header and the trailer.
type hashingReader struct {
	src     io.Reader
	name    string
	sum     hash.Hash // SHA-256 of the header and of everything that Read has returned
	buffer  [64 << 10]byte
	pending []byte // bytes that Read has not returned; the final archiveTrailerBytes of them may be the trailer
	offset  int64  // offset of pending in the file
	err     error  // error of src, or a *DamageError
}

func (r *hashingReader) damageError(offset int64, expected, found string) error {
	return &DamageError{File: r.name, Offset: offset, Expected: expected, Found: found, Hint: hintOtherBackup}
}

func (r *hashingReader) readHeader() error {
	for len(r.pending) < archiveHeaderBytes && r.err == nil {
		r.fill()
	}
	b, want := r.pending, archiveHeader()
	magicLen := min(len(b), archiveVersionOffset)
	switch {
	case len(b) < archiveHeaderBytes && !errors.Is(r.err, io.EOF):
		return r.err
	case len(b) == 0:
		return &DamageError{File: r.name, Found: "is empty", Hint: hintNoBackup}
	case !bytes.Equal(b[:magicLen], want[:magicLen]):
		return &DamageError{File: r.name, Found: fmt.Sprintf("begins with %q", b[:magicLen]), Hint: hintNoBackup}
	case len(b) < archiveHeaderBytes:
		return r.damageError(int64(len(b)), fmt.Sprintf("a header of %d bytes", archiveHeaderBytes), "the end of the file")
	case b[archiveVersionOffset] != backupFormat:
		return &FormatError{File: r.name, Version: b[archiveVersionOffset], Supported: backupFormat}
	case !bytes.Equal(b[:archiveHeaderBytes], want):
		const offset = archiveVersionOffset + 1
		return r.damageError(offset, fmt.Sprintf("% x", want[offset:]), fmt.Sprintf("% x", b[offset:archiveHeaderBytes]))
	}
	r.consume(archiveHeaderBytes)
	return nil
}

// fill reads more bytes of the file and appends them to the pending ones.
func (r *hashingReader) fill() {
	pendingLen := copy(r.buffer[:], r.pending)
	n, err := r.src.Read(r.buffer[pendingLen:])
	r.pending, r.err = r.buffer[:pendingLen+n], err
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = fmt.Errorf("read %s: %w", r.name, err)
	}
}

// consume removes the first n pending bytes, adds them to the SHA-256 and returns them.
func (r *hashingReader) consume(n int) []byte {
	out := r.pending[:n]
	_, _ = r.sum.Write(out) // a hash never fails
	r.pending, r.offset = r.pending[n:], r.offset+int64(n)
	return out
}

// Read implements io.Reader. At the end of the file it verifies the trailer.
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
