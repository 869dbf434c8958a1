package wal

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// VerifyBackup reads a backup file, verifies every byte and describes the backup. Errors: *DamageError, *FormatError,
// and errors of reading and of visit.
func VerifyBackup(file io.Reader, name string, visit BackupVisitor) (BackupInfo, error) {
	return readArchive(file, name, &backupReader{visit: visit})
}

// PackBackup verifies the output of Log.Backup and compresses it into a backup file. If the stream ends early, the
// error is io.ErrUnexpectedEOF. After any error the file is incomplete.
func PackBackup(stream io.Reader, file io.Writer, visit BackupVisitor) (BackupInfo, error) {
	archive, err := NewBackupFile(file)
	if err != nil {
		return BackupInfo{}, err
	}
	r := &backupReader{name: "the copy", visit: visit}
	info, err := r.readStream(io.TeeReader(stream, archive))
	if err != nil {
		return info, err
	}
	return info, archive.Close()
}

func readArchive(file io.Reader, name string, r *backupReader) (BackupInfo, error) {
	archive, err := newArchiveReader(file, name)
	if err != nil {
		return BackupInfo{}, err
	}
	defer archive.close()
	r.name = name
	info, err := r.readStream(archive)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = r.damageError("", 0, "whole files", "the end in the middle of one")
	}
	return info, err
}

// backupReader reads and verifies the tar stream of a backup. It checks that the contents match the high-water mark in
// the backup.
type backupReader struct {
	name   string
	visit  BackupVisitor
	target *restoreTarget // receives the files; nil to write nothing

	tar              *tar.Reader
	info             BackupInfo
	scanner          scanner
	snapshotSequence uint64 // sequence number of the snapshot that was read
}

func (r *backupReader) readStream(stream io.Reader) (BackupInfo, error) {
	r.tar = tar.NewReader(stream)
	err := r.files()
	if err == nil {
		_, err = io.Copy(io.Discard, stream) // also reads the trailer, which follows the end of the tar
	}
	if err == nil {
		err = r.checkMark()
	}
	return r.info, r.explain(err)
}

// explain replaces the hint for the operator in a *DamageError by the hint for backups. It turns tar.ErrHeader into a
// *DamageError.
func (r *backupReader) explain(err error) error {
	var damage *DamageError
	switch {
	case errors.As(err, &damage):
		damage.Hint = hintOtherBackup
	case errors.Is(err, tar.ErrHeader):
		return r.damageError("", 0, "a tar header", "other bytes")
	}
	return err
}

func (r *backupReader) damageError(entry string, offset int64, expected, found string) error {
	return &DamageError{File: r.path(entry), Offset: offset, Expected: expected, Found: found, Hint: hintOtherBackup}
}

// path returns the name of a file in the backup, for errors.
func (r *backupReader) path(entry string) string {
	if entry == "" {
		return r.name
	}
	return r.name + ":" + entry
}

// files reads the manifest, the high-water mark and then all other files of the backup.
func (r *backupReader) files() error {
	if err := r.manifest(); err != nil {
		return err
	}
	if err := r.mark(); err != nil {
		return err
	}
	for {
		header, err := r.tar.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.file(header); err != nil {
			return err
		}
	}
}

// readSmallFile reads the next file into memory. It must have the given name and at most bytesMax bytes.
func (r *backupReader) readSmallFile(name string, bytesMax int64) ([]byte, error) {
	header, err := r.tar.Next()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if header.Name != name || header.Typeflag != tar.TypeReg || header.Size > bytesMax {
		return nil, r.damageError("", 0, fmt.Sprintf("%s of at most %d bytes", name, bytesMax), fmt.Sprintf("%s of %d", header.Name, header.Size))
	}
	return io.ReadAll(r.tar)
}

func (r *backupReader) manifest() error {
	data, err := r.readSmallFile(manifestName, manifestBytesMax)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &r.info); err != nil {
		return r.damageError(manifestName, 0, "JSON", err.Error())
	}
	if r.info.Format > backupFormat {
		return &FormatError{File: r.path(manifestName), Version: uint8(min(r.info.Format, math.MaxUint8)), Supported: backupFormat}
	}
	return nil
}

func (r *backupReader) mark() error {
	data, err := r.readSmallFile(markName, markFileBytes)
	if err != nil {
		return err
	}
	var valid int
	if r.scanner.mark, valid, err = decodeMarkFile(r.path(markName), data); err != nil {
		return err
	}
	if valid != markSlots {
		return r.damageError(markName, 0, "a whole mark", fmt.Sprintf("%d of %d slots", valid, markSlots))
	}
	r.scanner.result.next = origin
	r.scanner.visit = eachRecord(r.visit.Record)
	return r.target.writeMark(r.scanner.mark)
}

// file reads a snapshot or a segment (log file). It reports any other file as damage.
func (r *backupReader) file(header *tar.Header) error {
	var files listing
	files.add(header.Name, header.Name, header.Typeflag == tar.TypeReg)
	switch {
	case len(files.segments) == 1 && header.Size <= segmentFileBytesMax:
		return r.segment(files.segments[0], header.Size)
	case len(files.snapshots) == 1 && r.snapshotSequence == 0 && len(r.scanner.result.segments) == 0:
		return r.snapshot(files.snapshots[0], header.Size)
	}
	return r.damageError("", 0, "a snapshot, then segments", fmt.Sprintf("%q of %d bytes", header.Name, header.Size))
}

func (r *backupReader) snapshot(file numberedFile, size int64) error {
	r.snapshotSequence = file.number
	return r.target.writeFile(file.path, func(out io.Writer) error {
		_, fault, err := file.verifySnapshot(io.TeeReader(r.tar, out), size, r.visit.Snapshot)
		if fault != nil {
			return fault.errorIn(r.path(file.path), 0, file.number, "")
		}
		return err
	})
}

func (r *backupReader) segment(file numberedFile, size int64) error {
	data := r.scanner.growBuffer(int(size))
	if _, err := io.ReadFull(r.tar, data); err != nil {
		return err
	}
	named := numberedFile{file.number, r.path(file.path)} // name of the file in errors
	if err := r.scanner.checkSegmentName(named); err != nil {
		return err
	}
	last := file.number == r.scanner.mark.end.frame // only this segment may be empty
	if err := r.scanner.scanFrames(named, data, last); err != nil {
		return err
	}
	return r.target.writeFile(file.path, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// checkMark checks that the segments and the snapshot match the high-water mark.
func (r *backupReader) checkMark() error {
	log, mark, base := &r.scanner.result, r.scanner.mark, r.snapshotSequence
	r.info.Last, r.info.Snapshot = log.last(), base
	first := mark.end.frame
	if len(log.segments) > 0 {
		first = log.segments[0].start.frame
	}
	switch {
	case log.next != mark.end || first != mark.first:
		found := "none"
		if len(log.segments) > 0 {
			found = fmt.Sprintf("%d to %d", first, log.next.frame-1)
		}
		return r.damageError("", 0, fmt.Sprintf("frames %d to %d, as in its mark", mark.first, mark.end.frame-1), found)
	case log.torn > 0:
		return r.damageError("", 0, "the end of the log", fmt.Sprintf("%d bytes after it", log.torn))
	case log.first() > base+1 || log.last() < base:
		return r.damageError("", 0, fmt.Sprintf("records from %d on, after its snapshot", base+1), fmt.Sprintf("%d to %d", log.first(), log.last()))
	}
	return nil
}
