//go:build !nocluster

package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tasard/tasard/wal"
)

const (
	incomingPart = "incoming.part"
	incomingName = "incoming"
	installName  = "install"
	lockName     = "LOCK"
)

// lockDir locks the directory for this process. The local log's own lock does not suffice, because it is released
// while the log is replaced.
func lockDir(dir string) (*os.File, error) {
	place := filepath.Join(dir, streamDirName)
	if err := os.MkdirAll(place, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the stream: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(place, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the directory of the stream: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = wal.ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", place, err), f.Close())
	}
	return f, nil
}

// unlockDir releases the lock explicitly, because a child process that is being started may hold a copy of the
// descriptor.
func unlockDir(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// receiveBackup restores a backup into a directory beside the log, which is not touched.
func receiveBackup(c *Config, backup io.Reader, from string) (wal.BackupInfo, error) {
	part, whole := filepath.Join(c.Dir, incomingPart), filepath.Join(c.Dir, incomingName)
	if err := os.RemoveAll(part); err != nil {
		return wal.BackupInfo{}, err
	}
	info, err := wal.RestoreBackup(backup, "from "+from, part, c.Log, wal.BackupVisitor{})
	if err != nil {
		return info, errors.Join(err, os.RemoveAll(part))
	}
	if err := os.Rename(part, whole); err != nil {
		return info, err
	}
	return info, syncDir(c.Dir)
}

// install replaces the log by a received one, or finishes an interrupted replacement. Each step can be repeated. The
// log must not be open.
func install(c *Config) error {
	if err := os.RemoveAll(filepath.Join(c.Dir, incomingPart)); err != nil {
		return fmt.Errorf("remove an incomplete copy: %w", err)
	}
	whole, moving := filepath.Join(c.Dir, incomingName), filepath.Join(c.Dir, installName)
	if exists(whole) {
		if err := removeLog(c.Dir); err != nil {
			return fmt.Errorf("remove the replaced log: %w", err)
		}
		if err := os.Rename(whole, moving); err != nil {
			return err
		}
		if err := syncDir(c.Dir); err != nil {
			return err
		}
	}
	if !exists(moving) {
		return nil
	}
	if err := moveLog(moving, c.Dir); err != nil {
		return fmt.Errorf("install the log of another node: %w", err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// removeLog removes the files of a log.
func removeLog(dir string) error {
	files, err := wal.Files(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return syncDir(dir)
}

// moveLog moves the files of a log, the mark first: it says how far the log goes, so that every command rejects the
// directory until the last file is there.
func moveLog(from, to string) error {
	files, err := wal.Files(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Rename(f, filepath.Join(to, filepath.Base(f))); err != nil {
			return err
		}
		if err := syncDir(to); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(from); err != nil {
		return err
	}
	return syncDir(to)
}
