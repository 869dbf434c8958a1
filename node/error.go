package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
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

// invalid returns an error for a field of Config if a rule is broken.
func invalid(broken bool, field, message string) error {
	if !broken {
		return nil
	}
	return &Error{Invalid, field, errors.New(message)}
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
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr
		}
		return errorf(Unwritable, "Dir", "create or write the data directory %s: %w; choose another one", dir, err)
	}
	return logError(err)
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

// CheckOwner returns an error if the user of this process must not use the data directory of another user. change is
// true for a caller that changes the directory. Root may read every directory but must not change it: new files would
// belong to root, and the owner's node could not start. A missing directory is accepted.
func CheckOwner(dir string, change bool) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrPermission) {
		return errorf(BadFile, "Dir", "%s: permission denied; run this as the user of the node", dir)
	}
	if err != nil || !info.IsDir() {
		return nil // opening the directory reports it
	}
	owner := OwnerOf(info)
	if self := os.Geteuid(); self != 0 {
		return checkAccess(dir, owner, self, change)
	}
	files, err := wal.Files(dir)
	if err != nil || !change {
		return nil
	}
	for _, file := range files { // the owner of a mounted directory may differ from the owner of its log
		if info, err := os.Stat(file); err == nil {
			owner = OwnerOf(info)
			break
		}
	}
	if owner == 0 {
		return nil
	}
	return errorf(BadFile, "Dir", "%[1]s belongs to user %[2]s, and files that root makes there keep its node from starting: run this as that user "+
		"(sudo -u '#%[3]d'), or let root run the node too: chown -R root %[1]s", dir, userName(owner), owner)
}

// checkAccess returns an error if a process of the user self can't read the files in dir or, with change, can't write
// them.
func checkAccess(dir string, owner, self int, change bool) error {
	const read, write, search = 4, 2, 1
	wantDir, wantFile := uint32(read|search), uint32(read)
	if change {
		wantDir, wantFile = wantDir|write, wantFile|write
	}
	denied := func(path string, want uint32) bool { return errors.Is(syscall.Access(path, want), fs.ErrPermission) }
	if owner != self && denied(dir, wantDir) {
		return errorf(BadFile, "Dir", "%[1]s belongs to user %[2]s: run this as the user of the node, or give it the directory as root: chown -R %[3]s %[1]s",
			dir, userName(owner), userName(self))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // opening the directory reports it
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || OwnerOf(info) == self || !denied(path, wantFile) {
			continue
		}
		return errorf(BadFile, "Dir", "%s belongs to user %s: run this as the user of the node, or give it the files as root: chown -R %s %s",
			path, userName(OwnerOf(info)), userName(self), dir)
	}
	return nil
}

// OwnerOf returns the number of the user that owns a file.
func OwnerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return os.Geteuid()
}

// userName returns a user's name, or the number if there is none.
func userName(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return u.Username
	}
	return fmt.Sprint(id)
}
