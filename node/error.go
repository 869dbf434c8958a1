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

// Error is why a node could not be opened or closed in order, or ended by itself. Errors of the log and of the
// engine are wrapped (wal.DamageError, wal.ErrNoSpace, engine.Error).
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

// directoryError adds to an error of opening the data directory what an operator can do.
func directoryError(dir string, err error) error {
	switch {
	case errors.Is(err, wal.ErrLocked):
		return errorf(Busy, "Dir", "%s: a running node uses the directory; stop it first (%w)", dir, wal.ErrLocked)
	case (IsWriteRefused(err) || errors.Is(err, fs.ErrNotExist)) && !errors.Is(err, wal.ErrNoSpace): // as for a path below /proc
		return errorf(Unwritable, "Dir", "create or write the data directory %s: %w; choose another one", dir, pathError(err))
	}
	return logError(err)
}

// pathError reduces an error of opening the data directory to operation, path and cause. An error of the log stays.
func pathError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path
	}
	return err
}

// logError reduces an error of damage to what an operator needs: one line with file, offset and hint.
func logError(err error) error {
	var damage *wal.DamageError
	if errors.As(err, &damage) {
		return damage
	}
	return err
}

// IsWriteRefused reports whether an error means that a place can't be written to.
func IsWriteRefused(err error) bool {
	return slices.ContainsFunc([]error{
		wal.ErrNoSpace, fs.ErrPermission, fs.ErrExist,
		syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG,
	}, func(cause error) bool { return errors.Is(err, cause) })
}

// interrupted returns an Interrupted error if ctx has ended, else err.
func interrupted(ctx context.Context, err error, doing string) error {
	if ctx.Err() != nil {
		return errorf(Interrupted, "", "interrupted %s", doing)
	}
	return err
}
