package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// RepairReport says what Repair did.
type RepairReport struct {
	Cause      error    // the damage that was found, nil when there was none and nothing was changed
	First      uint64   // sequence of the oldest record of the log now
	Last       uint64   // sequence of the newest record now, in the log or in the newest whole snapshot
	LostFrom   uint64   // sequence of the first record that is lost, 0 when none is
	LostTo     uint64   // the highest lost sequence that left a trace, 0 when none did: then more may be lost
	SavedFiles []string // files that hold every byte that was removed
}

// Repair makes a damaged log open again and gives up what stands behind the damage: the operator's last
// resort, never called by Open. It cuts the log at the first damaged frame, keeps the rest of that segment
// in a file beside it and renames all later segments, so that nothing is erased. Is the damage older than
// the newest whole snapshot, the part before it is renamed instead and the part behind it goes on. Are
// there no whole frames at the snapshot's end, the log starts anew behind the snapshot. A damaged snapshot
// that Open would pass over is put aside; nothing is lost then. A directory that is not damaged is left
// alone. Errors: ErrLocked, *FormatError, those of the disk.
func Repair(dir string, o Options) (RepairReport, error) {
	o, err := o.withDefaults()
	if err != nil {
		return RepairReport{}, err
	}
	if dir, err = filepath.Abs(dir); err == nil {
		err = isDir(dir)
	}
	if err != nil {
		return RepairReport{}, fmt.Errorf("repair log: %w", err)
	}
	held, err := lock(dir)
	if err != nil {
		return RepairReport{}, fmt.Errorf("repair log: %w", err)
	}
	p := &repair{dir: dir, o: o}
	if err := errors.Join(p.run(), unlock(held)); err != nil {
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

// repair is one run. A crash in between leaves a log that is still refused, or is already good.
type repair struct {
	dir       string
	o         Options
	report    RepairReport
	truncated bool // bytes behind the end were removed
}

func (p *repair) run() error {
	x, err := examine(p.dir, nil)
	p.report.First, p.report.Last = x.log.first(), x.log.last()
	var damage *DamageError
	if err == nil {
		return p.moveDamagedSnapshots(&x)
	}
	if !errors.As(err, &damage) {
		return err
	}
	p.report.Cause = damage
	for _, path := range x.files.foreign {
		if err := p.moveAside(path); err != nil {
			return err
		}
	}
	run, err := p.chooseRun(x.files.segments, x.snapshotSequence())
	if err != nil {
		return err
	}
	traced, err := highestPosition(x.files.segments)
	if err != nil {
		return err
	}
	traced.frame = max(traced.frame, x.mark.end.frame)
	traced.sequence = max(traced.sequence, x.mark.end.sequence)
	for _, damage := range x.damagedSnapshots() {
		if err := p.moveAside(damage.File); err != nil {
			return err
		}
	}
	if len(run.segments) == 0 {
		run, err = p.startEmpty(x.files.segments, position{frame: traced.frame, sequence: x.snapshotSequence() + 1})
	} else {
		err = p.keepRun(x.files.segments, run)
	}
	if err != nil {
		return err
	}
	return p.finish(x.mark, run, traced)
}

// moveDamagedSnapshots puts the damaged snapshots of a log aside that holds what they covered: no record is lost.
func (p *repair) moveDamagedSnapshots(x *examination) error {
	for _, damage := range x.damagedSnapshots() {
		p.report.Cause = damage
		if err := p.moveAside(damage.File); err != nil {
			return err
		}
	}
	return nil
}

// chooseRun returns the first unbroken run of frames that holds everything after the newest snapshot, which
// ends at base, or an extent without segments when there is none.
func (p *repair) chooseRun(files []numberedFile, base uint64) (scanResult, error) {
	for i := 0; i < len(files); {
		// The mark is left out: it says how the log should end, and the log does not end so.
		run, err := scan(files[i:], mark{}, nil)
		var damage *DamageError
		if err != nil && !errors.As(err, &damage) {
			return scanResult{}, err
		}
		known := run.frames > 0 || files[i].number == origin.frame
		if known && run.first() <= base+1 && run.last() >= base {
			return run, nil
		}
		i += max(1, len(run.segments))
	}
	return scanResult{}, nil
}

// highestPosition returns the position behind the newest whole frame anywhere in the files.
func highestPosition(files []numberedFile) (position, error) {
	end := origin
	for _, file := range files {
		end.frame = max(end.frame, file.number)
		data, err := readFrom(file.path, 0)
		if err != nil {
			return end, err
		}
		for off := 0; ; {
			f, at := findFrame(data[off:], 1)
			if at < 0 {
				break
			}
			end.frame, end.sequence = max(end.frame, f.index+1), max(end.sequence, f.last()+1)
			off += at + frameHeaderBytes + len(f.payload) + frameTrailerBytes
		}
	}
	return end, nil
}

// keepRun puts everything aside that is not part of the run, the newest first.
func (p *repair) keepRun(files []numberedFile, run scanResult) error {
	tail := run.segments[len(run.segments)-1]
	for _, file := range slices.Backward(files) {
		inRun := slices.ContainsFunc(run.segments, func(s segment) bool { return s.path == file.path })
		if !inRun {
			p.truncated = p.truncated || file.number >= run.next.frame
			if err := p.moveAside(file.path); err != nil {
				return err
			}
			continue
		}
		if file.path != tail.path {
			continue
		}
		info, err := os.Stat(file.path)
		if err != nil {
			return err
		}
		if info.Size() == tail.bytes {
			continue
		}
		kept, err := cutTail(p.o, "damaged", file.path, tail.bytes)
		if err != nil {
			return err
		}
		p.report.SavedFiles, p.truncated = append(p.report.SavedFiles, kept), true
	}
	return nil
}

// startEmpty puts all segments aside and begins an empty one behind the snapshot.
func (p *repair) startEmpty(files []numberedFile, at position) (scanResult, error) {
	for _, file := range slices.Backward(files) {
		if err := p.moveAside(file.path); err != nil {
			return scanResult{}, err
		}
	}
	path := segmentPath(p.dir, at.frame)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return scanResult{}, err
	}
	if err := errors.Join(p.o.disk.sync(f), f.Close(), p.o.disk.syncDir(p.dir)); err != nil {
		return scanResult{}, err
	}
	return scanResult{segments: []segment{{path: path, start: at}}, next: at}, nil
}

func (p *repair) moveAside(path string) error {
	kept, err := p.o.disk.moveAside(path, "damaged", p.o.Clock())
	if err != nil {
		return fmt.Errorf("put %s aside: %w", path, err)
	}
	p.report.SavedFiles = append(p.report.SavedFiles, kept)
	return nil
}

// finish writes the mark of what is left, says what is lost and looks whether the log is whole now.
func (p *repair) finish(old mark, run scanResult, traced position) error {
	m := mark{generation: old.generation, first: run.segments[0].start.frame, end: run.next}
	w, err := openMarkWriter(p.dir, p.o.disk, m)
	if err != nil {
		return err
	}
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("close mark: %w", err)
	}
	p.report.First, p.report.Last = run.first(), run.last()
	if traced.sequence > run.next.sequence {
		p.report.LostFrom, p.report.LostTo = run.next.sequence, traced.sequence-1
	} else if p.truncated {
		p.report.LostFrom = run.next.sequence
	}
	p.o.Logger.Warn("log repaired", "last", p.report.Last, "lostFrom", p.report.LostFrom, "lostTo", p.report.LostTo, "kept", len(p.report.SavedFiles))
	if _, err := examine(p.dir, nil); err != nil {
		return fmt.Errorf("still damaged after the repair: %w", err)
	}
	return nil
}
