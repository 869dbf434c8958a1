package cluster

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tasard/tasard/wal"
)

const (
	incomingPartialName = "incoming.part"
	incomingName        = "incoming"
	installName         = "install"
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

// archiveEnd is the name of the empty file that ends an archive. An archive without this file is truncated.
const archiveEnd = "end"

// packLog writes the files of the log in dir as a tar archive. The log may be in use.
func packLog(dir string, out io.Writer) error {
	w := tar.NewWriter(out)
	err := wal.CopyFiles(dir, func(name string, bytes int64, data io.Reader) error {
		err := w.WriteHeader(&tar.Header{Name: name, Size: bytes, Mode: 0o600})
		if err == nil {
			_, err = io.Copy(w, data)
		}
		return err
	})
	if err == nil {
		err = w.WriteHeader(&tar.Header{Name: archiveEnd, Mode: 0o600})
	}
	return errors.Join(err, w.Close())
}

// receiveLog unpacks the log of another node into DIR/incoming, where DIR is this node's data directory, and verifies
// it. It does not change the log in DIR.
func receiveLog(c *Config, archive io.Reader) (wal.Report, error) {
	partial, complete := filepath.Join(c.Dir, incomingPartialName), filepath.Join(c.Dir, incomingName)
	if err := os.RemoveAll(partial); err != nil {
		return wal.Report{}, err
	}
	err := unpackLog(archive, partial)
	var report wal.Report
	if err == nil {
		report, err = wal.Verify(partial)
	}
	if err != nil {
		return report, errors.Join(err, os.RemoveAll(partial))
	}
	if err := os.Rename(partial, complete); err != nil {
		return report, err
	}
	return report, syncDir(c.Dir)
}

// unpackLog writes the files of an archive, durably.
func unpackLog(archive io.Reader, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	r := tar.NewReader(archive)
	for {
		header, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case header.Name == archiveEnd:
			return syncDir(dir)
		}
		f, err := os.OpenFile(filepath.Join(dir, filepath.Base(header.Name)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.CopyN(f, r, header.Size)
		if err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}

// install replaces the log in DIR by the copy of a log in DIR/incoming. If there is no such copy, it does nothing.
// After a crash at any point the next call completes the replacement. The log must not be open.
func install(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, incomingPartialName)); err != nil {
		return fmt.Errorf("remove an incomplete copy: %w", err)
	}
	complete, installing := filepath.Join(dir, incomingName), filepath.Join(dir, installName)
	if exists(complete) {
		if err := removeLog(dir); err != nil {
			return fmt.Errorf("remove the replaced log: %w", err)
		}
		if err := os.Rename(complete, installing); err != nil {
			return err
		}
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	if !exists(installing) {
		return nil
	}
	if err := moveLog(installing, dir); err != nil {
		return fmt.Errorf("install the log of another node: %w", err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

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

// moveLog moves the files of a log. It first moves the high-water mark, a file with the sequence of the newest record.
// Until the records up to this sequence are in the same directory, wal.Open returns an error.
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

const (
	transfersMax = 2 // maximum number of concurrent transfers from this node
	chunkBytes   = 256 << 10
	chunkTimeout = 10 * time.Second // maximum wait for a chunk
)

// sendLog answers a kindLogRequest with an archive of this node's log. Nothing may follow on the connection.
func (c *Cluster) sendLog(conn *timedConn) {
	err := errors.New("this node is sending its log to other nodes already")
	select {
	case c.transfers <- struct{}{}:
		defer func() { <-c.transfers }()
		if err = errors.New("this node has no complete log yet"); c.Journal() != nil {
			conn.limit = chunkTimeout
			out := bufio.NewWriterSize(conn, chunkBytes)
			err = errors.Join(packLog(c.config.Dir, out), out.Flush())
		}
	default:
	}
	if err != nil {
		c.logger.Warn("log not sent to another node", "cause", err.Error())
	}
}

// fetchLog copies the log of another node into DIR/incoming, where DIR is this node's data directory. It tries one
// node after the other until it succeeds or ctx ends.
func (c *Cluster) fetchLog(ctx context.Context) (wal.Report, error) {
	for {
		sources, err := c.peers.backupSources(c.self.Load().Stream)
		for _, source := range sources {
			var info wal.Report
			if info, err = c.fetchLogFrom(ctx, source.Name, source.Address); err == nil {
				return info, nil
			}
			c.logger.Warn("log not received", "from", source.Name, "cause", err.Error())
		}
		if ctxErr := sleep(ctx, joinRetryInterval); ctxErr != nil {
			return wal.Report{}, fmt.Errorf("%w; the last answer: %w", ctxErr, err)
		}
	}
}

func (c *Cluster) fetchLogFrom(ctx context.Context, name, address string) (wal.Report, error) {
	conn, err := c.transport.dial(ctx, name, address)
	if err != nil {
		return wal.Report{}, err
	}
	defer c.transport.end(conn)
	if _, err := conn.Write(encodeMessage(kindLogRequest, nil)); err != nil {
		return wal.Report{}, err
	}
	conn.limit = chunkTimeout
	return receiveLog(&c.config, bufio.NewReaderSize(conn, chunkBytes))
}
