package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// snapshotsKept is how many whole snapshots stay: the newest, and the one before in case it is damaged.
const snapshotsKept = 2

// Snapshot returns the newest whole snapshot: the state after the record with sequence seq. All of the
// file is verified before it is handed out; the caller closes it. When a newer one is damaged and the log
// still holds everything after an older one, it returns that one and says so in the logger. ok is false
// when the whole state is in the log. A damaged snapshot that is needed is a *DamageError.
func (l *Log) Snapshot() (seq uint64, r io.ReadCloser, ok bool, err error) {
	l.mu.Lock()
	snapshots, closed := slices.Clone(l.snapshots), l.closed
	first := l.segments[0].start.sequence
	l.mu.Unlock()
	if closed {
		return 0, nil, false, ErrClosed
	}
	var damage *DamageError
	for _, s := range slices.Backward(snapshots) {
		if first > s.sequence+1 {
			break
		}
		f, payload, bad, err := openSnapshot(numberedFile{s.sequence, s.path})
		if err != nil {
			return 0, nil, false, err
		}
		if bad == nil {
			return s.sequence, newSnapshotReader(f, payload), true, nil
		}
		damage = bad
		l.options.Logger.Warn("damaged snapshot passed over", "cause", bad.Error())
	}
	if first > 1 && damage != nil {
		return 0, nil, false, damage
	}
	return 0, nil, false, nil
}

// WriteSnapshot stores what write produces as the state after the record with sequence seq, which must be
// on disk. It may run while Append runs. The file appears only when it is whole and durable; the snapshot
// before is kept, older ones are removed. A snapshot of the same sequence that is already whole is left as
// it is and write is not called. An error of write leaves the log usable, as ErrNoSpace does; a failed disk
// operation is ErrPoisoned.
func (l *Log) WriteSnapshot(seq uint64, write func(io.Writer) error) error {
	l.snapshotting.Lock()
	defer l.snapshotting.Unlock()
	done, err := l.checkSnapshot(seq)
	if done || err != nil {
		return err
	}
	if err := l.disk.checkSpace(l.dir, l.options.ReserveBytes, 0); err != nil {
		return err
	}
	path := snapshotPath(l.dir, seq)
	size, theirs, err := l.writeTemp(path+tempSuffix, seq, write)
	if err == nil && theirs != nil {
		if err = l.disk.remove(path + tempSuffix); err == nil {
			return fmt.Errorf("write snapshot at %d: %w", seq, theirs)
		}
	}
	if err == nil {
		if err := l.usable(); err != nil {
			return err // an append failed meanwhile; the unfinished file is removed at the next Open
		}
		err = l.publish(snapshot{sequence: seq, path: path, bytes: size, at: l.options.Clock().Round(0).UTC()})
	}
	if err != nil {
		return l.poison(fmt.Errorf("write snapshot at %d: %w", seq, err))
	}
	return nil
}

// checkSnapshot says whether a snapshot at the sequence makes sense, and whether it is done already.
func (l *Log) checkSnapshot(seq uint64) (done bool, err error) {
	if err := l.usable(); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq == 0 || seq >= l.next.sequence {
		return false, fmt.Errorf("write snapshot at %d: the records on disk are 1 to %d", seq, l.next.sequence-1)
	}
	for _, s := range l.snapshots {
		if s.damage == nil && s.sequence > seq {
			return false, fmt.Errorf("write snapshot at %d: there is one at %d", seq, s.sequence)
		}
		done = done || s.damage == nil && s.sequence == seq
	}
	return done, nil
}

// writeTemp writes and syncs the file. ours is a failed disk operation, theirs the error of write.
func (l *Log) writeTemp(path string, seq uint64, write func(io.Writer) error) (size int64, theirs, ours error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, nil, err
	}
	out := &fileWriter{file: f, disk: l.disk, dir: l.dir, reserve: l.options.ReserveBytes}
	ours, theirs = encodeSnapshot(out, seq, write)
	if errors.Is(ours, ErrNoSpace) {
		ours, theirs = nil, ours
	}
	if ours == nil && theirs == nil {
		ours = l.disk.sync(f)
	}
	return out.size, theirs, errors.Join(ours, f.Close())
}

