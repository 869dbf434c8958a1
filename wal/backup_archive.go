package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	archiveMagic      = "tsBK"
	archiveVersion    = 1
	guardMark         = 0x184D2A5E // of a frame that every zstd decoder skips
	guardBytes        = 48
	guardPrefixBytes  = 8
	blockContentMax   = 1 << 20 // bytes of content in one block: what a reader has in memory
	blockFrameMax     = blockContentMax + blockContentMax/64 + 1<<10
	guardBlock        = 1
	guardEnd          = 2
	guardVersionPlace = 12
	guardSumPlace     = guardBytes - 4
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
)

// guard is what stands before each block of an archive.
type guard struct {
	version uint8
	kind    uint8
	length  uint32 // bytes of the compressed frame behind it
	frame   uint32 // its checksum
	number  uint64 // of the block, from 0; of the end, how many blocks there are
	content uint64 // bytes of content before it
	chain   uint32 // checksum of the guard before, 0 in the first
	sum     uint32 // checksum of all that before
}

func (g *guard) encode() []byte {
	b := make([]byte, 0, guardBytes)
	b = binary.LittleEndian.AppendUint32(b, guardMark)
	b = binary.LittleEndian.AppendUint32(b, guardBytes-guardPrefixBytes)
	b = append(b, archiveMagic...)
	b = append(b, archiveVersion, g.kind, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, g.length)
	b = binary.LittleEndian.AppendUint32(b, g.frame)
	b = binary.LittleEndian.AppendUint64(b, g.number)
	b = binary.LittleEndian.AppendUint64(b, g.content)
	b = binary.LittleEndian.AppendUint32(b, g.chain)
	g.sum = checksum(b)
	return binary.LittleEndian.AppendUint32(b, g.sum)
}

// decodeGuard reads a guard; the fault's offset counts from its start.
func decodeGuard(b []byte) (guard, *fault) {
	head := binary.LittleEndian.AppendUint32(nil, guardMark)
	head = binary.LittleEndian.AppendUint32(head, guardBytes-guardPrefixBytes)
	head = append(head, archiveMagic...)
	if !bytes.Equal(b[:len(head)], head) {
		return guard{}, wrong(0, fmt.Sprintf("% x", head), fmt.Sprintf("% x", b[:len(head)]))
	}
	g := guard{
		version: b[guardVersionPlace], kind: b[13],
		length: binary.LittleEndian.Uint32(b[16:]), frame: binary.LittleEndian.Uint32(b[20:]),
		number: binary.LittleEndian.Uint64(b[24:]), content: binary.LittleEndian.Uint64(b[32:]),
		chain: binary.LittleEndian.Uint32(b[40:]), sum: binary.LittleEndian.Uint32(b[guardSumPlace:]),
	}
	if sum := checksum(b[:guardSumPlace]); sum != g.sum {
		return guard{}, wrong(guardSumPlace, fmt.Sprintf("checksum %08x", g.sum), fmt.Sprintf("%08x", sum))
	}
	if g.version > archiveVersion {
		bad := wrong(guardVersionPlace, fmt.Sprintf("a backup of version %d at most", archiveVersion), fmt.Sprintf("version %d", g.version))
		bad.version = g.version
		return guard{}, bad
	}
	if g.version == 0 || b[14] != 0 || b[15] != 0 || g.kind != guardBlock && g.kind != guardEnd {
		return guard{}, wrong(guardVersionPlace, "a block or the end", fmt.Sprintf("% x", b[guardVersionPlace:16]))
	}
	if g.kind == guardBlock && (g.length == 0 || g.length > blockFrameMax) || g.kind == guardEnd && g.length != 0 {
		return guard{}, wrong(16, fmt.Sprintf("a block of at most %d bytes", blockFrameMax), fmt.Sprint(g.length))
	}
	return g, nil
}

// archiveWriter compresses what is written to it, block by block. Close writes the end, without which there is no archive.
type archiveWriter struct {
	to      io.Writer
	encoder *zstd.Encoder
	block   []byte
	frame   []byte
	next    guard
	err     error
}

func newArchiveWriter(to io.Writer) (*archiveWriter, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(blockContentMax), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return &archiveWriter{to: to, encoder: encoder, block: make([]byte, 0, blockContentMax)}, nil
}

// Write is io.Writer.
func (w *archiveWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 && w.err == nil {
		n := min(len(p), blockContentMax-len(w.block))
		w.block, p, written = append(w.block, p[:n]...), p[n:], written+n
		if len(w.block) == blockContentMax {
			w.flush()
		}
	}
	return written, w.err
}

