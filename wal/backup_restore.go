package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// ErrNotEmpty means that the directory for a restore has files in it.
var ErrNotEmpty = errors.New("the directory is not empty")

// RestoreBackup fills dir, which must be missing or empty, with the contents of a backup. It is locked meanwhile. The
// mark is written first, durably: it names the end of the log, so every command refuses the directory until the last
// byte is there, also after a crash. After an error everything is removed again. Errors: *DamageError, *FormatError,
// ErrNotEmpty, ErrLocked, those of the disk, of reading and of the visitor.
func RestoreBackup(file io.Reader, name, dir string, o Options, visit BackupVisitor) (BackupInfo, error) {
	o, err := o.withDefaults()
	if err != nil {
		return BackupInfo{}, err
	}
	var into *restoreTarget
	if dir, err = filepath.Abs(dir); err == nil {
		into, err = beginRestore(dir, o.disk)
	}
	if err != nil {
		return BackupInfo{}, fmt.Errorf("restore: %w", err)
	}
	info, err := readArchive(file, name, &backupReader{visit: visit, target: into})
	if err == nil {
		err = into.verify(info)
	}
	if err != nil {
		err = errors.Join(err, into.removeAll())
	}
	if err = errors.Join(err, unlock(into.lock)); err != nil {
		return info, fmt.Errorf("restore: %w", err)
	}
	return info, nil
}

// CheckRestore returns nil if RestoreBackup would begin to fill dir. It changes nothing.
func CheckRestore(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(entries) == 0 {
		return err
	}
	held, err := lockShared(dir) // ErrLocked says more than ErrNotEmpty
	if err == nil {
		err = errors.Join(fmt.Errorf("%s: %w", dir, ErrNotEmpty), unlock(held))
	}
	return err
}

// restoreTarget fills a directory. A nil one writes nothing.
type restoreTarget struct {
	dir     string
	disk    *disk
	lock    *os.File
	created []string // paths in their order; the directory first if it was created
}

func beginRestore(dir string, d *disk) (*restoreTarget, error) {
	if err := CheckRestore(dir); err != nil {
		return nil, err
	}
	r := &restoreTarget{dir: dir, disk: d}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		r.created = append(r.created, dir)
	}
	if err := d.makeDir(dir); err != nil {
		return nil, err
	}
	held, err := lock(dir)
	if err != nil {
		return nil, err
	}
	r.lock, r.created = held, append(r.created, filepath.Join(dir, lockName))
	// Another process may have written between the check and the lock.
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 1 {
		err = fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	if err != nil {
		return nil, errors.Join(err, unlock(held))
	}
	return r, nil
}

func (r *restoreTarget) writeMark(m mark) error {
	if r == nil {
		return nil
	}
	r.created = append(r.created, filepath.Join(r.dir, markName))
	return writeMark(r.dir, r.disk, m)
}

// writeFile writes a file durably.
func (r *restoreTarget) writeFile(name string, fill func(io.Writer) error) error {
	if r == nil {
		return fill(io.Discard)
	}
	path := filepath.Join(r.dir, name)
	return withFile(path, fileCreate, func(f *os.File) error {
		r.created = append(r.created, path)
		if err := fill(&fileWriter{file: f, disk: r.disk, reserve: -1}); err != nil {
			return err
		}
		return r.disk.syncNew(f)
	})
}

// verify checks the whole directory, as Open would.
func (r *restoreTarget) verify(info BackupInfo) error {
	x, err := examine(r.dir, nil)
	if err == nil && (x.log.last() != info.Last || x.snapshotSequence() != info.Snapshot || x.log.torn > 0) {
		err = fmt.Errorf("%s has records up to %d and a snapshot at %d, the backup up to %d and %d",
			r.dir, x.log.last(), x.snapshotSequence(), info.Last, info.Snapshot)
	}
	return err
}

// removeAll removes everything that was created, the mark near the end: until then the directory is refused.
func (r *restoreTarget) removeAll() error {
	var failed error
	for _, path := range slices.Backward(r.created) {
		if err := r.disk.remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	if failed == nil {
		return nil
	}
	return fmt.Errorf("remove the partly restored files: %w", failed)
}

// CreateFile writes a new file with fill and reads it back with check. It appears under its name when it is whole and
// durable. If path exists the error is fs.ErrExist; after an error of fill or check nothing is left.
func CreateFile(path string, fill func(io.Writer) error, check func(io.Reader) error) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+tempSuffix) // readable only by its owner
	if err != nil {
		return err
	}
	err = fill(temp)
	if err == nil {
		err = temp.Sync()
	}
	if err == nil {
		_, err = temp.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = check(temp)
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = publishNew(temp.Name(), path)
	}
	if err != nil {
		if removed := os.Remove(temp.Name()); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
		return err
	}
	return syncDir(filepath.Dir(path))
}

// publishNew renames a file and never replaces another. It links where the file system can; elsewhere it looks before
// it renames.
func publishNew(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
		if _, err := os.Lstat(to); err == nil {
			return fmt.Errorf("%s: %w", to, fs.ErrExist)
		}
		return os.Rename(from, to)
	}
	return err
}
