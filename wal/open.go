package wal

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	tidwall "github.com/tidwall/wal"
)

// Recovery reports what Open found and changed.
type Recovery struct {
	Report
	TornFile         string // copy of the torn tail (an incomplete last write)
	SnapshotSequence uint64 // number of the newest undamaged snapshot's last record; 0 = no snapshot
}

// Open verifies every byte of the log in dir and opens it for this process. It creates dir if missing. It moves a torn
// tail of the last segment to a file beside it. For any other damage it returns a *DamageError and changes nothing on
// disk. Other errors: ErrLocked, *FormatError, and errors of the disk.
func Open(dir string, o Options) (l *Log, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	dir, lockFile, err := lockDir(dir, o.disk.makeDir)
	if err == nil {
		l, err = openLocked(dir, o)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log: %w", err), unlock(lockFile))
	}
	l.lock = lockFile
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
	r := Recovery{Report: x.report(), SnapshotSequence: x.snapshotSequence()}
	if err := cleanUp(dir, o, &x, &r); err != nil {
		return nil, err
	}
	l := &Log{dir: dir, options: o, disk: o.disk, next: x.log.next, segments: x.log.segments, snapshots: x.snapshots, recovery: r}
	l.stats.Syncs = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "tasard_log_sync_duration_seconds", Help: "Time of the disk to make a batch durable.",
		// from a battery-backed cache to a very slow disk
		Buckets: []float64{5e-05, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5},
	})
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
		return nil, err // l.store stays open, because closing it would sync again (see Close)
	}
	for _, d := range x.damagedSnapshots() {
		o.Logger.Warn("damaged snapshot skipped, the log has its records", "snapshot", r.SnapshotSequence, "cause", d.Error())
	}
	return l, nil
}

// openStore opens the verified segments with tidwall/wal and syncs them. If the previous process was killed, some
// records may be only in the page cache. This process has already read them, so a power cut must not lose them.
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
	return err // after an error l.store stays open (see Close)
}

// cleanUp removes unfinished snapshots and cuts off the torn tail. After a crash in cleanUp, the next Open repeats it.
// At worst it saves the same tail twice.
func cleanUp(dir string, o Options, x *examination, r *Recovery) error {
	for _, temp := range x.files.temps {
		if err := o.disk.remove(temp); err != nil {
			return err
		}
	}
	if len(x.files.temps) > 0 {
		if err := o.disk.syncDir(dir); err != nil {
			return err
		}
	}
	if x.log.torn == 0 {
		return nil
	}
	path, end := x.log.end()
	var err error
	r.TornFile, err = cutTail(o, "torn", path, end)
	return err
}

// cutTail saves the bytes of a segment (log file) from offset on in a file beside it, and truncates the segment there.
func cutTail(o Options, reason, path string, offset int64) (saved string, err error) {
	tail, err := readFrom(path, offset, segmentFileBytesMax)
	if err == nil {
		saved, err = asideName(path, reason, o.Clock())
	}
	if err == nil {
		err = o.disk.createFile(saved, func(out *fileWriter) error {
			_, err := out.Write(tail)
			return err
		})
	}
	if err != nil {
		return "", err
	}
	return saved, withFile(path, os.O_WRONLY, func(f *os.File) error {
		if err := o.disk.truncate(f, offset); err != nil {
			return err
		}
		return o.disk.syncNew(f)
	})
}

// readFrom reads at most limit bytes of a file from offset on.
func readFrom(path string, offset, limit int64) (data []byte, err error) {
	err = withFile(path, fileRead, func(f *os.File) error {
		data, err = io.ReadAll(io.NewSectionReader(f, offset, limit))
		return err
	})
	return data, err
}
