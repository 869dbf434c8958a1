package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

// Exit codes. They follow sysexits.h, so that a service manager knows when a restart can help.
const (
	OK          = 0   // success, or a requested stop
	CheckFailed = 1   // tasard doctor has found a fault
	Usage       = 64  // unknown command, flag or argument, or a bad value of one
	Rejected    = 65  // some lines of an observation file, or a manual rate, were rejected; the rest was imported
	NoInput     = 66  // an input file or directory can't be read, or has the wrong kind
	Unavailable = 69  // no node is running, the running one can't answer now, or a checked source gave nothing
	FailStop    = 70  // a write failed while the node ran, or an internal error
	CannotWrite = 73  // the data directory or an output can't be created or written
	IOError     = 74  // reading or writing broke off in the middle
	Busy        = 75  // another process holds the directory or the address: try again later
	BadData     = 78  // bad variable, configuration, catalogue, definition or secret file, or damaged data
	Interrupted = 130 // a signal ended the work early
)

// Help explains the codes in the help.
const Help = `Exit codes:
  0    done, or stopped by SIGINT or SIGTERM
  1    doctor has found a fault
  64   unknown command, flag or argument, or a bad value of one
  65   some lines of an observation file, or a manual rate, were rejected; the rest was imported
  66   an input file or directory can't be read, or has the wrong kind
  69   no node is running, the running one can't answer now, or a source that was checked gave nothing
  70   fail-stop: a write failed while the node ran; start it again
  73   the data directory or an output can't be created or written
  74   reading or writing broke off in the middle
  75   another process holds the directory or the address; try again later
  78   bad variable, configuration, catalogue, definition or secret file, or damaged data
  130  a signal ended the work before it was done`

// Error is an error with an exit code.
type Error struct {
	code int
	err  error
}

// Error returns the message without the code.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Wrap gives err an exit code, and replaces the code that it may have.
func Wrap(code int, err error) error { return &Error{code, err} }

// Errorf formats an error with an exit code.
func Errorf(code int, format string, args ...any) error {
	return Wrap(code, fmt.Errorf(format, args...))
}

// Code returns the exit code of an error. Without an explicit code it depends on the cause.
func Code(err error) int {
	var coded *Error
	var engineErr *engine.Error
	var damageErr *wal.DamageError
	var formatErr *wal.FormatError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &engineErr) && engineErr.Code == engine.CodeReadOnly:
		return CannotWrite
	case errors.As(err, &damageErr), errors.As(err, &formatErr), errors.Is(err, actors.ErrUnknownRecord):
		return BadData
	case errors.Is(err, wal.ErrLocked):
		return Busy
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, wal.ErrPoisoned):
		return FailStop
	case node.IsWriteRefused(err):
		return CannotWrite
	case errors.Is(err, fs.ErrNotExist):
		return NoInput
	}
	return FailStop
}

// WrapUncoded gives err an exit code unless it has one.
func WrapUncoded(code int, err error) error {
	var coded *Error
	if errors.As(err, &coded) {
		return err
	}
	return Wrap(code, err)
}
