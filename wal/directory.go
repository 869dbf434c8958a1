package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"
)

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
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return flock(f, dir, unix.LOCK_EX)
}

// lockShared takes the shared lock, which excludes writers. It changes nothing. Without a lock file, as in a copy, it
// locks nothing and returns nil.
func lockShared(dir string) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return flock(f, dir, unix.LOCK_SH)
}

func flock(f *os.File, dir string, how int) (*os.File, error) {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close() // nothing was written to it
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
