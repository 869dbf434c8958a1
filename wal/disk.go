package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// disk is every operation of this package that changes the directory, but for the appends of the
// library. Tests replace single ones to let them fail, or to copy the directory before each.
type disk struct {
	sync          func(*os.File) error
	syncDir       func(dir string) error
	rename        func(from, to string) error
	remove        func(path string) error
	truncate      func(f *os.File, size int64) error
	write         func(f *os.File, data []byte, offset int64) error
	freeBytes     func(dir string) (int64, error) // bytes that this process may still write
	dropPageCache func(*os.File) error            // has the next read see the disk, where the system can do that
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
		freeBytes:     freeSpace,
		dropPageCache: dropPageCache,
	}
}

// tailSegments is how many segments may hold frames that were never synced: the one that was written, and an empty one behind it.
const tailSegments = 2

// rereadTail has the scan see what the disk holds of the end of the log. The sync of the process before may have failed: then
// the kernel still shows what it could not write, takes it for written, and reports success for every later sync. A log
// that is built upon that is gone after a power cut, with all that was acknowledged since. So what can be written is
// written first, and then the kernel is made to read again.
func (d *disk) rereadTail(dir string) error {
	found, err := listDir(dir)
	if err != nil {
		return err
	}
	for _, segment := range found.segments[max(0, len(found.segments)-tailSegments):] {
		if err := d.reread(segment.path); err != nil {
			return fmt.Errorf("settle the end of the log: %w", err)
		}
	}
	return nil
}

func (d *disk) reread(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := d.sync(f); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return d.dropPageCache(f)
}

// syncDir makes the names in dir durable: a created, renamed or removed file may come back, or be gone,
// after a power cut until its directory was synced.
func syncDir(dir string) (err error) {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

func freeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// buffered answers ErrNoSpace when writing need bytes into dir would leave less than the reserve.
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

// fileWriter writes a file from its start on, and looks at the free space of dir before each piece, unless the reserve is negative.
type fileWriter struct {
	file    *os.File
	disk    *disk
	dir     string
	reserve int64
	size    int64
}

// Write is io.Writer.
func (w *fileWriter) Write(p []byte) (int, error) {
	if err := w.disk.checkSpace(w.dir, w.reserve, int64(len(p))); err != nil {
		return 0, err
	}
	if err := w.disk.write(w.file, p, w.size); err != nil {
		return 0, err
	}
	w.size += int64(len(p))
	return len(p), nil
}

// makeDir creates dir and its parents and makes their names durable.
func (d *disk) makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("create log directory: %s is a file: %w", dir, unix.ENOTDIR)
		}
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create log directory: %w", err)
	}
	// Which parents were new is not known; syncing one too many costs nothing, one too few a log.
	for at := dir; ; at = filepath.Dir(at) {
		if err := d.syncDir(at); err != nil && !errors.Is(err, fs.ErrPermission) {
			return errors.Join(err, d.remove(dir)) // the next start would find it, and not sync it
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// saveCopy writes data durably into a new file whose name begins with path and says why and when.
func (d *disk) saveCopy(path, why string, at time.Time, data []byte) (name string, err error) {
	name, err = asideName(path, why, at)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := d.write(f, data, 0); err != nil {
		return "", fmt.Errorf("keep %d bytes in %s: %w", len(data), name, err)
	}
	if err := d.sync(f); err != nil {
		return "", fmt.Errorf("sync %s: %w", name, err)
	}
	return name, d.syncDir(filepath.Dir(name))
}

// truncated makes the file size bytes long, durably.
func (d *disk) truncateFile(path string, size int64) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := d.truncate(f, size); err != nil {
		return fmt.Errorf("cut %s to %d bytes: %w", path, size, err)
	}
	if err := d.sync(f); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return d.syncDir(filepath.Dir(path))
}

// moveAside renames a file so that the log no longer sees it, and keeps its bytes.
func (d *disk) moveAside(path, why string, at time.Time) (string, error) {
	name, err := asideName(path, why, at)
	if err != nil {
		return "", err
	}
	if err := d.rename(path, name); err != nil {
		return "", err
	}
	return name, d.syncDir(filepath.Dir(path))
}

// asideMax bounds the search for a free name; more files of one moment mean that something loops.
const asideMax = 1000

// asideName finds a name that is not taken: two files may be put aside in one tick of the clock.
func asideName(path, why string, at time.Time) (string, error) {
	base := path + "." + why + "-" + at.UTC().Format("20060102T150405.000000000Z")
	name := base
	for i := 1; i < asideMax; i++ {
		_, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", base, i)
	}
	return "", fmt.Errorf("find a name for %s: %d are taken", base, asideMax)
}
