package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// RepairReport reports what Repair did.
type RepairReport struct {
	Cause      error    // the damage; nil if there was none and nothing was changed
	Last       uint64   // number of the newest record after the repair, in the log or in a snapshot
	LostFrom   uint64   // number of the first lost record; 0 = none
	LostTo     uint64   // number of the newest lost record according to the high-water mark; 0 = unknown or none
	SavedFiles []string // files that contain all removed bytes
}

// Repair makes a damaged log usable again. The records after the damage are no longer in the log, so it is a last
// resort; Open never calls it. Repair saves all bytes that it removes in files beside the log.
//
//   - The log is cut at the first damaged frame (batch of records). The rest of that segment is saved, and all later
//     segments are renamed.
//   - If the damage is before the newest undamaged snapshot, the segments after the damage stay, and those up to the
//     damage are renamed.
//   - If no valid frames follow the snapshot, the log starts empty after the snapshot.
//   - A damaged snapshot that Open would skip is moved aside; no record is lost.
//
// Repair does not change an undamaged directory. Errors: ErrLocked, *FormatError, and errors of the disk.
func Repair(dir string, o Options) (RepairReport, error) {
	o, err := o.withDefaults()
	if err != nil {
		return RepairReport{}, err
	}
	dir, lockFile, err := lockDir(dir, isDir)
	p := &repair{dir: dir, o: o}
	if err == nil {
		err = errors.Join(p.apply(), unlock(lockFile))
	}
	if err != nil {
		return p.report, fmt.Errorf("repair log: %w", err)
	}
	return p.report, nil
}

func isDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is a file, not a log directory", dir)
	}
	return err
}

// repair is one call of Repair. After a crash in it, either Open refuses the log as before, or the repair is complete.
type repair struct {
	dir       string
	o         Options
	report    RepairReport
	truncated bool // bytes after the end of the remaining log were removed
}

func (p *repair) apply() error {
	x, err := examine(p.dir, nil)
	p.report.Last = x.log.last()
	damaged := x.damagedSnapshots()
	var damage *DamageError
	switch {
	case err == nil && len(damaged) == 0:
		return nil
	case err == nil: // the log contains the records of these snapshots
		p.report.Cause = damaged[len(damaged)-1]
		return p.moveDamaged(damaged)
	case !errors.As(err, &damage):
		return err
	}
	p.report.Cause = damage
	if err := p.moveAside(x.files.foreign...); err != nil {
		return err
	}
	run, err := p.chooseRun(x.files.segments, x.snapshotSequence())
	if err != nil {
		return err
	}
	if err := p.moveDamaged(damaged); err != nil {
		return err
	}
	if len(run.segments) == 0 {
		run = p.emptyRun(x.files.segments, x.mark, x.snapshotSequence()+1)
	}
	if err := p.keepRun(x.files.segments, run); err != nil {
		return err
	}
	return p.finish(x.mark, run)
}

func (p *repair) moveDamaged(snapshots []*DamageError) error {
	for _, damage := range snapshots {
		if err := p.moveAside(damage.File); err != nil {
			return err
		}
	}
	return nil
}

// chooseRun returns the first run with every record after the newest snapshot. A run is a sequence of valid frames
// without a gap. base is the number of the snapshot's last record. Without such a run, the result has no segments.
func (p *repair) chooseRun(files []numberedFile, base uint64) (scanResult, error) {
	for i := 0; i < len(files); {
		run, err := scan(files[i:], mark{}, nil) // without the mark, because records before the mark may be lost
		var damage *DamageError
		if err != nil && !errors.As(err, &damage) {
			return scanResult{}, err
		}
		startKnown := run.frames > 0 || files[i].number == origin.frame
		if startKnown && run.first() <= base+1 && run.last() >= base {
			return run, nil
		}
		i += max(1, len(run.segments))
	}
	return scanResult{}, nil
}

// emptyRun returns a run with one empty segment, for the records from number sequence on. Its first frame follows those
// before: a log that begins with frame 1 begins with record 1.
func (p *repair) emptyRun(files []numberedFile, oldMark mark, sequence uint64) scanResult {
	p.truncated = oldMark.end.frame == 0 // a lost mark can't exclude that these segments had newer records
	start := position{frame: max(oldMark.end.frame, origin.frame+1), sequence: sequence}
	for _, file := range files {
		start.frame = max(start.frame, file.number+1)
	}
	return scanResult{segments: []segment{{path: segmentPath(p.dir, start.frame), start: start}}, next: start}
}

// keepRun moves aside every segment outside the run (see chooseRun), newest first. Then it cuts the last segment of the
// run at the end of the run, or creates it.
func (p *repair) keepRun(files []numberedFile, run scanResult) error {
	for _, file := range slices.Backward(files) {
		if slices.ContainsFunc(run.segments, func(s segment) bool { return s.path == file.path }) {
			continue
		}
		p.truncated = p.truncated || file.number >= run.next.frame
		if err := p.moveAside(file.path); err != nil {
			return err
		}
	}
	tail := run.segments[len(run.segments)-1]
	info, err := os.Stat(tail.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.o.disk.createFile(tail.path, noContent)
	case err != nil || info.Size() == tail.bytes:
		return err
	}
	saved, err := cutTail(p.o, "damaged", tail.path, tail.bytes)
	p.report.SavedFiles, p.truncated = append(p.report.SavedFiles, saved), true
	return err
}

func (p *repair) moveAside(paths ...string) error {
	for _, path := range paths {
		saved, err := p.o.disk.moveAside(path, "damaged", p.o.Clock())
		if err != nil {
			return err
		}
		p.report.SavedFiles = append(p.report.SavedFiles, saved)
	}
	return nil
}

// finish reports lost records, writes the high-water mark of the remaining log and verifies the directory.
func (p *repair) finish(oldMark mark, run scanResult) error {
	p.report.Last = run.last()
	if oldMark.end.sequence > run.next.sequence {
		p.report.LostFrom, p.report.LostTo = run.next.sequence, oldMark.end.sequence-1
	} else if p.truncated {
		p.report.LostFrom = run.next.sequence
	}
	m := mark{generation: oldMark.generation, first: run.segments[0].start.frame, end: run.next}
	if err := writeMark(p.dir, p.o.disk, m); err != nil {
		return err
	}
	p.o.Logger.Warn("log repaired", "last", p.report.Last, "lostFrom", p.report.LostFrom, "lostTo", p.report.LostTo, "saved", len(p.report.SavedFiles))
	if _, err := examine(p.dir, nil); err != nil {
		return fmt.Errorf("still damaged after the repair: %w", err)
	}
	return nil
}
