package wal

import (
	"fmt"
	"slices"
)

// examination is everything that can be learned of a directory without changing it.
type examination struct {
	files     listing
	mark      mark
	markState MarkState
	snapshots []snapshot // ascending
	log       scanResult
}

// examine reads and verifies every file of the log. It returns what it learned also beside an error:
// *DamageError, *FormatError, one of reading or one of visit. Files behind the first damage are not read.
func examine(dir string, visit func(location, frame) error) (examination, error) {
	var x examination
	var err error
	x.log.next = origin
	if x.files, err = listDir(dir); err != nil {
		return x, err
	}
	if x.mark, x.markState, err = readMark(dir); err != nil {
		return x, err
	}
	if x.snapshots, err = readSnapshots(x.files.snapshots); err != nil {
		return x, err
	}
	if len(x.files.foreign) > 0 {
		return x, &DamageError{
			File: x.files.foreign[0], Expected: "only files that this program makes", Hint: hintForeign,
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

// checkMark holds both ends of the log against the mark.
func (x *examination) checkMark() error {
	if x.markState == MarkLost {
		return nil
	}
	end := x.damageAtEnd()
	switch next := x.log.next; {
	case next.frame < x.mark.end.frame:
		end.Expected = fmt.Sprintf("records up to %d in frame %d, as the mark says", x.mark.end.sequence-1, x.mark.end.frame-1)
		end.Found = fmt.Sprintf("the end at record %d in frame %d", next.sequence-1, next.frame-1)
		return end
	case next.frame == x.mark.end.frame && next != x.mark.end:
		end.Expected = fmt.Sprintf("record %d with checksum %08x at the end, as the mark says", x.mark.end.sequence-1, x.mark.end.chain)
		end.Found = fmt.Sprintf("record %d with %08x", next.sequence-1, next.chain)
		return end
	}
	if len(x.log.segments) > 0 && x.log.segments[0].start.frame > x.mark.first {
		head := x.log.segments[0]
		return &DamageError{
			File: head.path, Sequence: head.start.sequence, Hint: hintAcknowledged,
			Expected: fmt.Sprintf("a segment that begins at or before frame %d, as the mark says", x.mark.first),
			Found:    fmt.Sprintf("frame %d as the oldest", head.start.frame),
		}
	}
	return nil
}

// damageAtEnd is a damage at the end of the log, without what was expected and found there.
func (x *examination) damageAtEnd() *DamageError {
	d := &DamageError{Sequence: x.log.next.sequence, Hint: hintAcknowledged, File: "the first segment"}
	if n := len(x.log.segments); n > 0 {
		d.File, d.Offset = x.log.segments[n-1].path, x.log.segments[n-1].bytes
	}
	return d
}

// checkSnapshots checks that the log holds everything after the newest whole snapshot, and nothing less
// than any snapshot: snapshots are only made of records that are on disk.
func (x *examination) checkSnapshots() error {
	if n := len(x.snapshots); n > 0 && x.snapshots[n-1].sequence > x.log.last() {
		end := x.damageAtEnd()
		end.Expected = fmt.Sprintf("records up to %d, as %s says", x.snapshots[n-1].sequence, x.snapshots[n-1].path)
		end.Found = fmt.Sprintf("the end at record %d", x.log.last())
		return end
	}
	base := x.snapshotSequence()
	if x.log.first() <= base+1 {
		return nil
	}
	if damaged := x.damagedSnapshots(); len(damaged) > 0 {
		d := *damaged[len(damaged)-1]
		d.Hint = fmt.Sprintf("the log begins at record %d and the snapshot before ends at %d, so this one is needed; restore it from a backup", x.log.first(), base)
		return &d
	}
	head := x.log.segments[0]
	return &DamageError{
		File: head.path, Sequence: base + 1, Hint: hintRestore,
		Expected: fmt.Sprintf("records from %d on, after the newest snapshot", base+1),
		Found:    fmt.Sprintf("record %d as the oldest", x.log.first()),
	}
}

// snapshotSequence is the sequence of the newest whole snapshot, 0 without one.
func (x *examination) snapshotSequence() uint64 {
	for _, s := range slices.Backward(x.snapshots) {
		if s.damage == nil {
			return s.sequence
		}
	}
	return 0
}

func (x *examination) damagedSnapshots() []*DamageError {
	var damaged []*DamageError
	for _, s := range x.snapshots {
		if s.damage != nil {
			damaged = append(damaged, s.damage)
		}
	}
	return damaged
}

// ambiguousTail says that the mark cannot tell whether something acknowledged stood behind the end.
func (x *examination) ambiguousTail() bool {
	if x.markState == MarkLost {
		return x.log.frames > 0 || x.log.tornTail != nil
	}
	return x.log.tornTail != nil && (x.markState == MarkHalf || x.mark.end.frame < x.log.next.frame)
}
