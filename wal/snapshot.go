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
	"slices"
	"time"
)

const (
	snapshotMagic        = "tsSN"
	snapshotHeaderBytes  = 20
	snapshotTrailerBytes = 12
	snapshotBufferBytes  = 64 << 10
)

// SnapshotReport is one snapshot file.
type SnapshotReport struct {
	File       string
	Sequence   uint64       // sequence number of its last record
	Bytes      int64        // size of the file, 0 if it is damaged
	Damage     *DamageError // nil if the file is undamaged
	finishedAt time.Time
}

func snapshotHeader(sequence uint64) []byte {
	b := make([]byte, 0, snapshotHeaderBytes)
	b = append(b, snapshotMagic...)
	b = append(b, FormatVersion, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, sequence)
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

// snapshotWriter counts the bytes of a snapshot and computes its checksum. It stores the file's first error, because
// the caller's write function may ignore it.
type snapshotWriter struct {
	file io.Writer
	sum  hash.Hash32
	size uint64
	err  error
}

// Write implements io.Writer.
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

// encodeSnapshot writes a snapshot file. fileErr is an error of file; stateErr is an error of write.
func encodeSnapshot(file io.Writer, sequence uint64, write func(io.Writer) error) (fileErr, stateErr error) {
	buffered := bufio.NewWriterSize(file, snapshotBufferBytes)
	w := &snapshotWriter{file: buffered, sum: crc32.New(castagnoli)}
	if _, err := w.Write(snapshotHeader(sequence)); err != nil {
		return err, nil
	}
	stateErr = write(w)
	if w.err != nil || stateErr != nil {
		return w.err, stateErr
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

// verify verifies a snapshot file of size bytes. fault's offset is from the start of the file.
func (s *SnapshotReport) verify(r io.Reader, size int64) (fault *formatFault, err error) {
	if size < snapshotHeaderBytes+snapshotTrailerBytes {
		const sizeMin = snapshotHeaderBytes + snapshotTrailerBytes
		return newFault(int(size), fmt.Sprintf("at least %d bytes", sizeMin), fmt.Sprintf("the end after %d", size)), nil
	}
	head := make([]byte, snapshotHeaderBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	if fault := s.checkHeader(head); fault != nil {
		return fault, nil
	}
	payload := size - snapshotHeaderBytes - snapshotTrailerBytes
	sum := crc32.New(castagnoli)
	_, _ = sum.Write(head) // a hash never fails
	if _, err := io.CopyN(sum, r, payload); err != nil {
		return nil, err
	}
	tail := make([]byte, snapshotTrailerBytes)
	if _, err := io.ReadFull(r, tail); err != nil {
		return nil, err
	}
	_, _ = sum.Write(tail[:8])
	offset := int(size) - snapshotTrailerBytes
	if stored := binary.LittleEndian.Uint32(tail[8:]); stored != sum.Sum32() {
		return newFault(offset+8, fmt.Sprintf("checksum %08x", stored), fmt.Sprintf("%08x", sum.Sum32())), nil
	}
	if stored := binary.LittleEndian.Uint64(tail); stored != uint64(payload) {
		return newFault(offset, fmt.Sprintf("a payload of %d bytes", stored), fmt.Sprint(payload)), nil
	}
	return nil, nil
}

func (s *SnapshotReport) checkHeader(head []byte) *formatFault {
	if string(head[:4]) != snapshotMagic {
		return newFault(0, fmt.Sprintf("%q", snapshotMagic), fmt.Sprintf("%q", head[:4]))
	}
	stored := binary.LittleEndian.Uint32(head[16:])
	if sum := checksum(head[:16]); sum != stored {
		return newFault(16, fmt.Sprintf("header checksum %08x", stored), fmt.Sprintf("%08x", sum))
	}
	if fault := checkVersion(head[4:8]); fault != nil {
		fault.at += 4
		return fault
	}
	if sequence := binary.LittleEndian.Uint64(head[8:]); sequence != s.Sequence {
		return newFault(8, fmt.Sprintf("record %d, as in its name", s.Sequence), fmt.Sprint(sequence))
	}
	return nil
}

// open verifies the file, sets Bytes and finishedAt, and returns a reader of its payload. Damage is a *DamageError.
func (s *SnapshotReport) open() (state io.ReadCloser, err error) {
	f, err := os.Open(s.File)
	if err != nil {
		return nil, err
	}
	var fault *formatFault
	info, err := f.Stat()
	if err == nil {
		r := bufio.NewReaderSize(f, int(min(info.Size(), snapshotBufferBytes)))
		fault, err = s.verify(r, info.Size())
	}
	if fault != nil {
		err = fault.errorIn(s.File, 0, s.Sequence, hintRestore)
	}
	if err == nil {
		_, err = f.Seek(snapshotHeaderBytes, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.Bytes, s.finishedAt = info.Size(), info.ModTime().UTC()
	payload := io.LimitReader(f, s.Bytes-snapshotHeaderBytes-snapshotTrailerBytes)
	return struct {
		io.Reader
		io.Closer
	}{bufio.NewReaderSize(payload, snapshotBufferBytes), f}, nil
}

// readSnapshots verifies snapshot files and returns their descriptions, including damaged ones.
func readSnapshots(files []numberedFile) ([]SnapshotReport, error) {
	var snapshots []SnapshotReport
	for _, file := range files {
		s := SnapshotReport{Sequence: file.number, File: file.path}
		state, err := s.open()
		if err == nil {
			err = state.Close()
		}
		if err != nil && !errors.As(err, &s.Damage) {
			return snapshots, err
		}
		snapshots = append(snapshots, s)
	}
	return snapshots, nil
}

// newestUndamaged returns the newest undamaged snapshot, or the zero snapshot. snapshots must be sorted by sequence.
func newestUndamaged(snapshots []SnapshotReport) SnapshotReport {
	for _, s := range slices.Backward(snapshots) {
		if s.Damage == nil {
			return s
		}
	}
	return SnapshotReport{}
}
