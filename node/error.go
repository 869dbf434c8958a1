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

// Kind is what whoever opened a node can do about an Error.
type Kind int

// The kinds of errors.
const (
	Invalid     Kind = iota + 1 // a field of Config has a value that it can't have, or that does not go with others
	BadFile                     // a file or directory that a field names can't be used, or data are damaged: mend it
	Busy                        // another process holds the directory, the address or the socket: try again later
	Unwritable                  // a place can't be created or written
	Failed                      // something failed while the node ran: start it again
	Interrupted                 // ctx ended first
)

// Error is why a node could not be opened or closed in order, or ended by itself. Errors of the log and of the engine are wrapped as they
// are (wal.DamageError, wal.ErrNoSpace, engine.Error).
type Error struct {
	Kind  Kind
	Field string // of Config that it is about, such as "HTTP.Listen"; "" = none
	Err   error
}

// Error is the cause, behind the field.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return e.Field + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// errorf is an Error of our own words.
func errorf(kind Kind, field, format string, args ...any) error {
	return &Error{kind, field, fmt.Errorf(format, args...)}
}

// errNoDir is the one field that has no default.
var errNoDir = errorf(Invalid, "Dir", "missing: name the directory that keeps the data")

// directoryError says what can be done about an error of opening the data directory.
func directoryError(err error) error {
	switch {
	case errors.Is(err, wal.ErrLocked):
		return errorf(Busy, "Dir", "a running node holds the directory; stop it: %w", err)
	case (IsWriteRefused(err) || errors.Is(err, fs.ErrNotExist)) && !errors.Is(err, wal.ErrNoSpace): // /proc says there is no such file
		return errorf(Unwritable, "Dir", "the data directory can't be created or written: %w; name another one", err)
	}
	return logError(err)
}

// logError shortens an error of the log to what an operator needs: one line with file, offset and hint.
func logError(err error) error {
	var damage *wal.DamageError
	if errors.As(err, &damage) {
		return damage
	}
	return err
}

// IsWriteRefused tells the errors of a place that can't be written to.
func IsWriteRefused(err error) bool {
	return slices.ContainsFunc([]error{
		wal.ErrNoSpace, fs.ErrPermission, fs.ErrExist,
		syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG,
	}, func(cause error) bool { return errors.Is(err, cause) })
}

// interrupted is Interrupted where ctx has ended, else err.
func interrupted(ctx context.Context, err error, doing string) error {
	if ctx.Err() != nil {
		return errorf(Interrupted, "", "interrupted %s", doing)
	}
	return err
}
