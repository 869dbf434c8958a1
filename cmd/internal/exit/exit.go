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

// Exit codes, as in sysexits.h.
const (
	OK          = 0 // success, or a requested stop
	CheckFailed = 1 // the doctor has found a fault

	SourcesMax   = 60  // sources check: 1 to SourcesMax is the number of sources that are not ok
	NothingFound = 61  // sources suggest found no rates whose words are clear
	Usage        = 64  // unknown command, flag or argument, or a bad value of a flag or argument
	Rejected     = 65  // a manual rate or lines of a file were rejected, or all quarantined; other lines were imported
	NoInput      = 66  // an input file or directory can't be read, or has the wrong kind
	Unavailable  = 69  // no node is running, the running node can't answer now, or no source can be reached
	FailStop     = 70  // a write failed while the node ran, or an internal error
	CannotWrite  = 73  // the data directory or an output can't be created or written
	IOError      = 74  // reading or writing failed after it had begun
	Busy         = 75  // another process holds the directory or the address: try again later
	BadData      = 78  // bad variable, configuration, catalogue, definition or secret file, or damaged data
	Interrupted  = 130 // a signal ended the work early
)

// Help explains the codes in the help of tasard.
const Help = `Exit codes:
  0    done, or stopped by SIGINT or SIGTERM
  1    doctor has found a fault; 1 to 60 of sources check: so many sources are not ok (60: or more)
  61   sources suggest found no rates that are clear
  64   unknown command, flag or argument, or a bad value of one
  65   some lines of an observation file, or a manual rate, were rejected; the rest was imported
  66   an input file or directory can't be read, or has the wrong kind
  69   no node is running, the running one can't answer now, or no source can be reached
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

// Error implements error. The exit code is not part of the message.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error without its code.
func (e *Error) Unwrap() error { return e.err }

// Wrap gives err an exit code, replacing any earlier one.
func Wrap(code int, err error) error { return &Error{code, err} }

// Errorf returns a formatted error with an exit code. Like fmt.Errorf, it wraps the operands of %w.
func Errorf(code int, format string, args ...any) error {
	return Wrap(code, fmt.Errorf(format, args...))
}

// Code returns the exit code of an error. Without one, it chooses a code for the error's cause.
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
	case errors.As(err, &engineErr) && engineErr.Code == engine.CodeNoMajority:
		return Unavailable
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

// WrapUncoded gives err an exit code if it has none.
func WrapUncoded(code int, err error) error {
	var coded *Error
	if errors.As(err, &coded) {
		return err
	}
	return Wrap(code, err)
}
