package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// disk contains every operation of this package that changes the log directory, except the appends of tidwall/wal.
// Tests replace operations to make them fail, or to copy the directory first.
type disk struct {
	sync          func(*os.File) error
	syncDir       func(dir string) error
	rename        func(oldPath, newPath string) error
	remove        func(path string) error
	truncate      func(f *os.File, size int64) error
	write         func(f *os.File, data []byte, offset int64) error
	freeBytes     func(dir string) (int64, error) // bytes that this process can still write
	dropPageCache func(*os.File) error            // does nothing on systems without such a call
}

func realDisk() *disk {
	return &disk{
		sync:     (*os.File).Sync,
		syncDir:  syncDir,
		rename:   os.Rename,
		remove:   os.Remove,
		truncate: (*os.File).Truncate,
		write: func(f *os.File, data []byte, offset int64) error {
			_, err := f.WriteAt(data, offset)
			return err
		},
		freeBytes:     FreeSpace,
		dropPageCache: dropPageCache,
	}
}

const (
	fileRead   = os.O_RDONLY
	fileCreate = os.O_WRONLY | os.O_CREATE | os.O_EXCL
)

func withFile(path string, flag int, use func(*os.File) error) error {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(use(f), f.Close())
}

// tailSegments is the number of segments (log files) that can contain unsynced frames (batches of records): the newest
// segment with frames, and an empty one after it.
const tailSegments = 2

