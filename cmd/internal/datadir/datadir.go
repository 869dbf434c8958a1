package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

// ExplainLogError explains an error of the log in the directory data. If another process uses the directory, it adds an
// exit code and advice.
func ExplainLogError(data string, err error) error {
	var damageErr *wal.DamageError
	switch {
	case errors.Is(err, wal.ErrLocked):
		return exit.Errorf(exit.Busy, "%s: a running node uses the directory; stop it, or use a copy", data)
	case errors.As(err, &damageErr):
		return damageErr // its message has the file, the offset and a hint
	}
	return err
}

// RequireLog returns an error if data is not a directory with a log.
func RequireLog(data string) error {
	if err := RequireDir(data); err != nil {
		return err
	}
	exists, err := wal.Exists(data)
	switch {
	case err != nil:
		return exit.Errorf(exit.NoInput, "open data directory: %w", err)
	case !exists:
		return exit.Errorf(exit.NoInput, "%s: not a data directory: it has no log", data)
	}
	return nil
}

// RequireDir returns an error if data is not a directory, or belongs to another user.
func RequireDir(data string) error {
	info, err := os.Stat(data)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return exit.Errorf(exit.NoInput, "%s: no such data directory", data)
	case err != nil && !errors.Is(err, fs.ErrPermission):
		return exit.Errorf(exit.NoInput, "open data directory: %w", err)
	case err == nil && !info.IsDir():
		return exit.Errorf(exit.NoInput, "%s: a file; want a data directory", data)
	}
	return node.CheckOwner(data, false)
}

// Open opens the data directory and waits until its log has been replayed. The directory is locked until Data.Close.
func Open(ctx context.Context, p *process.Process, c node.Config, log *slog.Logger) (*node.Data, error) {
	data, err := node.OpenData(ctx, p.CompleteConfig(c, log))
	return data, ExplainLogError(c.Dir, err)
}

// OpenCopy copies the data directory c.Dir to the new directory dir, and opens the copy. It does not change c.Dir. If a
// node is running there, the copy contains everything that the node has acknowledged.
func OpenCopy(ctx context.Context, p *process.Process, c node.Config, log *slog.Logger, dir string) (*node.Data, error) {
	if err := RequireLog(c.Dir); err != nil {
		return nil, err
	}
	if _, err := wal.Verify(c.Dir); err != nil { // otherwise errors would name files of the copy
		return nil, ExplainLogError(c.Dir, err)
	}
	for err, try := fs.ErrNotExist, 0; err != nil; try++ { // repeated if the node removes old files meanwhile
		if !errors.Is(err, fs.ErrNotExist) || try == copyTries {
			return nil, exit.Errorf(exit.CannotWrite, "make a temporary copy: %w", err)
		}
		if err = errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err == nil {
			err = wal.CopyFiles(c.Dir, func(name string, _ int64, content io.Reader) error {
				out, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the name of a file of the log
				if err == nil {
					_, err = io.Copy(out, content)
					err = errors.Join(err, out.Close())
				}
				return err
			})
		}
	}
	c.Dir = dir
	return Open(ctx, p, c, log)
}

const copyTries = 10

// States returns the saved states of all currencies, all after the same record of the log.
func States(ctx context.Context, system *actors.System) ([]engine.SavedCurrency, error) {
	var states []engine.SavedCurrency
	err := system.Export(ctx, func(state engine.SavedCurrency) error {
		states = append(states, state)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	return states, nil
}
