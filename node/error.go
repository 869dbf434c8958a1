package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/tasard/tasard/wal"
)

// Kind classifies an Error by the operator's possible action.
type Kind int

// Kinds of errors.
const (
	Invalid     Kind = iota + 1 // a field of Config is invalid or contradicts another: correct it
	BadFile                     // a configured file or directory, or the data, is unusable: repair it
	Busy                        // another process uses the directory, the address or the socket: try again later
	Unwritable                  // a file or directory can't be created or written: choose another or change its mode
	Failed                      // a part of the running node failed: start the node again
	Interrupted                 // ctx ended before the node was open
)

// Error is an error of opening or closing a node, or why a running node has ended. Err may wrap an error of the log or
// the engine, such as wal.DamageError, wal.ErrNoSpace or engine.Error.
type Error struct {
	Kind  Kind
	Field string // field of Config, such as "HTTP.Listen", or ""
	Err   error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return e.Field + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func errorf(kind Kind, field, format string, args ...any) error {
	return &Error{kind, field, fmt.Errorf(format, args...)}
}

// OthersWrite is the permission bit that lets every user of the machine change a directory.
const OthersWrite fs.FileMode = 0o002

// checkDir refuses a data directory of another user (CheckOwner), and one that every user can change: another user
// could replace its files and the management socket. A directory with the sticky bit (usual for mounts of temporary
// data) is accepted if all its files are the node's own, because there only a file's owner can replace it. A missing
// directory is created later, only for the owner.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&OthersWrite == 0 {
		return CheckOwner(dir, true)
	}
	if info.Mode()&fs.ModeSticky == 0 {
		return errorf(BadFile, "Dir", "every user can write to %s (mode %04o): look for files that are not yours, then run: chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return checkSticky(dir, os.Geteuid())
}

// checkSticky returns an error if a file in a sticky directory belongs to another user than self or root.
func checkSticky(dir string, self int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // opening the directory reports it
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && OwnerOf(info) != self && OwnerOf(info) != 0 {
			return errorf(BadFile, "Dir", "every user can write to %s (its sticky bit is set), and %s in it belongs to user %s: look for files that are not yours, then run: chmod 700 %s",
				dir, entry.Name(), userName(OwnerOf(info)), dir)
		}
	}
	return checkAccess(dir, self, self, true)
}

// errNoDir is the error for a Config without Dir, which has no default.
var errNoDir = errorf(Invalid, "Dir", "missing: set the data directory")

// directoryError converts an error of opening the data directory to an Error with advice for the operator.
func directoryError(dir string, err error) error {
	switch {
	case errors.Is(err, wal.ErrLocked):
		return errorf(Busy, "Dir", "%s: a running node uses the directory; stop it first (%w)", dir, wal.ErrLocked)
	case (IsWriteRefused(err) || errors.Is(err, fs.ErrNotExist)) && !errors.Is(err, wal.ErrNoSpace): // ErrNotExist: for example below /proc
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

// logError returns the wal.DamageError that err wraps, or else err. The text of a DamageError is complete without the
// errors around it.
func logError(err error) error {
	var damageErr *wal.DamageError
	if errors.As(err, &damageErr) {
		return damageErr
	}
	return err
}

// IsWriteRefused reports whether an error means that a file or directory can't be created or written.
func IsWriteRefused(err error) bool {
	return slices.ContainsFunc([]error{
		wal.ErrNoSpace, fs.ErrPermission, fs.ErrExist,
		syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG,
	}, func(target error) bool { return errors.Is(err, target) })
}

// interrupted returns an Error of the kind Interrupted if ctx has ended, else err.
func interrupted(ctx context.Context, err error, phase string) error {
	if ctx.Err() != nil {
		return errorf(Interrupted, "", "interrupted %s", phase)
	}
	return err
}
