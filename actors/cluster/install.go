package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tasard/tasard/wal"
)

// lockDir locks the data directory for this process. Package wal locks the log too, but only while the log is open,
// and replaceLog closes the log for a while.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = wal.ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// unlockDir releases the lock explicitly. Closing the file is not enough, because a child process that is just being
// started may have a copy of the file descriptor.
func unlockDir(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// incomingName is a backup of another node in the data directory, until install has made this node's log of it.
const incomingName = "incoming.backup"

// receiveBackup writes a backup to DIR/incoming.backup if it is undamaged and has the records up to a sequence. It does
// not change the log in dir.
func receiveBackup(dir string, backup io.Reader, sequence uint64) error {
	path := filepath.Join(dir, incomingName)
	return wal.CreateFile(path,
		func(file io.Writer) error {
			_, err := io.Copy(file, backup)
			return err
		},
		func(file io.Reader) error {
			r, err := wal.OpenBackup(file, "backup of another node")
			if err != nil {
				return err
			}
			defer r.Close()
			if r.Info.Sequence < sequence {
				return fmt.Errorf("its state is after record %d, this node needs %d", r.Info.Sequence, sequence)
			}
			_, err = io.Copy(io.Discard, r)
			return err
		})
}

// install replaces the log in dir by the state in DIR/incoming.backup. Without this file it does nothing. After a crash
// at any point the next call completes the replacement. The log must not be open.
func install(dir string) error {
	incomplete, err := filepath.Glob(filepath.Join(dir, "."+incomingName+".*"))
	for _, path := range incomplete {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("remove an incomplete backup of another node: %w", err)
	}
	path := filepath.Join(dir, incomingName)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(restore(dir, file, path), file.Close())
	}
	if err == nil {
		err = errors.Join(os.Remove(path), syncDir(dir))
	}
	if err != nil {
		return fmt.Errorf("install the state of another node: %w", err)
	}
	return nil
}

func restore(dir string, file io.Reader, name string) error {
	r, err := wal.OpenBackup(file, name)
	if err != nil {
		return err
	}
	defer r.Close()
	return wal.Replace(dir, r.Info.Sequence, func(state io.Writer) error {
		_, err := io.Copy(state, r)
		return err
	})
}

// backupTimeout limits the wait for the next part of a backup, at both ends.
const backupTimeout = 10 * time.Second

// sendBackup answers a kindBackupRequest with a backup of this node's state, to one node at a time. Nothing may follow
// on the connection.
func (c *Cluster) sendBackup(conn *tls.Conn) {
	err := errors.New("this node has no state yet, or is sending it to another node")
	if backup := c.backup.Load(); backup != nil && c.sending.TryLock() {
		setLimit(conn, backupTimeout)
		err = (*backup)(conn)
		c.sending.Unlock()
	}
	if err != nil {
		c.transport.log.write("backup", slog.LevelWarn, "state not sent to another node", "cause", err.Error())
	}
}

// fetchBackup receives a backup of another node with the records up to a sequence. It tries one node after the other
// until it succeeds or ctx ends.
func (c *Cluster) fetchBackup(ctx context.Context, sequence uint64) error {
	for {
		sources, err := c.peers.backupSources(c.self.Load().Stream)
		for _, source := range sources {
			if err = c.fetchBackupFrom(ctx, source.Name, source.Address, sequence); err == nil {
				return nil
			}
			c.transport.log.write("state of "+source.Name, slog.LevelWarn, "state not received", "from", source.Name, "cause", err.Error())
		}
		if ctxErr := sleep(ctx, joinRetryInterval); ctxErr != nil {
			return fmt.Errorf("%w; the last answer: %w", ctxErr, err)
		}
	}
}

func (c *Cluster) fetchBackupFrom(ctx context.Context, name, address string, sequence uint64) error {
	conn, err := c.transport.dial(ctx, name, address)
	if err != nil {
		return err
	}
	defer c.transport.end(conn)
	if _, err := conn.Write(encodeMessage(kindBackupRequest, nil)); err != nil {
		return err
	}
	setLimit(conn, backupTimeout)
	return receiveBackup(c.config.Dir, conn, sequence)
}
