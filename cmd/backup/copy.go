package backup

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/wal"
)

// Copy makes a copy of the data directory data in the new directory to. If a node is running, it gives the copy through
// its management socket, socket or the one in data; else the files are read.
func Copy(ctx context.Context, p *process.Process, data, socket, to string) (err error) {
	if err := datadir.RequireDir(data); err != nil {
		return err
	}
	packed, err := os.CreateTemp("", "tasard-copy-*"+backupSuffix)
	if err != nil {
		return exit.Errorf(exit.CannotWrite, "make a temporary copy: %w", err)
	}
	defer func() { err = errors.Join(err, packed.Close(), os.Remove(packed.Name())) }()
	b := &backupRun{process: p, options: &backupOptions{data: data, socket: socket}, counter: actors.NewBackupCounter()}
	switch err := b.write(ctx, packed); {
	case b.out.err != nil:
		return exit.Errorf(exit.CannotWrite, "make a temporary copy: %w", b.out.err)
	case err != nil:
		return err
	}
	if _, err := packed.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = wal.RestoreBackup(contextReader{ctx, packed}, data, to, wal.Options{Clock: p.Clock}, wal.BackupVisitor{})
	return restoreError(to, err)
}
