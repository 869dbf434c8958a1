package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

// LogError puts what an operator can do beside the errors of the log.
func LogError(data string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wal.ErrLocked):
		return exit.Fail(exit.Busy, "%s: a running node holds the directory; stop it, or look at a copy", data)
	}
	var damage *wal.DamageError
	if errors.As(err, &damage) {
		return damage // one line with file, offset and hint
	}
	return err
}

// NeedLog is the error of a place that holds no data directory to look at. It changes nothing.
func NeedLog(data string) error {
	if err := Need(data); err != nil {
		return err
	}
	found, err := wal.Exists(data)
	switch {
	case err != nil:
		return exit.Fail(exit.NoInput, "look at the data directory: %w", err)
	case !found:
		return exit.Fail(exit.NoInput, "no data directory: there is no log in %s", data)
	}
	return nil
}

// Need is the error of a place that is no directory.
func Need(data string) error {
	info, err := os.Stat(data)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return exit.Fail(exit.NoInput, "no data directory: %s does not exist", data)
	case err != nil:
		return exit.Fail(exit.NoInput, "look at the data directory: %w", err)
	case !info.IsDir():
		return exit.Fail(exit.NoInput, "no data directory: %s is a file", data)
	}
	return nil
}

// Open opens the data directory and waits until its log is replayed.
func Open(ctx context.Context, p *process.Process, c node.Config, log *slog.Logger) (*node.Data, error) {
	opened, err := node.OpenData(ctx, p.Within(c, log))
	if errors.Is(err, wal.ErrLocked) {
		return nil, exit.Fail(exit.Busy, "%s: a running node holds the directory; stop it, or let it take a file in: tasard serve --import FILE", c.Dir)
	}
	return opened, err
}

// States are the books of all currencies at one moment.
func States(ctx context.Context, system *actors.System) ([]engine.BookState, error) {
	var states []engine.BookState
	err := system.Export(ctx, func(state engine.BookState) error {
		states = append(states, state)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	return states, nil
}
