package wal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"time"
)

const (
	snapshotMagic        = "tsSN"
	snapshotHeaderBytes  = 20
	snapshotTrailerBytes = 12
	snapshotBufferBytes  = 64 << 10
)

// snapshot is one snapshot file of the directory.
type snapshot struct {
	sequence uint64
	path     string
	bytes    int64        // of the file
	at       time.Time    // when the file was finished
	damage   *DamageError // nil when the file is whole
}

// snapshotHeader is the start of a snapshot of all records up to the sequence.
func snapshotHeader(sequence uint64) []byte {
	b := make([]byte, 0, snapshotHeaderBytes)
	b = append(b, snapshotMagic...)
	b = append(b, FormatVersion, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, sequence)
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

// snapshotWriter counts and sums what a snapshot's writer hands over, and remembers the first error of
// the file, which the writer might swallow.
type snapshotWriter struct {
	file io.Writer
	sum  hash.Hash32
	size uint64
	err  error
}

// Write is io.Writer.
func (w *snapshotWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	_, _ = w.sum.Write(p) // a hash never fails
	w.size += uint64(len(p))
	n, err := w.file.Write(p)
	w.err = err
	return n, err
}

// encodeSnapshot writes a whole snapshot file. ours is the error of the destination, theirs the one of
// the writer of the state.
func encodeSnapshot(to io.Writer, sequence uint64, write func(io.Writer) error) (ours, theirs error) {
	buffered := bufio.NewWriterSize(to, snapshotBufferBytes)
	w := &snapshotWriter{file: buffered, sum: crc32.New(castagnoli)}
	if _, err := w.Write(snapshotHeader(sequence)); err != nil {
		return err, nil
	}
	theirs = write(w)
	if w.err != nil || theirs != nil {
		return w.err, theirs
	}
	size := binary.LittleEndian.AppendUint64(nil, w.size-snapshotHeaderBytes)
	if _, err := w.Write(size); err != nil {
		return err, nil
	}
	if _, err := buffered.Write(binary.LittleEndian.AppendUint32(nil, w.sum.Sum32())); err != nil {
		return err, nil
	}
	return buffered.Flush(), nil
}

// verifySnapshot verifies a snapshot of size bytes, all of it, and returns its sequence and the length of its payload. A fault's offset
// counts from the start of the file. visit, unless it is nil, reads the payload on the way; what it gets is not verified before the end,
// and its error is returned as it is.
func verifySnapshot(r io.Reader, size int64, visit func(sequence uint64, payload io.Reader) error) (sequence uint64, payload int64, bad *fault, err error) {
	if size < snapshotHeaderBytes+snapshotTrailerBytes {
		return 0, 0, newFault(int(size), fmt.Sprintf("at least %d bytes", snapshotHeaderBytes+snapshotTrailerBytes), fmt.Sprintf("the end after %d", size)), nil
	}
	head := make([]byte, snapshotHeaderBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, 0, nil, err
	}
	if sequence, bad = decodeSnapshotHeader(head); bad != nil {
		return 0, 0, bad, nil
	}
	payload = size - snapshotHeaderBytes - snapshotTrailerBytes
	sum := crc32.New(castagnoli)
	_, _ = sum.Write(head) // a hash never fails
	body := io.TeeReader(io.LimitReader(r, payload), sum)
	if visit != nil {
		if err := visit(sequence, body); err != nil {
			return 0, 0, nil, err
		}
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return 0, 0, nil, err
	}
	tail := make([]byte, snapshotTrailerBytes)
	if _, err := io.ReadFull(r, tail); err != nil {
		return 0, 0, nil, err
	}
	_, _ = sum.Write(tail[:8])
	at := int(size) - snapshotTrailerBytes
	if stored := binary.LittleEndian.Uint32(tail[8:]); stored != sum.Sum32() {
		return 0, 0, newFault(at+8, fmt.Sprintf("checksum %08x", stored), fmt.Sprintf("%08x over the file", sum.Sum32())), nil
	}
	if stored := binary.LittleEndian.Uint64(tail); stored != uint64(payload) {
		return 0, 0, newFault(at, fmt.Sprintf("a payload of %d bytes", stored), fmt.Sprint(payload)), nil
	}
	return sequence, payload, nil, nil
}

func decodeSnapshotHeader(head []byte) (uint64, *fault) {
	if string(head[:4]) != snapshotMagic {
		return 0, newFault(0, fmt.Sprintf("%q", snapshotMagic), fmt.Sprintf("%q", head[:4]))
	}
	stored := binary.LittleEndian.Uint32(head[16:])
	if sum := checksum(head[:16]); sum != stored {
		return 0, newFault(16, fmt.Sprintf("header checksum %08x", stored), fmt.Sprintf("%08x over the header", sum))
	}
	if bad := checkVersion(head[4:8]); bad != nil {
		bad.at += 4
		return 0, bad
	}
	return binary.LittleEndian.Uint64(head[8:]), nil
}

// verifySnapshot is verifySnapshot of a file whose name says the sequence.
func (file numberedFile) verifySnapshot(r io.Reader, size int64, visit func(sequence uint64, payload io.Reader) error) (payload int64, bad *fault, err error) {
	sequence, payload, bad, err := verifySnapshot(r, size, visit)
	if err == nil && bad == nil && sequence != file.number {
		bad = newFault(8, fmt.Sprintf("sequence %d, as the name says", file.number), fmt.Sprint(sequence))
	}
	return payload, bad, err
}

// snapshotDamage is what a fault of a snapshot's file means.
func (file numberedFile) snapshotDamage(bad *fault) *DamageError {
	return &DamageError{
		File: file.path, Offset: int64(bad.at), Sequence: file.number, Expected: bad.expected, Found: bad.found, Hint: hintRestore,
	}
}

// openSnapshot verifies the file and returns it, placed at the start of its payload. damage is set when
// the file is not whole; then the file is closed.
func openSnapshot(file numberedFile) (f *os.File, payload int64, damage *DamageError, err error) {
	f, err = os.Open(file.path)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("open snapshot: %w", err)
	}
	var bad *fault
	info, err := f.Stat()
	if err == nil {
		payload, bad, err = file.verifySnapshot(bufio.NewReaderSize(f, int(min(info.Size(), snapshotBufferBytes))), info.Size(), nil)
	}
	if err == nil && bad == nil {
		if _, err = f.Seek(snapshotHeaderBytes, io.SeekStart); err == nil {
			return f, payload, nil, nil
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, 0, nil, fmt.Errorf("read snapshot %s: %w", file.path, err)
	}
	if bad.version != 0 {
		return nil, 0, nil, &FormatError{File: file.path, Version: bad.version, Supported: FormatVersion}
	}
	return nil, 0, file.snapshotDamage(bad), nil
}

// readSnapshots verifies every snapshot of the directory.
func readSnapshots(files []numberedFile) ([]snapshot, error) {
	var found []snapshot
	for _, file := range files {
		f, payload, damage, err := openSnapshot(file)
		if err != nil {
			return found, err
		}
		s := snapshot{sequence: file.number, path: file.path, damage: damage}
		if damage == nil {
			s.bytes = snapshotHeaderBytes + payload + snapshotTrailerBytes
			if info, err := f.Stat(); err == nil { // else nobody knows
				s.at = info.ModTime().UTC()
			}
			if err := f.Close(); err != nil {
				return found, fmt.Errorf("close snapshot: %w", err)
			}
		}
		found = append(found, s)
	}
	return found, nil
}

// newSnapshotReader reads the payload of a snapshot; closing it closes the file.
func newSnapshotReader(f *os.File, payload int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{bufio.NewReaderSize(io.LimitReader(f, payload), snapshotBufferBytes), f}
}
