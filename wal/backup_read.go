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
	info, err := r.run(io.TeeReader(stream, archive))
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
	info, err := r.run(archive)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = r.refuse("", 0, "whole files", "the end in the middle of one")
	}
	return info, err
}

// backupReader reads the stream of a backup and holds it against its mark.
type backupReader struct {
	name  string
	visit BackupVisitor
	into  *restoring // nil: nothing is written

	tar  *tar.Reader
	said BackupInfo
	scan scanner
	base uint64 // sequence of the snapshot that was read

	baseBytes int64
}

func (r *backupReader) run(stream io.Reader) (BackupInfo, error) {
	r.tar = tar.NewReader(stream)
	err := r.files()
	if err == nil {
		_, err = io.Copy(io.Discard, stream) // an archive has its end behind that of the tar
	}
	if err == nil {
		err = r.compare()
	}
	return r.said, r.explain(err)
}

// explain gives errors of the log the words of a backup.
func (r *backupReader) explain(err error) error {
	var damage *DamageError
	var format *FormatError
	switch {
	case errors.As(err, &damage):
		return &BackupError{File: damage.File, Offset: damage.Offset, Expected: damage.Expected, Found: damage.Found, Hint: hintOtherBackup}
	case errors.As(err, &format):
		return &BackupError{
			File: format.File, Expected: fmt.Sprintf("format version %d at most", format.Known),
			Found: fmt.Sprintf("version %d", format.Version), Hint: hintNewer,
		}
	case errors.Is(err, tar.ErrHeader):
		return r.refuse("", 0, "a file of a data directory", "bytes that are none")
	}
	return err
}

func (r *backupReader) refuse(entry string, at int64, expected, found string) error {
	return &BackupError{File: r.path(entry), Offset: at, Expected: expected, Found: found, Hint: hintOtherBackup}
}

// path names a file in the backup.
func (r *backupReader) path(entry string) string {
	if entry == "" {
		return r.name
	}
	return r.name + ":" + entry
}

// files reads all files in their order.
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

// small reads a file that must come next and is held in memory.
func (r *backupReader) small(name string, bytesMax int64) ([]byte, error) {
	header, err := r.tar.Next()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if header.Name != name || header.Typeflag != tar.TypeReg || header.Size > bytesMax {
		return nil, r.refuse("", 0, fmt.Sprintf("%s of at most %d bytes", name, bytesMax), fmt.Sprintf("%s of %d", header.Name, header.Size))
	}
	return io.ReadAll(r.tar)
}

func (r *backupReader) manifest() error {
	data, err := r.small(manifestName, manifestBytesMax)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &r.said); err != nil {
		return r.refuse(manifestName, 0, "what the backup has, as JSON", err.Error())
	}
	if r.said.Format > backupFormat {
		return &BackupError{
			File: r.path(manifestName), Expected: fmt.Sprintf("format %d at most", backupFormat), Found: fmt.Sprintf("format %d", r.said.Format),
			Hint: hintNewer,
		}
	}
	return nil
}

func (r *backupReader) mark() error {
	data, err := r.small(markName, markFileBytes)
	if err != nil {
		return err
	}
	var valid int
	if r.scan.mark, valid, err = decodeMarkFile(r.path(markName), data); err != nil {
		return err
	}
	if valid != markSlots {
		return r.refuse(markName, 0, "a whole mark", fmt.Sprintf("%d of %d slots", valid, markSlots))
	}
	r.scan.extent.next = origin
	r.scan.visit = eachRecord(r.visit.Record)
	return r.into.begin(r.scan.mark)
}

// file is a snapshot or a segment: any other name is foreign.
func (r *backupReader) file(header *tar.Header) error {
	var found listing
	found.add(header.Name, header.Name, header.Typeflag == tar.TypeReg)
	switch {
	case len(found.segments) == 1 && header.Size <= segmentFileBytesMax:
		return r.segment(found.segments[0], header.Size)
	case len(found.snapshots) == 1 && r.base == 0 && len(r.scan.extent.segments) == 0:
		return r.snapshot(found.snapshots[0], header.Size)
	}
	return r.refuse("", 0, "a snapshot, then segments", fmt.Sprintf("%q of %d bytes", header.Name, header.Size))
}

func (r *backupReader) snapshot(file numbered, size int64) error {
	r.base, r.baseBytes = file.number, size
	return r.into.file(file.path, func(out io.Writer) error {
		_, bad, err := file.walkSnapshot(io.TeeReader(r.tar, out), size, r.visit.Snapshot)
		switch {
		case err != nil:
			return err
		case bad != nil && bad.version != 0:
			return &FormatError{File: r.path(file.path), Version: bad.version, Known: FormatVersion}
		case bad != nil:
			return r.refuse(file.path, int64(bad.at), bad.expected, bad.found)
		}
		return nil
	})
}

func (r *backupReader) segment(file numbered, size int64) error {
	data := r.scan.room(int(size))
	if _, err := io.ReadFull(r.tar, data); err != nil {
		return err
	}
	here := numbered{file.number, r.path(file.path)}
	if err := r.scan.begin(here); err != nil {
		return err
	}
	last := file.number == r.scan.mark.end.frame // then it is empty: no backup has a torn tail
	if err := r.scan.frames(here, data, last); err != nil {
		return err
	}
	return r.into.file(file.path, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// compare holds what was read against the mark.
func (r *backupReader) compare() error {
	x := &r.scan.extent
	r.said.count(x, r.base, r.baseBytes)
	first := r.scan.mark.end.frame
	if len(x.segments) > 0 {
		first = x.segments[0].start.frame
	}
	switch {
	case x.next != r.scan.mark.end || first != r.scan.mark.first:
		there := "none"
		if len(x.segments) > 0 {
			there = fmt.Sprintf("%d to %d", first, x.next.frame-1)
		}
		return r.refuse("", 0, fmt.Sprintf("frames %d to %d, as its mark says", r.scan.mark.first, r.scan.mark.end.frame-1), there)
	case x.tear != nil:
		return r.refuse("", 0, "the end of the log", fmt.Sprintf("%d bytes behind it", x.tear.bytes))
	case x.first() > r.base+1 || x.last() < r.base:
		return r.refuse("", 0, fmt.Sprintf("records from %d on, after its snapshot", r.base+1), fmt.Sprintf("%d to %d", x.first(), x.last()))
	}
	return nil
}
