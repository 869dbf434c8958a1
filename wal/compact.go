package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// snapshotsKept is how many whole snapshots stay: the newest, and the one before it in case that is damaged.
const snapshotsKept = 2

// Snapshot returns the newest whole snapshot: the state after record sequence. All of the file was verified; the caller
// closes r. A damaged snapshot is skipped and logged while the log has all records after an older one, else it is a
// *DamageError. ok is false if there is no snapshot and the whole state is in the log.
func (l *Log) Snapshot() (sequence uint64, r io.ReadCloser, ok bool, err error) {
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
		f, payload, err := s.open()
		if err == nil {
			return s.sequence, newSnapshotReader(f, payload), true, nil
		}
		if !errors.As(err, &damage) {
			return 0, nil, false, err
		}
		l.options.Logger.Warn("damaged snapshot skipped", "cause", damage.Error())
	}
	if first > 1 && damage != nil {
		return 0, nil, false, damage
	}
	return 0, nil, false, nil
}

// WriteSnapshot stores the output of write as the state after record sequence, which must be on disk. It may run
// while Append runs. The file appears under its name when it is whole and durable; then all but one older snapshot
// are removed. If a whole snapshot of sequence exists, write is not called. After an error of write and after
// ErrNoSpace the log stays usable; a failed disk operation is ErrPoisoned.
func (l *Log) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	l.snapshotting.Lock()
	defer l.snapshotting.Unlock()
	done, err := l.checkSnapshot(sequence)
	if done || err != nil {
		return err
	}
	if err := l.disk.checkSpace(l.dir, l.options.ReserveBytes, 0); err != nil {
		return err
	}
	path := snapshotPath(l.dir, sequence)
	size, stateErr, err := l.writeTemp(path+tempSuffix, sequence, write)
	if err == nil && stateErr != nil {
		if err = l.disk.remove(path + tempSuffix); err == nil {
			return fmt.Errorf("write snapshot at %d: %w", sequence, stateErr)
		}
	}
	if err == nil {
		if err := l.usable(); err != nil {
			return err // an append failed meanwhile; the next Open removes the unfinished file
		}
		err = l.publish(snapshot{sequence: sequence, path: path, bytes: size, at: l.options.Clock().Round(0).UTC()})
	}
	if err != nil {
		return l.poison(fmt.Errorf("write snapshot at %d: %w", sequence, err))
	}
	return nil
}

// checkSnapshot checks that a snapshot at sequence can be written. done means that it exists.
func (l *Log) checkSnapshot(sequence uint64) (done bool, err error) {
	if err := l.usable(); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if sequence == 0 || sequence >= l.next.sequence {
		return false, fmt.Errorf("write snapshot at %d: the records on disk are 1 to %d", sequence, l.next.sequence-1)
	}
	for _, s := range l.snapshots {
		if s.damage == nil && s.sequence > sequence {
			return false, fmt.Errorf("write snapshot at %d: there is one at %d", sequence, s.sequence)
		}
		done = done || s.damage == nil && s.sequence == sequence
	}
	return done, nil
}

// writeTemp writes and syncs the file. stateErr is an error of write or ErrNoSpace, err a failed disk operation.
func (l *Log) writeTemp(path string, sequence uint64, write func(io.Writer) error) (size int64, stateErr, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, nil, err
	}
	out := &fileWriter{file: f, disk: l.disk, dir: l.dir, reserve: l.options.ReserveBytes}
	err, stateErr = encodeSnapshot(out, sequence, write)
	if errors.Is(err, ErrNoSpace) {
		err, stateErr = nil, err
	}
	if err == nil && stateErr == nil {
		err = l.disk.sync(f)
	}
	return out.size, stateErr, errors.Join(err, f.Close())
}

// publish renames the finished file, durably, then retires the snapshots that it replaces.
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

// retire moves damaged snapshots aside, removes all but the newest whole ones and returns the rest, ascending.
func (l *Log) retire(all []snapshot) ([]snapshot, error) {
	slices.SortFunc(all, func(a, b snapshot) int { return cmp.Compare(a.sequence, b.sequence) })
	var kept []snapshot
	for _, s := range slices.Backward(all) {
		var err error
		switch {
		case s.damage != nil:
			var name string
			if name, err = l.disk.moveAside(s.path, "damaged", l.options.Clock()); err == nil {
				l.options.Logger.Info("damaged snapshot moved aside", "saved", name)
			}
		case len(kept) >= snapshotsKept && !l.pinned(s.sequence):
			err = l.disk.remove(s.path)
		default:
			kept = append(kept, s)
		}
		if err != nil {
			return all, err
		}
	}
	slices.Reverse(kept)
	return kept, l.disk.syncDir(l.dir)
}

// DropBefore removes whole segments with only records before sequence. It keeps every record after the second-newest
// snapshot, in case the newest is damaged; with fewer than two snapshots it removes nothing. The writer calls it after
// WriteSnapshot.
//
// The library's TruncateFront is not used: its crash handling can lose segments. Here the mark first says, durably,
// which frames may be missing, and each removal is durable before the next, so the log is always one unbroken run of
// segments.
func (l *Log) DropBefore(sequence uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	n := l.droppable(sequence)
	if n == 0 {
		return nil
	}
	l.markWriter.mark.first = l.segments[n].start.frame
	if err := l.markWriter.writeSync(); err != nil {
		return l.poison(fmt.Errorf("drop records before %d: %w", sequence, err))
	}
	for range n {
		if err := l.dropOldest(); err != nil {
			return l.poison(fmt.Errorf("drop records before %d: %w", sequence, err))
		}
	}
	return nil
}

// droppable counts the segments at the front that may be removed.
func (l *Log) droppable(sequence uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := 0
	for _, s := range slices.Backward(l.snapshots) {
		if s.damage != nil {
			continue
		}
		if whole++; whole == snapshotsKept {
			sequence = min(sequence, s.sequence+1)
		}
	}
	if whole < snapshotsKept {
		return 0
	}
	oldest := l.next.frame // that a backup needs
	for _, p := range l.pins {
		oldest = min(oldest, p.firstFrame())
	}
	// The last segment with a frame stays: it holds the chain that the next frame continues.
	n := 0
	for n+1 < len(l.segments) && l.segments[n+1].bytes > 0 && l.segments[n+1].start.sequence <= sequence && l.segments[n].start.frame < oldest {
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
