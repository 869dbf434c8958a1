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

// Exit codes. They follow sysexits.h, so that a service manager can tell what a restart would cure.
const (
	OK          = 0   // the work is done, or the node was asked to stop and did
	CheckFailed = 1   // tasard doctor has found something that must be mended
	Usage       = 64  // unknown command, flag or argument, or a bad value of one
	Rejected    = 65  // some lines of an observation file, or a manual rate, were not taken in; the rest was
	NoInput     = 66  // a file or directory to read from can't be read, or is none of the kind
	Unavailable = 69  // no node is running, the running one can't answer now, or a source that was checked gave nothing
	FailStop    = 70  // a write failed while the node ran, or something that must not happen happened
	CannotWrite = 73  // the data directory or an output can't be created or written
	IOError     = 74  // reading or writing broke off in the middle
	Busy        = 75  // another process holds the directory or the address: try again later
	BadData     = 78  // bad variable, configuration, catalogue, definition or secret file, or damaged data
	Interrupted = 130 // a signal ended the work before it was done
)

// Help is the part of the help that explains the codes.
const Help = `Exit codes:
  0    done, or stopped by SIGINT or SIGTERM
  1    doctor has found something that must be mended
  64   unknown command, flag or argument, or a bad value of one
  65   some lines of an observation file, or a manual rate, were not taken in; the rest was
  66   a file or directory to read from can't be read, or is none of the kind
  69   no node is running, the running one can't answer now, or a source that was checked gave nothing
  70   fail-stop: a write failed while the node ran; start it again
  73   the data directory or an output can't be created or written
  74   reading or writing broke off in the middle
  75   another process holds the directory or the address; try again later
  78   bad variable, configuration, catalogue, definition or secret file, or damaged data
  130  a signal ended the work before it was done`

// Error is an error that knows the exit code it stands for.
type Error struct {
	code int
	err  error
}

// Error is the message without the code.
func (f *Error) Error() string { return f.err.Error() }

// Unwrap gives the error.
func (f *Error) Unwrap() error { return f.err }

// Wrap is an error with an exit code, whatever code it had.
func Wrap(code int, err error) error { return &Error{code, err} }

// Errorf is an error of our own words with its exit code.
func Errorf(code int, format string, args ...any) error {
	return Wrap(code, fmt.Errorf(format, args...))
}

// Code is the code of an error. One that was given none is told by its cause.
func Code(err error) int {
	var known *Error
	var answer *engine.Error
	var damage *wal.DamageError
	var format *wal.FormatError
	var backup *wal.BackupError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &known):
		return known.code
	case errors.As(err, &answer) && answer.Code == engine.CodeReadOnly:
		return CannotWrite
	case errors.As(err, &damage), errors.As(err, &format), errors.As(err, &backup), errors.Is(err, actors.ErrUnknownRecord):
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

// WrapUncoded gives an error an exit code, unless it has one.
func WrapUncoded(code int, err error) error {
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	return Wrap(code, err)
}
