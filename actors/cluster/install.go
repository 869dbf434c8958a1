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
	incomingPartialName = "incoming.part"
	incomingName        = "incoming"
	installName         = "install"
	lockName            = "LOCK"
)

// lockDir locks the directory for this process. The lock of the local log is not enough, because it is released while
// the log is replaced.
func lockDir(dir string) (*os.File, error) {
	streamDir := filepath.Join(dir, streamDirName)
	if err := os.MkdirAll(streamDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the stream: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(streamDir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the directory of the stream: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = wal.ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", streamDir, err), f.Close())
	}
	return f, nil
}

// unlockDir releases the lock explicitly. Closing the file is not enough, because a child process that is being started
// may have a copy of the descriptor.
func unlockDir(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// receiveBackup restores a backup into the directory incoming. It does not change the log.
func receiveBackup(c *Config, backup io.Reader, node string) (wal.BackupInfo, error) {
	partial, complete := filepath.Join(c.Dir, incomingPartialName), filepath.Join(c.Dir, incomingName)
	if err := os.RemoveAll(partial); err != nil {
		return wal.BackupInfo{}, err
	}
	info, err := wal.RestoreBackup(backup, "from "+node, partial, c.Log, wal.BackupVisitor{})
	if err != nil {
		return info, errors.Join(err, os.RemoveAll(partial))
	}
	if err := os.Rename(partial, complete); err != nil {
		return info, err
	}
	return info, syncDir(c.Dir)
}

// install replaces the log by the one in the directory incoming, or completes an interrupted replacement. After a
// crash at any point it can be repeated. The log must not be open.
func install(c *Config) error {
	if err := os.RemoveAll(filepath.Join(c.Dir, incomingPartialName)); err != nil {
		return fmt.Errorf("remove an incomplete copy: %w", err)
	}
	complete, installing := filepath.Join(c.Dir, incomingName), filepath.Join(c.Dir, installName)
	if exists(complete) {
		if err := removeLog(c.Dir); err != nil {
			return fmt.Errorf("remove the replaced log: %w", err)
		}
		if err := os.Rename(complete, installing); err != nil {
			return err
		}
		if err := syncDir(c.Dir); err != nil {
			return err
		}
	}
	if !exists(installing) {
		return nil
	}
	if err := moveLog(installing, c.Dir); err != nil {
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

// moveLog moves the files of a log, first the high-water mark. The mark has the last sequence, so wal.Open rejects a
// directory that lacks records up to it.
func moveLog(src, dst string) error {
	files, err := wal.Files(src)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Rename(f, filepath.Join(dst, filepath.Base(f))); err != nil {
			return err
		}
		if err := syncDir(dst); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(src); err != nil {
		return err
	}
	return syncDir(dst)
}
