package wal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	backupFormat      = 3 // version of the backup file
	backupMagic       = "tsBK"
	skippableMagic    = 0x184D2A5E // begins a frame that every zstd decoder skips
	backupHeaderBytes = 16
	backupVersionAt   = 12
	backupInfoMax     = 64 << 10
	backupWindowBytes = 1 << 20 // compression window; a reader needs about this much memory
)

// BackupInfo describes a backup.
type BackupInfo struct {
	Program  string    `json:"program,omitempty"` // version of tasard that made the backup
	TakenAt  time.Time `json:"takenAt"`
	Sequence uint64    `json:"sequence"` // number of the last record in the state; 0 = none
}

// backupHeader returns the first zstd frame of a backup file, which names the format.
func backupHeader() []byte {
	b := binary.LittleEndian.AppendUint32(nil, skippableMagic)
	b = binary.LittleEndian.AppendUint32(b, backupHeaderBytes-8)
	b = append(b, backupMagic...)
	return append(b, backupFormat, 0, 0, 0)
}

// WriteBackup writes a backup file: the header, then one zstd frame. That frame contains info as a line of JSON, the
// output of state, and a checksum. After an error the file is incomplete, and readers refuse it.
func WriteBackup(w io.Writer, info BackupInfo, state func(io.Writer) error) error {
	if _, err := w.Write(backupHeader()); err != nil {
		return err
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(backupWindowBytes), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true))
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	if err = json.NewEncoder(z).Encode(info); err == nil {
		err = state(z)
	}
	if err != nil {
		return err // closing z would complete the frame
	}
	return z.Close()
}

// BackupReader reads the state in a backup file.
type BackupReader struct {
	Info BackupInfo

	file    *offsetReader
	name    string // of the file, for errors
	decoder *zstd.Decoder
	content *bufio.Reader
}

// OpenBackup reads the beginning of a backup file. The state is valid only after Read returns io.EOF. The caller must
// call Close. Errors, also of Read: *DamageError, *FormatError and errors of reading the file.
func OpenBackup(file io.Reader, name string) (*BackupReader, error) {
	r := &BackupReader{file: &offsetReader{src: file, name: name}, name: name}
	if err := r.header(); err != nil {
		return nil, err
	}
	var err error
	r.decoder, err = zstd.NewReader(r.file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(backupWindowBytes))
	if err != nil {
		return nil, r.explain(err)
	}
	r.content = bufio.NewReaderSize(r.decoder, backupInfoMax)
	line, err := r.content.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(line, &r.Info)
	} else if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		r.Close()
		return nil, r.explain(err)
	}
	return r, nil
}

// Close releases the memory of the reader. It does not close the file.
func (r *BackupReader) Close() { r.decoder.Close() }

// Read implements io.Reader. It returns io.EOF only if the checksum of the whole content is right.
func (r *BackupReader) Read(p []byte) (int, error) {
	n, err := r.content.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.explain(err)
	}
	return n, err
}

func (r *BackupReader) header() error {
	b, want := make([]byte, backupHeaderBytes), backupHeader()
	n, err := io.ReadFull(r.file, b)
	b = b[:n]
	magic := min(n, backupVersionAt)
	switch {
	case r.file.err != nil:
		return r.file.err
	case n == 0:
		return &DamageError{File: r.name, Found: "is empty", Hint: hintNoBackup}
	case !bytes.Equal(b[:magic], want[:magic]):
		return &DamageError{File: r.name, Found: fmt.Sprintf("begins with %q", b[:magic]), Hint: hintNoBackup}
	case err != nil:
		return r.explain(io.ErrUnexpectedEOF)
	case b[backupVersionAt] != backupFormat:
		return &FormatError{File: r.name, Version: b[backupVersionAt], Supported: backupFormat}
	case !bytes.Equal(b, want):
		const offset = backupVersionAt + 1
		return &DamageError{
			File: r.name, Offset: offset, Expected: fmt.Sprintf("% x", want[offset:]), Found: fmt.Sprintf("% x", b[offset:]), Hint: hintOtherBackup,
		}
	}
	return nil
}

// explain returns the error of reading the file, if any. Every other error is damage.
func (r *BackupReader) explain(err error) error {
	switch {
	case r.file.err != nil:
		return r.file.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &DamageError{File: r.name, Offset: r.file.offset, Expected: "the rest of the backup", Found: "the end of the file", Hint: hintOtherBackup}
	}
	return &DamageError{File: r.name, Offset: r.file.offset, Expected: "zstd data with its checksum", Found: err.Error(), Hint: hintOtherBackup}
}

// offsetReader counts the bytes read, and keeps the first error except the end of the file.
type offsetReader struct {
	src    io.Reader
	name   string
	offset int64
	err    error
}

// Read implements io.Reader.
func (r *offsetReader) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	r.offset += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = fmt.Errorf("read %s: %w", r.name, err)
		err = r.err
	}
	return n, err
}

// StoppedState returns the newest snapshot of the log in dir (the state after record number sequence). No process may
// have the log open. It verifies every byte and changes nothing. After a clean stop the snapshot covers every record;
// otherwise the error is ErrUncovered. Without records, state is empty.
func StoppedState(dir string) (sequence uint64, state io.ReadCloser, err error) {
	err = withSharedLock(dir, func() error {
		x, err := examine(dir, nil)
		if err != nil {
			return err
		}
		sequence = x.log.last()
		s := newestUndamaged(x.snapshots)
		switch {
		case s.Sequence != sequence:
			return fmt.Errorf("%w: records %d to %d", ErrUncovered, s.Sequence+1, sequence)
		case sequence == 0:
			state = io.NopCloser(bytes.NewReader(nil))
			return nil
		}
		state, err = s.open()
		return err
	})
	if err != nil {
		return 0, nil, fmt.Errorf("read the state of the log: %w", err)
	}
	return sequence, state, nil
}
