package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/tasard/tasard/wal"
)

// Kind classifies an Error by what can be done about it.
type Kind int

// Kinds of errors.
const (
	Invalid     Kind = iota + 1 // a field of Config has a bad value, or one that contradicts others
	BadFile                     // a file or directory of a field can't be used, or data is damaged: mend it
	Busy                        // another process holds the directory, the address or the socket: try again later
	Unwritable                  // a file or directory can't be created or written
	Failed                      // something failed while the node ran: start it again
	Interrupted                 // ctx ended first
)

// Error is the reason why a node could not be opened or closed, or ended by itself. It may wrap an error of the log
// or the engine, such as wal.DamageError, wal.ErrNoSpace or engine.Error.
type Error struct {
	Kind  Kind
	Field string // field of Config, such as "HTTP.Listen"; "" = none
	Err   error
}

// Error returns the cause after the field.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return e.Field + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errorf formats an Error.
func errorf(kind Kind, field, format string, args ...any) error {
	return &Error{kind, field, fmt.Errorf(format, args...)}
}

// errNoDir is returned for a Config without Dir, the only field without a default.
var errNoDir = errorf(Invalid, "Dir", "missing: set the data directory")

// directoryError adds advice for the operator to an error of opening the data directory.
func directoryError(dir string, err error) error {
	switch {
	case errors.Is(err, wal.ErrLocked):
		return errorf(Busy, "Dir", "%s: a running node uses the directory; stop it first (%w)", dir, wal.ErrLocked)
	case (IsWriteRefused(err) || errors.Is(err, fs.ErrNotExist)) && !errors.Is(err, wal.ErrNoSpace): // as for a path below /proc
		return errorf(Unwritable, "Dir", "create or write the data directory %s: %w; choose another one", dir, pathError(err))
	}
	return logError(err)
}

// pathError returns the fs.PathError that err wraps, or else err.
func pathError(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr
	}
	return err
}

// logError returns the wal.DamageError that err wraps, which has file, offset and a hint in one line, or else err.
func logError(err error) error {
	var damageErr *wal.DamageError
	if errors.As(err, &damageErr) {
		return damageErr
	}
	return err
}

// IsWriteRefused reports whether an error means that a file or directory can't be written to.
func IsWriteRefused(err error) bool {
	return slices.ContainsFunc([]error{
		wal.ErrNoSpace, fs.ErrPermission, fs.ErrExist,
		syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG,
	}, func(target error) bool { return errors.Is(err, target) })
}

// interrupted returns an Interrupted error if ctx has ended, else err.
func interrupted(ctx context.Context, err error, phase string) error {
	if ctx.Err() != nil {
		return errorf(Interrupted, "", "interrupted %s", phase)
	}
	return err
}