func (w *archiveWriter) flush() {
	if w.err != nil || len(w.block) == 0 {
		return
	}
	w.frame = w.encoder.EncodeAll(w.block, w.frame[:0])
	w.next.kind, w.next.length, w.next.frame = guardBlock, uint32(len(w.frame)), checksum(w.frame)
	w.guard()
	if w.err == nil {
		_, w.err = w.to.Write(w.frame)
	}
	w.next.number++
	w.next.content += uint64(len(w.block))
	w.block = w.block[:0]
}

// guard writes the next guard and chains the one after it.
func (w *archiveWriter) guard() {
	_, w.err = w.to.Write(w.next.encode())
	w.next.chain = w.next.sum
}

// Close writes what is left and the end. It does not close what is below.
func (w *archiveWriter) Close() error {
	w.flush()
	if w.err == nil {
		w.next.kind, w.next.length, w.next.frame = guardEnd, 0, 0
		w.guard()
	}
	return errors.Join(w.err, w.encoder.Close())
}

// archiveReader gives the content of an archive, each block after it was verified, and io.EOF behind a whole end only.
type archiveReader struct {
	from    io.Reader
	name    string
	decoder *zstd.Decoder
	offset  int64 // in the file
	frame   []byte
	block   []byte
	rest    []byte // of the block
	next    guard  // number, content and chain of the one to come
	err     error
}

func newArchiveReader(from io.Reader, name string) (*archiveReader, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(blockContentMax))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return &archiveReader{from: from, name: name, decoder: decoder}, nil
}

func (r *archiveReader) close() { r.decoder.Close() }

// Read is io.Reader.
func (r *archiveReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && r.err == nil {
		r.err = r.fill()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, r.err
}

func (r *archiveReader) damage(at int64, bad *fault) error {
	hint := hintOtherBackup
	switch {
	case bad.version != 0:
		hint = hintNewer
	case at == 0 && bad.at == 0:
		hint = hintForeignFile
	}
	return &BackupError{File: r.name, Offset: at + int64(bad.at), Expected: bad.expected, Found: bad.found, Hint: hint}
}

// take reads exactly len(b) bytes; an end before them is damage.
func (r *archiveReader) take(b []byte, what string) error {
	n, err := io.ReadFull(r.from, b)
	at := r.offset
	r.offset += int64(n)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.damage(at, wrong(n, what, "the end of the file"))
	case err != nil:
		return fmt.Errorf("read %s: %w", r.name, err)
	}
	return nil
}

// fill verifies the next block, or the end.
func (r *archiveReader) fill() error {
	at := r.offset
	var head [guardBytes]byte
	if err := r.take(head[:], "a block or the end of the backup"); err != nil {
		return err
	}
	g, bad := decodeGuard(head[:])
	if bad == nil {
		bad = r.follows(&g)
	}
	if bad != nil {
		return r.damage(at, bad)
	}
	if g.kind == guardEnd {
		return r.finish()
	}
	r.frame = append(r.frame[:0], make([]byte, g.length)...)
	if err := r.take(r.frame, fmt.Sprintf("a block of %d bytes", g.length)); err != nil {
		return err
	}
	at += guardBytes
	if sum := checksum(r.frame); sum != g.frame {
		return r.damage(at, wrong(0, fmt.Sprintf("a block with checksum %08x", g.frame), fmt.Sprintf("%08x", sum)))
	}
	block, err := r.decoder.DecodeAll(r.frame, r.block[:0])
	if err != nil || len(block) == 0 {
		return r.damage(at, wrong(0, "a block that can be decompressed", fmt.Sprint(err)))
	}
	r.block, r.rest = block, block
	r.next = guard{number: g.number + 1, content: g.content + uint64(len(block)), chain: g.sum}
	return nil
}

// follows checks that the guard is the one that belongs here: no block is missing, moved or of another backup.
func (r *archiveReader) follows(g *guard) *fault {
	switch {
	case g.number != r.next.number:
		return wrong(24, fmt.Sprintf("block %d", r.next.number), fmt.Sprintf("block %d", g.number))
	case g.content != r.next.content:
		return wrong(32, fmt.Sprintf("%d bytes before it", r.next.content), fmt.Sprint(g.content))
	case g.chain != r.next.chain:
		return wrong(40, fmt.Sprintf("chain %08x", r.next.chain), fmt.Sprintf("%08x", g.chain))
	}
	return nil
}

// finish wants nothing behind the end.
func (r *archiveReader) finish() error {
	n, err := io.ReadFull(r.from, make([]byte, 1))
	switch {
	case n > 0:
		return r.damage(r.offset, wrong(0, "the end of the file", "bytes behind the end of the backup"))
	case errors.Is(err, io.EOF):
		return io.EOF
	}
	return fmt.Errorf("read %s: %w", r.name, err)
}
