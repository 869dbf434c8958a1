package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Exit codes. They follow sysexits.h, so that a service manager can tell what a restart would cure.
const (
	exitDone        = 0   // the work is done, or the node was asked to stop and did
	exitUnwell      = 1   // tasard doctor has found something that must be mended
	exitUsage       = 64  // unknown command, flag or argument, or a bad value of one
	exitBadLines    = 65  // some lines of an observation file, or a manual rate, were not taken in; the rest was
	exitNoInput     = 66  // a file or directory to read from can't be read, or is none of the kind
	exitUnavailable = 69  // no node is running, the running one can't answer now, or a source that was checked gave nothing
	exitFailStop    = 70  // a write failed while the node ran, or something that must not happen happened
	exitCannotWrite = 73  // the data directory or an output can't be created or written
	exitBroken      = 74  // reading or writing broke off in the middle
	exitBusy        = 75  // another process holds the directory or the address: try again later
	exitBadData     = 78  // bad variable, configuration, catalogue, definition or secret file, or damaged data
	exitInterrupted = 130 // a signal ended the work before it was done
)

// exitTable is the part of the help that explains the codes.
const exitTable = `Exit codes:
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

// failure is an error that knows the exit code it stands for.
type failure struct {
	code int
	err  error
}

// Error is the message without the code.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap gives the error.
func (f *failure) Unwrap() error { return f.err }

// fail is an error of our own words with its exit code.
func fail(code int, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...)}
}

// exitCode is the code of an error. One that was given none is told by its cause.
func exitCode(err error) int {
	var known *failure
	var answer *engine.Error
	var damage *wal.DamageError
	var format *wal.FormatError
	var backup *wal.BackupError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &known):
		return known.code
	case errors.As(err, &answer) && answer.Code == engine.CodeReadOnly:
		return exitCannotWrite
	case errors.As(err, &damage), errors.As(err, &format), errors.As(err, &backup), errors.Is(err, actors.ErrUnknownRecord):
		return exitBadData
	case errors.Is(err, wal.ErrLocked):
		return exitBusy
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, wal.ErrPoisoned):
		return exitFailStop
	case cannotWrite(err):
		return exitCannotWrite
	case errors.Is(err, fs.ErrNotExist):
		return exitNoInput
	}
	return exitFailStop
}

// cannotWrite tells the errors of a place that refuses to be written to.
func cannotWrite(err error) bool {
	for _, cause := range []error{
		wal.ErrNoSpace, fs.ErrPermission, fs.ErrExist,
		syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// coded gives an error an exit code, unless it has one.
func coded(code int, err error) error {
	var known *failure
	if errors.As(err, &known) {
		return err
	}
	return &failure{code, err}
}
