package wal

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// VerifyBackup reads a backup file to its end, every byte of it, and says what it has. Errors: *BackupError, those of reading and
// of the visitor.
func VerifyBackup(file io.Reader, name string, visit BackupVisitor) (BackupInfo, error) {
	return readArchive(file, name, &backupReader{visit: visit})
}

// PackBackup compresses the stream that Log.Backup writes into a backup file, and verifies all of it on the way. A stream that
// breaks off is io.ErrUnexpectedEOF. The file is whole only when there is no error.
func PackBackup(stream io.Reader, to io.Writer, visit BackupVisitor) (BackupInfo, error) {
	archive, err := NewBackupFile(to)
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

// backupReader reads the stream of a backup and holds it against its mark.
type backupReader struct {
	name   string
	visit  BackupVisitor
	target *restoreTarget // nil: nothing is written

	tar              *tar.Reader
	info             BackupInfo
	scanner          scanner
	snapshotSequence uint64 // sequence of the snapshot that was read

	snapshotBytes int64
}

func (r *backupReader) readStream(stream io.Reader) (BackupInfo, error) {
	r.tar = tar.NewReader(stream)
	err := r.files()
	if err == nil {
		_, err = io.Copy(io.Discard, stream) // an archive has its end behind that of the tar
	}
	if err == nil {
		err = r.checkMark()
	}
	return r.info, r.asBackupError(err)
}

// asBackupError gives errors of the log the words of a backup.
func (r *backupReader) asBackupError(err error) error {
	var damage *DamageError
	var format *FormatError
	switch {
	case errors.As(err, &damage):
		return &BackupError{File: damage.File, Offset: damage.Offset, Expected: damage.Expected, Found: damage.Found, Hint: hintOtherBackup}
	case errors.As(err, &format):
		return &BackupError{
			File: format.File, Expected: fmt.Sprintf("format version %d at most", format.Supported),
			Found: fmt.Sprintf("version %d", format.Version), Hint: hintNewer,
		}
	case errors.Is(err, tar.ErrHeader):
		return r.damageError("", 0, "a file of a data directory", "bytes that are none")
	}
	return err
}

func (r *backupReader) damageError(entry string, at int64, expected, found string) error {
	return &BackupError{File: r.path(entry), Offset: at, Expected: expected, Found: found, Hint: hintOtherBackup}
}

// path names a file in the backup.
func (r *backupReader) path(entry string) string {
	if entry == "" {
		return r.name
	}
	return r.name + ":" + entry
}

// readFiles reads all files in their order.
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

// readSmallFile reads a file that must come next and is held in memory.
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
		return r.damageError(manifestName, 0, "what the backup has, as JSON", err.Error())
	}
	if r.info.Format > backupFormat {
		return &BackupError{
			File: r.path(manifestName), Expected: fmt.Sprintf("format %d at most", backupFormat), Found: fmt.Sprintf("format %d", r.info.Format),
			Hint: hintNewer,
		}
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

// writeFile is a snapshot or a segment: any other name is foreign.
func (r *backupReader) file(header *tar.Header) error {
	var found listing
	found.add(header.Name, header.Name, header.Typeflag == tar.TypeReg)
	switch {
	case len(found.segments) == 1 && header.Size <= segmentFileBytesMax:
		return r.segment(found.segments[0], header.Size)
	case len(found.snapshots) == 1 && r.snapshotSequence == 0 && len(r.scanner.result.segments) == 0:
		return r.snapshot(found.snapshots[0], header.Size)
	}
	return r.damageError("", 0, "a snapshot, then segments", fmt.Sprintf("%q of %d bytes", header.Name, header.Size))
}

func (r *backupReader) snapshot(file numberedFile, size int64) error {
	r.snapshotSequence, r.snapshotBytes = file.number, size
	return r.target.writeFile(file.path, func(out io.Writer) error {
		_, bad, err := file.verifySnapshot(io.TeeReader(r.tar, out), size, r.visit.Snapshot)
		switch {
		case err != nil:
			return err
		case bad != nil && bad.version != 0:
			return &FormatError{File: r.path(file.path), Version: bad.version, Supported: FormatVersion}
		case bad != nil:
			return r.damageError(file.path, int64(bad.at), bad.expected, bad.found)
		}
		return nil
	})
}

func (r *backupReader) segment(file numberedFile, size int64) error {
	data := r.scanner.buffered(int(size))
	if _, err := io.ReadFull(r.tar, data); err != nil {
		return err
	}
	here := numberedFile{file.number, r.path(file.path)}
	if err := r.scanner.checkSegmentName(here); err != nil {
		return err
	}
	last := file.number == r.scanner.mark.end.frame // then it is empty: no backup has a torn tail
	if err := r.scanner.scanFrames(here, data, last); err != nil {
		return err
	}
	return r.target.writeFile(file.path, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// checkMark holds what was read against the mark.
func (r *backupReader) checkMark() error {
	x := &r.scanner.result
	r.info.count(x, r.snapshotSequence, r.snapshotBytes)
	first := r.scanner.mark.end.frame
	if len(x.segments) > 0 {
		first = x.segments[0].start.frame
	}
	switch {
	case x.next != r.scanner.mark.end || first != r.scanner.mark.first:
		there := "none"
		if len(x.segments) > 0 {
			there = fmt.Sprintf("%d to %d", first, x.next.frame-1)
		}
		return r.damageError("", 0, fmt.Sprintf("frames %d to %d, as its mark says", r.scanner.mark.first, r.scanner.mark.end.frame-1), there)
	case x.tornTail != nil:
		return r.damageError("", 0, "the end of the log", fmt.Sprintf("%d bytes behind it", x.tornTail.bytes))
	case x.first() > r.snapshotSequence+1 || x.last() < r.snapshotSequence:
		return r.damageError("", 0, fmt.Sprintf("records from %d on, after its snapshot", r.snapshotSequence+1), fmt.Sprintf("%d to %d", x.first(), x.last()))
	}
	return nil
}
