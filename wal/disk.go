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

// fileWriter writes a file from its start and checks the free space of dir before each write.
type fileWriter struct {
	file    *os.File
	disk    *disk
	dir     string
	reserve int64 // bytes that must remain free (see checkSpace)
	size    int64
}

// Write implements io.Writer.
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

// saveCopy writes data durably to a new file with a name from asideName.
func (d *disk) saveCopy(path, reason string, now time.Time, data []byte) (name string, err error) {
	if name, err = asideName(path, reason, now); err != nil {
		return "", err
	}
	err = withFile(name, fileCreate, func(f *os.File) error {
		if err := d.write(f, data, 0); err != nil {
			return err
		}
		return d.syncNew(f)
	})
	return name, err
}

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
