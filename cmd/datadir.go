package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

// logError puts what an operator can do beside the errors of the log.
func logError(data string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wal.ErrLocked):
		return fail(exitBusy, "%s: a running node holds the directory; stop it, or look at a copy", data)
	}
	var damage *wal.DamageError
	if errors.As(err, &damage) {
		return damage // one line with file, offset and hint
	}
	return err
}

// needLog is the error of a place that holds no data directory to look at. It changes nothing.
func needLog(data string) error {
	if err := needDirectory(data); err != nil {
		return err
	}
	found, err := wal.Exists(data)
	switch {
	case err != nil:
		return fail(exitNoInput, "look at the data directory: %w", err)
	case !found:
		return fail(exitNoInput, "no data directory: there is no log in %s", data)
	}
	return nil
}

// needDirectory is the error of a place that is no directory.
func needDirectory(data string) error {
	info, err := os.Stat(data)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fail(exitNoInput, "no data directory: %s does not exist", data)
	case err != nil:
		return fail(exitNoInput, "look at the data directory: %w", err)
	case !info.IsDir():
		return fail(exitNoInput, "no data directory: %s is a file", data)
	}
	return nil
}

// directory is a data directory that a command has opened.
type directory struct {
	system    *actors.System
	catalogue *engine.Catalogue
}

// openDirectory opens the data directory and waits until its log is replayed.
func (p *process) openDirectory(ctx context.Context, c node.Config, log *slog.Logger) (*directory, error) {
	system, reference, err := node.OpenSystem(ctx, p.within(c, log))
	if errors.Is(err, wal.ErrLocked) {
		return nil, fail(exitBusy, "%s: a running node holds the directory; stop it, or let it take a file in: tasard serve --import FILE", c.Dir)
	}
	if err != nil {
		return nil, err
	}
	return &directory{system, reference.Catalogue}, nil
}

// failure is why the system stopped by itself, or err when it did not.
func (d *directory) failure(err error) error {
	if stopped := node.Stopped(d.system); stopped != nil {
		return stopped
	}
	return err
}

// close stops the system in order: what was accepted is on disk when it returns.
func (d *directory) close() error {
	if err := d.system.Close(); err != nil {
		return fmt.Errorf("close the data directory: %w", err)
	}
	return nil
}

// statesOf are the books of all currencies at one moment.
func statesOf(ctx context.Context, system *actors.System) ([]engine.BookState, error) {
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
