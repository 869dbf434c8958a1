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
	archiveWindowBytes   = 1 << 20 // how far back zstd refers, and about what a reader holds in memory
)

// BackupError says that a file is no backup, or is not the backup that was written. Nothing was restored from it.
type BackupError struct {
	File     string // path of the backup, and behind a colon the part of it
	Offset   int64  // byte in it where the damage was noticed
	Expected string // what should be there
	Found    string // what is there
	Hint     string // what the operator can do
}

// Error gives all fields on one line.
func (e *BackupError) Error() string {
	return fmt.Sprintf("damaged backup: %s at offset %d: expected %s, found %s; %s", e.File, e.Offset, e.Expected, e.Found, e.Hint)
}

const (
	hintOtherBackup = "take another copy of it, or an older backup"
	hintForeignFile = "name a file that tasard backup has written"
	hintNewer       = "read it with the program that wrote it, or a newer one"
	hintOlder       = "read it with the program that wrote it, or take a new backup"
)

// archiveHeader is the first frame of a backup file: it names the format.
func archiveHeader() []byte {
	b := binary.LittleEndian.AppendUint32(nil, skippableFrameMagic)
	b = binary.LittleEndian.AppendUint32(b, archiveHeaderBytes-8)
	b = append(b, archiveMagic...)
	return append(b, backupFormat, 0, 0, 0)
}

// archiveTrailer is the last one: the sum of everything before it.
func archiveTrailer(sum hash.Hash) []byte {
	b := binary.LittleEndian.AppendUint32(nil, skippableFrameMagic)
	b = binary.LittleEndian.AppendUint32(b, sha256.Size)
	return sum.Sum(b)
}

// archiveWriter compresses what is written to it.
type archiveWriter struct {
	*zstd.Encoder
	to  *bufio.Writer
	sum hash.Hash // of what went through to
}

// NewBackupFile compresses a stream of Backup into a backup file; Close writes its end, without which it is none, and leaves to open.
// Nothing reaches to before the first piece of the stream is compressed.
func NewBackupFile(to io.Writer) (io.WriteCloser, error) {
	w := &archiveWriter{sum: sha256.New()}
	w.to = bufio.NewWriterSize(io.MultiWriter(to, w.sum), backupChunkBytes)
	_, _ = w.to.Write(archiveHeader()) // it fits the buffer
	var err error
	w.Encoder, err = zstd.NewWriter(w.to, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(archiveWindowBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return w, nil
}

// Close is io.Closer.
func (w *archiveWriter) Close() error {
	if err := errors.Join(w.Encoder.Close(), w.to.Flush()); err != nil {
		return err
	}
	_, _ = w.to.Write(archiveTrailer(w.sum)) // it fits the buffer
	return w.to.Flush()
}

// archiveReader gives the content of a backup file, and io.EOF only behind an end whose sum is right. What it gives is not known to be
// whole before that.
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
	r.decoder, err = zstd.NewReader(r.from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(archiveWindowBytes))
	if err != nil {
		return nil, r.asBackupError(err)
	}
	return r, nil
}

func (r *archiveReader) close() { r.decoder.Close() }

// Read is io.Reader.
func (r *archiveReader) Read(p []byte) (int, error) {
	n, err := r.decoder.Read(p)
	return n, r.asBackupError(err)
}

// asBackupError tells what is wrong with the file from what only zstd does not like.
func (r *archiveReader) asBackupError(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF) && errors.Is(r.from.err, io.EOF):
		return err
	case r.from.err != nil && !errors.Is(r.from.err, io.EOF):
		return r.from.err
	}
	return r.from.damageError(r.from.offset, newFault(0, "a stream that zstd can decompress", err.Error()))
}

// hashingReader sums a file, and gives what lies between its head and its end.
type hashingReader struct {
	from    io.Reader
	name    string
	sum     hash.Hash
	buffer  [64 << 10]byte
	pending []byte // of the buffer: the last endBytes may be the end of the file
	offset  int64  // in the file, of rest
	err     error  // of from, or what is wrong with the file
}

func (r *hashingReader) damageError(at int64, bad *fault) error {
	hint := hintOtherBackup
	switch {
	case bad.version > backupFormat:
		hint = hintNewer
	case bad.version != 0:
		hint = hintOlder
	case at == 0 && bad.at == 0:
		hint = hintForeignFile
	}
	return &BackupError{File: r.name, Offset: at + int64(bad.at), Expected: bad.expected, Found: bad.found, Hint: hint}
}

// readHeader reads the first frame.
func (r *hashingReader) readHeader() error {
	for len(r.pending) < archiveHeaderBytes && r.err == nil {
		r.fill()
	}
	want := archiveHeader()
	switch b := r.pending; {
	case len(b) < archiveHeaderBytes && !errors.Is(r.err, io.EOF):
		return r.err
	case len(b) < archiveHeaderBytes:
		return r.damageError(0, newFault(len(b), "a backup", "the end of the file"))
	case !bytes.Equal(b[:4], want[:4]) || !bytes.Equal(b[8:archiveVersionOffset], want[8:archiveVersionOffset]):
		return r.damageError(0, newFault(0, fmt.Sprintf("% x", want[:archiveVersionOffset]), fmt.Sprintf("% x", b[:archiveVersionOffset])))
	case b[archiveVersionOffset] != backupFormat:
		bad := newFault(archiveVersionOffset, fmt.Sprintf("a backup of version %d", backupFormat), fmt.Sprintf("version %d", b[archiveVersionOffset]))
		bad.version = b[archiveVersionOffset]
		return r.damageError(0, bad)
	case !bytes.Equal(b[:archiveHeaderBytes], want):
		return r.damageError(0, newFault(4, fmt.Sprintf("% x", want[4:]), fmt.Sprintf("% x", b[4:archiveHeaderBytes])))
	}
	r.consume(archiveHeaderBytes)
	return nil
}

// fill reads on, behind what is left.
func (r *hashingReader) fill() {
	kept := copy(r.buffer[:], r.pending)
	n, err := r.from.Read(r.buffer[kept:])
	r.pending, r.err = r.buffer[:kept+n], err
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = fmt.Errorf("read %s: %w", r.name, err)
	}
}

// consume sums what goes out.
func (r *hashingReader) consume(n int) []byte {
	out := r.pending[:n]
	_, _ = r.sum.Write(out) // a hash never fails
	r.pending, r.offset = r.pending[n:], r.offset+int64(n)
	return out
}

// Read is io.Reader. At the end of the file it checks the sum.
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
			r.err = r.damageError(r.offset, newFault(len(r.pending), "the end of the backup", "the end of the file"))
		case !bytes.Equal(r.pending, want):
			r.err = r.damageError(r.offset, newFault(8, fmt.Sprintf("a file with SHA-256 %x", r.pending[8:]), fmt.Sprintf("%x", want[8:])))
		}
	}
	return 0, r.err
}