// rereadTail syncs the end of the log and drops it from the page cache, so that Open reads what is on disk. After a
// failed sync in an earlier process, the kernel can return bytes that are not on disk, and report success for later
// syncs. A power cut would lose those bytes and every later record.
func (d *disk) rereadTail(dir string) error {
	files, err := listDir(dir)
	if err != nil {
		return err
	}
	for _, segment := range files.segments[max(0, len(files.segments)-tailSegments):] {
		err := withFile(segment.path, fileRead, func(f *os.File) error {
			if err := d.sync(f); err != nil {
				return err
			}
			return d.dropPageCache(f)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// syncDir syncs a directory. Without it, a power cut can undo the creation, renaming or removal of a file.
func syncDir(dir string) error {
	return withFile(dir, fileRead, (*os.File).Sync)
}

// FreeSpace returns the number of bytes that this process can still write on the file system of dir.
func FreeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("query the free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// checkSpace returns ErrNoSpace if writing need bytes into dir would leave less than reserve. A negative reserve
// disables the check.
func (d *disk) checkSpace(dir string, reserve, need int64) error {
	if reserve < 0 {
		return nil
	}
	free, err := d.freeBytes(dir)
	if err != nil {
		return err
	}
	if free-need < reserve {
		return fmt.Errorf("%w: %d bytes free in %s, %d needed beside a reserve of %d", ErrNoSpace, free, dir, need, reserve)
	}
	return nil
}

// makeDir creates dir and its missing parents durably.
func (d *disk) makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for parent := dir; ; parent = filepath.Dir(parent) { // any of them may be new
		if err := d.syncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return errors.Join(err, d.remove(dir)) // otherwise the next makeDir would find dir and not sync it
		}
		if parent == filepath.Dir(parent) {
			return nil
		}
	}
}

// createFile creates a file with this content. The file and its name are then durable.
func (d *disk) createFile(path string, content func(*fileWriter) error) error {
	return withFile(path, fileCreate, func(f *os.File) error {
		if err := content(&fileWriter{file: f, disk: d, reserve: -1}); err != nil {
			return err
		}
		return d.syncNew(f)
	})
}

func noContent(*fileWriter) error { return nil }

// syncNew syncs a new file and its directory.
func (d *disk) syncNew(f *os.File) error {
	if err := d.sync(f); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(f.Name()))
}

// moveAside renames a file to a name from asideName. The log then ignores the file, but its bytes are kept.
func (d *disk) moveAside(path, reason string, now time.Time) (string, error) {
	name, err := asideName(path, reason, now)
	if err != nil {
		return "", err
	}
	if err := d.rename(path, name); err != nil {
		return "", err
	}
	return name, d.syncDir(filepath.Dir(path))
}

// asideName returns an unused file name made of path, reason and time, plus a number if necessary.
func asideName(path, reason string, now time.Time) (string, error) {
	base := path + "." + reason + "-" + now.UTC().Format("20060102T150405.000000000Z")
	name := base
	for i := 1; ; i++ {
		_, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", base, i)
	}
}

const (
	indexDigits    = 20 // tidwall/wal names a segment (log file) by the number of its first frame (batch)
	snapshotPrefix = "snapshot-"
	tempSuffix     = ".tmp"
)

// fileNames matches segments, snapshots, and .START and .END files. tidwall/wal deletes segments when it finds a .START
// or .END file. Only methods that this package never calls create such files.
var fileNames = regexp.MustCompile(`^(snapshot-)?(\d{20})(\.tmp|\.START|\.END)?$`)

// numberedFile is a file with a number in its name: a segment with the number of its first frame, or a snapshot with
// the number of its last record.
type numberedFile struct {
	number uint64
	path   string
}

// listing is the files of a log directory, sorted by number.
type listing struct {
	mark      []string // path of the high-water mark's file; empty if missing
	segments  []numberedFile
	snapshots []numberedFile
	temps     []string // unfinished snapshots
	foreign   []string // files that make tidwall/wal delete segments
}

// listDir lists the files of the log in dir. It skips other files, such as those moved aside. If dir is missing, the
// listing is empty.
func listDir(dir string) (listing, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return listing{}, err
	}
	var l listing
	for _, e := range entries { // sorted by name and thus by number: all numbers have indexDigits digits
		l.add(filepath.Join(dir, e.Name()), e.Name(), e.Type().IsRegular())
	}
	return l, nil
}

func (l *listing) add(path, name string, regular bool) {
	if name == markName {
		l.mark = []string{path}
		return
	}
	m := fileNames.FindStringSubmatch(name)
	if m == nil {
		return
	}
	number, err := strconv.ParseUint(m[2], 10, 64)
	if err != nil {
		return
	}
	switch kind, valid := m[1]+m[3], regular && number > 0; {
	case kind == "" && valid:
		l.segments = append(l.segments, numberedFile{number, path})
	case kind == snapshotPrefix && valid:
		l.snapshots = append(l.snapshots, numberedFile{number, path})
	case kind == snapshotPrefix+tempSuffix:
		if regular {
			l.temps = append(l.temps, path)
		}
	case m[1] == "" && m[3] != tempSuffix, kind == snapshotPrefix:
		l.foreign = append(l.foreign, path)
	}
}

func segmentPath(dir string, index uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%0*d", indexDigits, index))
}

func snapshotPath(dir string, sequence uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%0*d", snapshotPrefix, indexDigits, sequence))
}

const lockName = "LOCK"

// lockDir prepares a directory and takes its exclusive lock. path is its absolute path.
func lockDir(dir string, prepare func(path string) error) (path string, lockFile *os.File, err error) {
	if path, err = filepath.Abs(dir); err == nil {
		err = prepare(path)
	}
	if err == nil {
		lockFile, err = lock(path)
	}
	return path, lockFile, err
}

// lock takes the exclusive lock of the directory. The kernel releases it when the process ends. The lock file is never
// removed. Otherwise two processes could each lock a different file of that name.
func lock(dir string) (*os.File, error) { return flock(dir, os.O_RDWR|os.O_CREATE, unix.LOCK_EX) }

// lockShared takes the shared lock, which excludes writers. It changes nothing. Without a lock file, as in a copy, it
// locks nothing and returns nil.
func lockShared(dir string) (*os.File, error) {
	f, err := flock(dir, fileRead, unix.LOCK_SH)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

func flock(dir string, flag, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), flag, 0o600)
	if err == nil {
		if err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err == nil {
			return f, nil
		}
		_ = f.Close() // nothing was written to it
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, fmt.Errorf("lock %s: %w", dir, err)
}

// unlock releases a lock. f may be nil. Closing the file would not be enough: between fork and exec a child process
// holds a copy of the descriptor, and with it the lock.
func unlock(f *os.File) error {
	if f == nil {
		return nil
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
		return errors.Join(fmt.Errorf("unlock: %w", err), f.Close())
	}
	return f.Close()
}
