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

// ErrNotEmpty says that a backup is not restored into a directory that has something in it.
var ErrNotEmpty = errors.New("the directory is not empty")

// RestoreBackup makes dir a data directory as it was when the backup was taken. dir must be absent or empty, and is held while it
// is filled. The mark comes first, durably: it says how far the log goes, so until the last byte is there the directory is refused
// as damaged, by every command and after any crash. When something goes wrong all that was made is removed again. Errors:
// *BackupError, ErrNotEmpty, ErrLocked, those of the disk, of reading and of the visitor.
func RestoreBackup(file io.Reader, name, dir string, o Options, visit BackupVisitor) (BackupInfo, error) {
	o, err := o.withDefaults()
	if err != nil {
		return BackupInfo{}, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return BackupInfo{}, fmt.Errorf("restore: %w", err)
	}
	into, err := beginRestore(dir, o.disk)
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

// CheckRestore is nil when RestoreBackup would begin to fill dir. It changes nothing.
func CheckRestore(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the directory: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	held, err := lockShared(dir) // who is there says more than that something is
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
	created []string // files, in the order in which they came; the directory first when it was made too
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
	// Somebody may have come between the look and the lock.
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 1 {
		err = fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	if err != nil {
		return nil, errors.Join(err, unlock(held))
	}
	return r, nil
}

// checkSegmentName writes the mark.
func (r *restoreTarget) writeMark(m mark) error {
	if r == nil {
		return nil
	}
	r.created = append(r.created, filepath.Join(r.dir, markName))
	w, err := openMarkWriter(r.dir, r.disk, m)
	if err != nil {
		return err
	}
	return w.file.Close()
}

// writeFile writes a file durably under its name.
func (r *restoreTarget) writeFile(name string, fill func(io.Writer) error) error {
	if r == nil {
		return fill(io.Discard)
	}
	path := filepath.Join(r.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	r.created = append(r.created, path)
	err = fill(&fileWriter{file: f, disk: r.disk, reserve: -1})
	if err == nil {
		err = r.disk.sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return r.disk.syncDir(r.dir)
}

// verify reads the directory once more, as a start would.
func (r *restoreTarget) verify(info BackupInfo) error {
	x, err := examine(r.dir, nil)
	if err == nil && (x.log.last() != info.Last || x.snapshotSequence() != info.Snapshot || x.log.tornTail != nil) {
		err = fmt.Errorf("%s has records up to %d and a snapshot at %d, the backup up to %d and %d",
			r.dir, x.log.last(), x.snapshotSequence(), info.Last, info.Snapshot)
	}
	return err
}

// removeAll removes what was made, the mark as late as can be: what is left is refused as long as it is there.
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
	return fmt.Errorf("remove what was restored in part: %w", failed)
}

// CreateFile makes a new file that appears under its name only when it is whole and durable: fill writes it, check reads it back.
// A file that is there already is an error (fs.ErrExist) and stays; when fill or check fails, nothing is left.
func CreateFile(path string, fill func(io.Writer) error, check func(io.Reader) error) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+tempSuffix) // which nobody else may read
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

// publishNew renames a file to a name that nobody has. A link never replaces; where there are none, a look before the rename
// must do.
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
