package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Report describes a log directory.
type Report struct {
	First    uint64 // sequence number of the oldest record; Last+1 if the log has none
	Last     uint64 // sequence number of the newest record, 0 if there never was one
	Segments int
	Batches  uint64
	Records  uint64
	LogBytes int64

	TornBytes     int64 // size of a torn tail (an incomplete last write); Open moves it to a file
	AmbiguousTail bool  // acknowledged records may be missing at the end, but the high-water mark can't tell

	Mark                MarkState
	Snapshots           []SnapshotReport // sorted by sequence number
	UnfinishedSnapshots []string         // files; Open removes them
}

// Verify verifies every byte of the log in dir and changes nothing. Another process may have the log open; then Mark is
// MarkInUse. Errors: *DamageError, *FormatError, and errors of reading. After an error the report contains everything
// read before.
func Verify(dir string) (Report, error) {
	x, inUse, err := examineInUse(dir, nil)
	r := x.report()
	if inUse { // a batch in progress is not on disk yet, and the mark is behind it
		r.TornBytes, r.AmbiguousTail, r.Mark = 0, false, MarkInUse
	}
	return r, err
}

// besideTries is the maximum number of attempts to examine a log that changes meanwhile.
const besideTries = 10

// examineInUse calls examine under the shared lock. If another process has the log open, it calls examine without a
// lock, and repeats the call after an error, because that process appends to files and removes the oldest.
func examineInUse(dir string, visit frameVisitor) (x examination, inUse bool, err error) {
	err = withSharedLock(dir, func() error {
		x, err = examine(dir, visit)
		return err
	})
	for try := 0; errors.Is(err, ErrLocked) || inUse && err != nil && try < besideTries; try++ {
		inUse = true
		x, err = examine(dir, visit)
	}
	return x, inUse, err
}

func (x *examination) report() Report {
	return Report{
		First: x.log.first(), Last: x.log.last(), Segments: len(x.log.segments),
		Batches: x.log.frames, Records: x.log.records, LogBytes: x.log.bytes,
		TornBytes: x.log.torn, AmbiguousTail: x.ambiguousTail(), Mark: x.markState, Snapshots: x.snapshots,
		UnfinishedSnapshots: x.files.temps,
	}
}

// Exists reports whether dir has files of a log. It checks only the names. A missing directory has no files.
func Exists(dir string) (bool, error) {
	names, err := Files(dir)
	return len(names) > 0, err
}

// Files returns the paths of the files of the log in dir: the high-water mark, segments, snapshots, and unfinished
// snapshots. It omits the lock, files moved aside and other files.
func Files(dir string) ([]string, error) {
	files, err := listDir(dir)
	names := files.mark
	for _, file := range slices.Concat(files.segments, files.snapshots) {
		names = append(names, file.path)
	}
	return slices.Concat(names, files.temps, files.foreign), err
}

