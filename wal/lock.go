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
