package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNotEmpty means that the directory for a new log contains files.
var ErrNotEmpty = errors.New("the directory is not empty")

// Create creates a log in dir, which must be missing or empty. It locks dir meanwhile. The log begins with a snapshot
// of the state after record number sequence, and contains no records yet. write writes the state; if sequence is 0, its
// output is discarded.
//
// Create first writes and syncs a high-water mark for a log that ends at sequence. Every command refuses such a log
// without the snapshot, so an incomplete directory is never used, even after a crash. After an error Create removes
// everything that it created. Errors: ErrNotEmpty, ErrLocked, and errors of the disk and of write.
func Create(dir string, o Options, sequence uint64, write func(io.Writer) error) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	d := &newDirectory{disk: o.disk, sequence: sequence}
	var lockFile *os.File
	if d.dir, lockFile, err = lockDir(dir, d.prepare); err == nil {
		err = d.fill(write)
	}
	if err = errors.Join(err, unlock(lockFile)); err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	return nil
}

// Replace replaces the log in dir by a new one, which begins like that of Create with a sequence that the old log does
// not reach. It keeps the other files of dir. After an error or a crash the directory has the old log, or every command
// refuses it until another Replace completes the new one.
func Replace(dir string, sequence uint64, write func(io.Writer) error) error {
	return replace(dir, realDisk(), sequence, write)
}

func replace(dir string, disk *disk, sequence uint64, write func(io.Writer) error) error {
	dir, lockFile, err := lockDir(dir, disk.makeDir)
	if err == nil {
		d := &newDirectory{dir: dir, disk: disk, sequence: sequence}
		err = d.writeLog(write)
	}
	if err = errors.Join(err, unlock(lockFile)); err != nil {
		return fmt.Errorf("replace log: %w", err)
	}
	return nil
}

// CheckEmpty returns nil if Create would accept dir (missing or empty). It changes nothing.
func CheckEmpty(dir string) error {
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

// newDirectory is a directory in which Create makes a log.
type newDirectory struct {
	dir      string
	disk     *disk
	sequence uint64 // of the snapshot
	created  bool   // the directory was missing
}

// prepare creates the directory, unless it is there and empty.
func (d *newDirectory) prepare(dir string) error {
	if err := CheckEmpty(dir); err != nil {
		return err
	}
	_, err := os.Lstat(dir)
	d.created = errors.Is(err, fs.ErrNotExist)
	return d.disk.makeDir(dir)
}

// fill makes the log. After an error it removes everything.
func (d *newDirectory) fill(write func(io.Writer) error) error {
	entries, err := os.ReadDir(d.dir) // another process may have created files between CheckEmpty and the lock
	if err == nil && len(entries) > 1 {
		err = fmt.Errorf("%s: %w", d.dir, ErrNotEmpty)
	}
	if err != nil {
		return err
	}
	if err := d.writeLog(write); err != nil {
		return errors.Join(err, d.removeAll())
	}
	return nil
}

// writeLog writes the high-water mark, the snapshot and an empty segment, in this order. Before the snapshot it removes
// the files of an earlier log. Then it verifies the directory like Open.
func (d *newDirectory) writeLog(write func(io.Writer) error) error {
	first := position{frame: d.sequence + 1, sequence: d.sequence + 1}
	err := writeMark(d.dir, d.disk, mark{first: first.frame, end: first})
	if err == nil {
		err = d.removeEarlier()
	}
	switch {
	case err != nil:
	case d.sequence == 0:
		err = write(io.Discard)
	default:
		err = d.disk.createFile(snapshotPath(d.dir, d.sequence), func(out *fileWriter) error {
			return errors.Join(encodeSnapshot(out, d.sequence, write))
		})
	}
	if err == nil {
		err = d.disk.createFile(segmentPath(d.dir, first.frame), noContent)
	}
	if err == nil {
		_, err = examine(d.dir, nil)
	}
	return err
}

// removeEarlier removes the segments and snapshots of an earlier log.
func (d *newDirectory) removeEarlier() error {
	paths, err := Files(d.dir)
	for _, path := range paths {
		if filepath.Base(path) != markName {
			err = errors.Join(err, d.disk.remove(path))
		}
	}
	if len(paths) > 1 {
		err = errors.Join(err, d.disk.syncDir(d.dir))
	}
	return err
}

// removeAll removes everything that was created. The high-water mark is removed nearly last: as long as it exists, all
// commands refuse the directory.
func (d *newDirectory) removeAll() error {
	paths := []string{segmentPath(d.dir, d.sequence+1), snapshotPath(d.dir, d.sequence), filepath.Join(d.dir, markName), filepath.Join(d.dir, lockName)}
	if d.created {
		paths = append(paths, d.dir)
	}
	var result error
	for _, path := range paths {
		if err := d.disk.remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			result = errors.Join(result, err)
		}
	}
	if result == nil {
		return nil
	}
	return fmt.Errorf("remove the files of a log that could not be completed: %w", result)
}

// CreateFile creates a file: fill writes it, and check reads it back. The file appears at path only when it is
// complete and durable. If path exists, the error is fs.ErrExist. After an error of fill or check no file remains.
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

// publishNew renames a file without replacing an existing one. On a file system without hard links it first checks for
// an existing file, then renames.
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
