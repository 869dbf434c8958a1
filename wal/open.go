package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	tidwall "github.com/tidwall/wal"
)

// Recovery says what Open found and what it did about it: it cut the torn bytes, and removed what was unusable.
type Recovery struct {
	Report
	TornFile         string         // where the torn bytes are kept
	TornSequence     uint64         // sequence that the first cut record would have had
	SnapshotSequence uint64         // of the newest whole snapshot, 0 without one
	SnapshotDamage   []*DamageError // snapshots passed over because the log still holds what they covered
}

// Open opens the log in dir for this process alone, after it has verified every byte of it, and creates
// dir when it is absent. It cuts a torn tail of the last segment and keeps the bytes beside it. Any other
// damage is a *DamageError and changes nothing on disk. Other errors: ErrLocked, *FormatError, those of
// the disk.
func Open(dir string, o Options) (*Log, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := o.disk.makeDir(dir); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	held, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l, err := openLocked(dir, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log: %w", err), unlock(held))
	}
	l.lock = held
	return l, nil
}

func openLocked(dir string, o Options) (*Log, error) {
	if err := o.disk.rereadTail(dir); err != nil {
		return nil, err
	}
	x, err := examine(dir, nil)
	if err != nil {
		return nil, err
	}
	r := Recovery{Report: x.report(), SnapshotSequence: x.snapshotSequence(), SnapshotDamage: x.damagedSnapshots()}
	// From here on the directory is known to be whole but for what mend puts right.
	if err := cleanUp(dir, o, &x, &r); err != nil {
		return nil, err
	}
	l := &Log{dir: dir, options: o, disk: o.disk, next: x.log.next, segments: x.log.segments, snapshots: x.snapshots, recovery: r}
	if len(l.segments) == 0 {
		l.segments = []segment{{path: segmentPath(dir, origin.frame), start: origin}}
	}
	if err := l.openStore(); err != nil {
		return nil, err
	}
	m := x.mark
	m.end = x.log.next
	if x.markState == MarkLost {
		m.first = l.segments[0].start.frame
	}
	if l.markWriter, err = openMarkWriter(dir, o.disk, m); err != nil {
		return nil, err // the store stays open: closing it would sync once more, see Close
	}
	l.logRecovery()
	return l, nil
}

// openStore lets the library open the segments, now that nothing in them can make it fail, and makes
// durable what a killed process may have left in the page cache: a record that was read must not vanish.
func (l *Log) openStore() error {
	store, err := tidwall.Open(l.dir, &tidwall.Options{
		NoSync: true, SegmentSize: l.options.SegmentBytes, LogFormat: tidwall.Binary, SegmentCacheSize: 1,
		NoCopy: true, AllowEmpty: true, DirPerms: 0o700, FilePerms: 0o600,
	})
	if err != nil {
		return fmt.Errorf("open segments: %w", err)
	}
	l.store = store
	last, err := store.LastIndex()
	if err == nil && last != l.next.frame-1 {
		err = fmt.Errorf("the library found frame %d as the last, the scan %d", last, l.next.frame-1)
	}
	if err == nil {
		err = store.Sync()
	}
	if err == nil {
		err = l.disk.syncDir(l.dir)
	}
	if err != nil {
		return fmt.Errorf("open segments: %w", err) // the store stays open, see Close
	}
	return nil
}

// cleanUp removes unfinished snapshots and cuts the torn tail. A crash in between leaves a directory that
// needs the rest of it again; at worst the same tail is kept twice.
func cleanUp(dir string, o Options, x *examination, r *Recovery) error {
	for _, temp := range x.files.temps {
		if err := o.disk.remove(temp); err != nil {
			return fmt.Errorf("remove unfinished snapshot: %w", err)
		}
	}
	if len(x.files.temps) > 0 {
		if err := o.disk.syncDir(dir); err != nil {
			return err
		}
	}
	if x.log.tornTail == nil {
		return nil
	}
	r.TornSequence = x.log.tornTail.at.sequence
	var err error
	r.TornFile, err = cutTail(o, "torn", x.log.tornTail.path, x.log.tornTail.offset)
	return err
}

// cutTail keeps everything from the offset on in a file beside the segment and only then cuts it off.
func cutTail(o Options, why, path string, offset int64) (kept string, err error) {
	tail, err := readFrom(path, offset)
	if err != nil {
		return "", fmt.Errorf("read tail: %w", err)
	}
	if kept, err = o.disk.saveCopy(path, why, o.Clock(), tail); err != nil {
		return "", fmt.Errorf("keep tail: %w", err)
	}
	return kept, o.disk.truncateFile(path, offset)
}

func readFrom(path string, offset int64) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, segmentFileBytesMax))
}

// logRecovery writes what was not as a clean stop leaves it to the logger.
func (l *Log) logRecovery() {
	r := l.recovery
	if r.TornBytes > 0 {
		l.options.Logger.Warn("torn tail cut off", "bytes", r.TornBytes, "sequence", r.TornSequence, "kept", r.TornFile)
	}
	if r.AmbiguousTail {
		l.options.Logger.Warn("ambiguous tail: the mark cannot say whether records behind the end were acknowledged", "last", r.Last, "mark", string(r.Mark))
	}
	if r.Mark == MarkHalf {
		l.options.Logger.Warn("one slot of the mark was damaged, written anew", "last", r.Last)
	}
	for _, d := range r.SnapshotDamage {
		l.options.Logger.Warn("damaged snapshot passed over, the log holds what it covered", "snapshot", r.SnapshotSequence, "cause", d.Error())
	}
	for _, name := range r.UnfinishedSnapshots {
		l.options.Logger.Info("unfinished snapshot removed", "file", name)
	}
}
