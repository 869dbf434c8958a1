package wal

import (
	"fmt"
)

// examination is the verified contents of a log directory.
type examination struct {
	files     listing
	mark      mark
	markState MarkState
	snapshots []snapshot // sorted by sequence number, lowest first
	log       scanResult
}

// examine verifies every file of the log and changes nothing. It calls visit (may be nil) for each frame (batch of
// records). Errors: *DamageError, *FormatError, and errors of reading and of visit. After an error the result contains
// everything read before.
func examine(dir string, visit func(location, frame) error) (examination, error) {
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
	if n := len(x.snapshots); n > 0 && x.snapshots[n-1].sequence > x.log.last() {
		newest := x.snapshots[n-1]
		return x.log.damageAtEnd(fmt.Sprintf("records up to %d, as in the name of %s", newest.sequence, newest.path),
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
func (x *examination) snapshotSequence() uint64 { return newestUndamaged(x.snapshots).sequence }

func (x *examination) damagedSnapshots() []*DamageError {
	var damaged []*DamageError
	for _, s := range x.snapshots {
		if s.damage != nil {
			damaged = append(damaged, s.damage)
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
