package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const lockName = "LOCK"

// lock takes the directory for this process alone. The kernel lets go when the file is closed or the
// process ends, so no lock is ever left behind. The file stays: removing it would let two processes
// hold locks on two files of the same name.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return flock(f, dir, unix.LOCK_EX)
}

// lockShared keeps writers out while a tool reads, and changes nothing. A directory without a lock file
// is a copy that nobody writes: then the file is nil.
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
		return nil, fmt.Errorf("lock %s: %w", dir, ErrLocked)
	}
	return nil, fmt.Errorf("lock %s: %w", dir, err)
}

// unlock releases a lock; nil is the lock of a copy. Closing alone would not do: a process that is being started at this
// moment holds a copy of every descriptor until it becomes another program, and with it the lock.
func unlock(f *os.File) error {
	if f == nil {
		return nil
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
		return errors.Join(fmt.Errorf("unlock: %w", err), f.Close())
	}
	return f.Close()
}