// CopyFiles calls visit for each file of the log in dir: the high-water mark, snapshots, segments. In this order the
// files can be copied while another process has the log open. CopyFiles does not verify them. The newest segment may
// end in an incomplete batch; opening the copy verifies it and cuts that off. If the other process removes a file
// meanwhile, the error is fs.ErrNotExist; then repeat the call. The first error of visit ends CopyFiles.
func CopyFiles(dir string, visit func(name string, content io.Reader) error) error {
	copyFile := func(path string) error {
		return withFile(path, fileRead, func(f *os.File) error { return visit(filepath.Base(path), f) })
	}
	// The mark is copied before the other files are listed, so that the copy does not end before its mark.
	if err := copyFile(filepath.Join(dir, markName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files, err := listDir(dir)
	if err != nil {
		return err
	}
	for _, file := range slices.Concat(files.snapshots, files.segments) {
		if err := copyFile(file.path); err != nil {
			return err
		}
	}
	return nil
}

// Entry is one record visited by Dump.
type Entry struct {
	Sequence uint64
	Segment  string // path of the file
	Offset   int64  // offset of the record's frame (batch) in the file
	Record   []byte // valid only during the call
}

// Dump calls visit for each record of the log in dir, in order, and changes nothing. It visits all records before
// damage, and none of a torn tail. Another process may have the log open. Errors: those of Verify, and visit's first
// error, which ends Dump.
func Dump(dir string, visit func(Entry) error) error {
	var last uint64 // newest record visited, also by an earlier try
	var visitErr error
	_, _, err := examineInUse(dir, func(segment string, offset int64, f frame) error {
		visitErr = cmp.Or(visitErr, f.records(func(sequence uint64, record []byte) error {
			if sequence <= last {
				return nil
			}
			last = sequence
			return visit(Entry{Sequence: sequence, Segment: segment, Offset: offset, Record: record})
		}))
		return visitErr
	})
	return err
}

// withSharedLock calls read under the shared lock, so that no other process writes to dir meanwhile. ErrLocked means
// that another process has the log open.
func withSharedLock(dir string, read func() error) (err error) {
	if err := isDir(dir); err != nil {
		return err
	}
	lockFile, err := lockShared(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock(lockFile)) }()
	return read()
}

// examination is the verified contents of a log directory.
type examination struct {
	files     listing
	mark      mark
	markState MarkState
	snapshots []SnapshotReport // sorted by sequence number, lowest first
	log       scanResult
}

// examine verifies every file of the log and changes nothing. It calls visit (may be nil) for each frame (batch of
// records). Errors: *DamageError, *FormatError, and errors of reading and of visit. After an error the result contains
// everything read before.
func examine(dir string, visit frameVisitor) (examination, error) {
	var x examination
	var err error
	x.log.next = origin
	if x.mark, x.markState, err = readMark(dir); err != nil { // before the files, which may grow beyond the mark meanwhile
		return x, err
	}
	if x.files, err = listDir(dir); err != nil {
		return x, err
	}
	if x.snapshots, err = readSnapshots(x.files.snapshots); err != nil {
		return x, err
	}
	if len(x.files.foreign) > 0 {
		return x, &DamageError{
			File: x.files.foreign[0], Expected: "only files of tasard", Hint: hintForeign,
			Found: "a file that would change the log",
		}
	}
	if x.log, err = scan(x.files.segments, x.mark, visit); err != nil {
		return x, err
	}
	if err := x.checkMark(); err != nil {
		return x, err
	}
	if err := x.checkSnapshots(); err != nil {
		return x, err
	}
	for _, damage := range x.damagedSnapshots() {
		damage.Hint = hintCovered
	}
	return x, nil
}

// checkMark compares the beginning and the end of the log with the high-water mark, which records how far the log was
// on disk.
func (x *examination) checkMark() error {
	if x.markState == MarkLost {
		return nil
	}
	if err := x.log.checkEnd(x.mark.end); err != nil {
		return err
	}
	if len(x.log.segments) > 0 && x.log.segments[0].start.frame > x.mark.first {
		head := x.log.segments[0]
		return &DamageError{
			File: head.path, Sequence: head.start.sequence, Hint: hintAcknowledged,
			Expected: fmt.Sprintf("a segment that begins at or before frame %d, as in the mark", x.mark.first),
			Found:    fmt.Sprintf("frame %d as the oldest", head.start.frame),
		}
	}
	return nil
}

// checkSnapshots checks that the log contains every record after the newest undamaged snapshot. It also checks that the
// log does not end before a snapshot, because snapshots are written only after their records are on disk.
func (x *examination) checkSnapshots() error {
	if n := len(x.snapshots); n > 0 && x.snapshots[n-1].Sequence > x.log.last() {
		newest := x.snapshots[n-1]
		return x.log.damageAtEnd(fmt.Sprintf("records up to %d, as in the name of %s", newest.Sequence, newest.File),
			fmt.Sprintf("the end at record %d", x.log.last()))
	}
	base := x.snapshotSequence()
	if x.log.first() <= base+1 {
		return nil
	}
	if damaged := x.damagedSnapshots(); len(damaged) > 0 {
		d := *damaged[len(damaged)-1]
		d.Hint = fmt.Sprintf("the log begins at record %d and the snapshot before ends at %d, so this one is needed; restore it from a backup",
			x.log.first(), base)
		return &d
	}
	return &DamageError{
		File: x.log.segments[0].path, Sequence: base + 1, Hint: hintRestore,
		Expected: fmt.Sprintf("records from %d on, after the newest snapshot", base+1),
		Found:    fmt.Sprintf("record %d as the oldest", x.log.first()),
	}
}

// snapshotSequence returns the number of the newest undamaged snapshot's last record, or 0.
func (x *examination) snapshotSequence() uint64 { return newestUndamaged(x.snapshots).Sequence }

func (x *examination) damagedSnapshots() []*DamageError {
	var damaged []*DamageError
	for _, s := range x.snapshots {
		if s.Damage != nil {
			damaged = append(damaged, s.Damage)
		}
	}
	return damaged
}

// ambiguousTail reports whether acknowledged records may be missing at the end of the log. This is possible if the
// high-water mark is lost, or if there is a torn tail (an incomplete last write) after the mark.
func (x *examination) ambiguousTail() bool {
	if x.markState == MarkLost {
		return x.log.frames > 0 || x.log.torn > 0
	}
	return x.log.torn > 0 && (x.markState == MarkHalf || x.mark.end.frame < x.log.next.frame)
}
