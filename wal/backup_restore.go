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

// RestoreBackup writes the contents of a backup to dir, which must be missing or empty. It locks dir meanwhile. It
// first writes and syncs the high-water mark, which names the end of the log. Every command refuses a log that ends
// before its mark, so a half-restored directory is never used, even after a crash. After an error RestoreBackup removes
// everything that it created. Errors: *DamageError, *FormatError, ErrNotEmpty, ErrLocked, and errors of the disk, of
// reading and of visit.
func RestoreBackup(file io.Reader, name, dir string, o Options, visit BackupVisitor) (BackupInfo, error) {
	o, err := o.withDefaults()
	if err != nil {
		return BackupInfo{}, err
	}
	var target *restoreTarget
	if dir, err = filepath.Abs(dir); err == nil {
		target, err = beginRestore(dir, o.disk)
	}
	if err != nil {
		return BackupInfo{}, fmt.Errorf("restore: %w", err)
	}
	info, err := readArchive(file, name, &backupReader{visit: visit, target: target})
	if err == nil {
		err = target.verify(info)
	}
	if err != nil {
		err = errors.Join(err, target.removeAll())
	}
	if err = errors.Join(err, unlock(target.lock)); err != nil {
		return info, fmt.Errorf("restore: %w", err)
	}
	return info, nil
}

// Create creates a log in dir, which must be missing or empty. The log begins with a snapshot of the state after the
// record with the number sequence, and has no records yet. The snapshot file is the content of state. As RestoreBackup
// does, Create first writes the high-water mark, and after an error removes everything that it created.
func Create(dir string, o Options, sequence uint64, state io.Reader) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	var target *restoreTarget
	if dir, err = filepath.Abs(dir); err == nil {
		target, err = beginRestore(dir, o.disk)
	}
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	first := position{frame: sequence + 1, sequence: sequence + 1}
	if err = target.writeMark(mark{first: first.frame, end: first}); err == nil {
		err = target.writeFile(filepath.Base(snapshotPath(dir, sequence)), func(w io.Writer) error {
			return errors.Join(encodeSnapshot(w, sequence, func(w io.Writer) error {
				_, err := io.Copy(w, state)
				return err
			}))
		})
	}
	if err == nil {
		err = target.writeFile(filepath.Base(segmentPath(dir, first.frame)), func(io.Writer) error { return nil })
	}
	if err != nil {
		err = errors.Join(err, target.removeAll())
	}
	if err = errors.Join(err, unlock(target.lock)); err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	return nil
}

// CheckRestore returns nil if RestoreBackup would accept dir, because it is missing or empty. It changes nothing.
func CheckRestore(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(entries) == 0 {
		return err
	}
	lockFile, err := lockShared(dir) // if the directory is in use, ErrLocked says more than ErrNotEmpty
	if err == nil {
		err = errors.Join(fmt.Errorf("%s: %w", dir, ErrNotEmpty), unlock(lockFile))
	}
	return err
}

// restoreTarget is the directory of a restore. A nil *restoreTarget discards what is written to it.
type restoreTarget struct {
	dir     string
	disk    *disk
	lock    *os.File
	created []string // paths, oldest first; dir itself is one of them if it was created
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
	lockFile, err := lock(dir)
	if err != nil {
		return nil, err
	}
	r.lock, r.created = lockFile, append(r.created, filepath.Join(dir, lockName))
	// Another process may have created files between CheckRestore and the lock.
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 1 {
		err = fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	if err != nil {
		return nil, errors.Join(err, unlock(lockFile))
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

// writeFile creates a file, fills it and syncs it.
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

// verify verifies the restored directory as Open does, and checks that it ends where the backup ends.
func (r *restoreTarget) verify(info BackupInfo) error {
	x, err := examine(r.dir, nil)
	if err == nil && (x.log.last() != info.Last || x.snapshotSequence() != info.Snapshot || x.log.torn > 0) {
		err = fmt.Errorf("%s has records up to %d and a snapshot at %d, the backup up to %d and %d",
			r.dir, x.log.last(), x.snapshotSequence(), info.Last, info.Snapshot)
	}
	return err
}

// removeAll removes everything that was created, newest first. The high-water mark was created early, so it is removed
// late. Until then all commands refuse the directory.
func (r *restoreTarget) removeAll() error {
	var result error
	for _, path := range slices.Backward(r.created) {
		if err := r.disk.remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			result = errors.Join(result, err)
		}
	}
	if result == nil {
		return nil
	}
	return fmt.Errorf("remove the partly restored files: %w", result)
}

// CreateFile creates a file: fill writes it, and check reads it back. The file appears at path only when it is complete
// and durable. If path exists, the error is fs.ErrExist. After an error of fill or check no file remains.
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
		if removeErr := os.Remove(temp.Name()); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
		return err
	}
	return syncDir(filepath.Dir(path))
}

// publishNew renames a file without replacing an existing one. On a file system without hard links it checks for an
// existing file first and then renames.
func publishNew(oldPath, newPath string) error {
	err := os.Link(oldPath, newPath)
	switch {
	case err == nil:
		return os.Remove(oldPath)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
		if _, err := os.Lstat(newPath); err == nil {
			return fmt.Errorf("%s: %w", newPath, fs.ErrExist)
		}
		return os.Rename(oldPath, newPath)
	}
	return err
}