// publish gives the finished file its name, then retires those that it replaces. The rename is durable
// before anything is removed.
func (l *Log) publish(s snapshot) error {
	if err := l.disk.rename(s.path+tempSuffix, s.path); err != nil {
		return err
	}
	if err := l.disk.syncDir(l.dir); err != nil {
		return err
	}
	l.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(l.snapshots), func(old snapshot) bool { return old.sequence == s.sequence })
	l.mu.Unlock()
	kept, err := l.retire(append(all, s))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.snapshots = kept
	return err
}

// retire puts damaged snapshots aside, removes all but the newest whole ones and returns these, ascending.
func (l *Log) retire(all []snapshot) ([]snapshot, error) {
	slices.SortFunc(all, func(a, b snapshot) int { return cmp.Compare(a.sequence, b.sequence) })
	var kept []snapshot
	for i, s := range slices.Backward(all) {
		var err error
		switch {
		case s.damage != nil:
			var name string
			if name, err = l.disk.moveAside(s.path, "damaged", l.options.Clock()); err == nil {
				l.options.Logger.Info("damaged snapshot put aside", "kept", name)
			}
		case len(kept) >= snapshotsKept && !l.pinned(s.sequence):
			err = l.disk.remove(s.path)
		default:
			kept = append(kept, s)
		}
		if err != nil {
			slices.Reverse(kept)
			return append(slices.Clone(all[:i]), kept...), err
		}
	}
	slices.Reverse(kept)
	return kept, l.disk.syncDir(l.dir)
}

// DropBefore removes whole segments that hold only records before seq. It keeps every record that the
// snapshot before the newest one needs, so that a damaged newest one costs nothing; with fewer than two
// snapshots it removes nothing. The writer calls it after WriteSnapshot.
//
// The library's TruncateFront is not used: it writes the rest of a segment into a .START file, renames it
// without a directory sync and then unlinks the segments, so that a power cut can keep the removals and
// lose the rename, and a process killed in between leaves files that make it delete others at its next
// start. Here no byte is copied. The mark says durably what may be missing before the first file goes,
// and each removal is durable before the next: at any moment the log is one unbroken run of segments.
func (l *Log) DropBefore(seq uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	n := l.droppable(seq)
	if n == 0 {
		return nil
	}
	l.markWriter.mark.first = l.segments[n].start.frame
	if err := l.markWriter.writeSync(); err != nil {
		return l.poison(fmt.Errorf("drop records before %d: %w", seq, err))
	}
	for range n {
		if err := l.dropOldest(); err != nil {
			return l.poison(fmt.Errorf("drop records before %d: %w", seq, err))
		}
	}
	return nil
}

// droppable counts the segments at the front that may go.
func (l *Log) droppable(seq uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := 0
	for _, s := range slices.Backward(l.snapshots) {
		if s.damage != nil {
			continue
		}
		if whole++; whole == snapshotsKept {
			seq = min(seq, s.sequence+1)
		}
	}
	if whole < snapshotsKept {
		return 0
	}
	oldest := l.next.frame // that is being copied
	for _, p := range l.pins {
		oldest = min(oldest, p.first)
	}
	// The last segment with a frame stays: it holds the chain that the next frame continues.
	n := 0
	for n+1 < len(l.segments) && l.segments[n+1].bytes > 0 && l.segments[n+1].start.sequence <= seq && l.segments[n].start.frame < oldest {
		n++
	}
	return n
}

func (l *Log) dropOldest() error {
	if err := l.disk.remove(l.segments[0].path); err != nil {
		return err
	}
	l.mu.Lock()
	l.segments = l.segments[1:]
	l.mu.Unlock()
	return l.disk.syncDir(l.dir)
}
