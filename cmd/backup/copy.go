package backup

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/wal"
)

// Copy makes a copy of the data directory data in the new directory to. If a node is running, it gives a backup
// through its management socket, socket or the one in data; else the files are copied.
func Copy(ctx context.Context, p *process.Process, data, socket, to string) (err error) {
	if err := datadir.RequireDir(data); err != nil {
		return err
	}
	file, err := os.CreateTemp("", "tasard-copy-*"+backupSuffix)
	if err != nil {
		return exit.Errorf(exit.CannotWrite, "make a temporary copy: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	b := &backupRun{process: p, options: &backupOptions{data: data, socket: socket}}
	switch err := b.write(ctx, file, func(context.Context) error { return copyFiles(data, to) }); {
	case b.out.err != nil:
		return exit.Errorf(exit.CannotWrite, "make a temporary copy: %w", b.out.err)
	case err != nil:
		return err
	}
	if b.out.bytes == 0 {
		return nil // the files were copied
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, _, err = restoreBackup(p, contextReader{ctx, file}, data, to)
	return restoreError(to, err)
}

// copyFiles copies the log in the directory data, which no node uses.
func copyFiles(data, to string) error {
	if err := datadir.RequireLog(data); err != nil {
		return err
	}
	if _, err := wal.Verify(data); err != nil { // the Open of the copy would name its files
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return exit.Errorf(exit.CannotWrite, "make a temporary copy: %w", err)
	}
	return wal.WithSharedLock(data, func() error {
		return wal.CopyFiles(data, func(name string, _ int64, file io.Reader) error {
			out, err := os.OpenFile(filepath.Join(to, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return exit.Errorf(exit.CannotWrite, "make a temporary copy: %w", err)
			}
			_, err = io.Copy(out, file)
			return errors.Join(err, out.Close())
		})
	})
}
