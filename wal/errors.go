package wal

import (
	"errors"
	"fmt"
)

var (
	// ErrLocked says that another process (or another Log of this one) holds the directory.
	ErrLocked = errors.New("the log is in use by another process")

	// ErrNoSpace says that the disk has less free space than the reserve. Nothing was written and the
	// log stays usable: the same call succeeds once there is space again.
	ErrNoSpace = errors.New("not enough free disk space")

	// ErrPoisoned says that an earlier write, sync, rename, removal or truncation failed. What the disk
	// holds is unknown from there on, so the Log writes nothing more; open it again in a new process.
	// The error that carries it also carries the first cause.
	ErrPoisoned = errors.New("the log stopped after a failed disk operation")

	// ErrClosed says that Close was called before.
	ErrClosed = errors.New("the log is closed")

	// ErrLimit says that a batch is empty where it must not be, or larger than a limit of this package.
	ErrLimit = errors.New("outside the limits of the log")
)

// DamageError says that files of the log are not what was written. Nothing on disk was changed.
type DamageError struct {
	File     string // path of the file that is wrong, or of the file that should have gone on
	Offset   int64  // byte in File where the damage was noticed
	Sequence uint64 // sequence of the first record that cannot be trusted
	Expected string // what should be there
	Found    string // what is there
	Hint     string // what the operator can do
}

// Error gives all fields on one line.
func (e *DamageError) Error() string {
	return fmt.Sprintf("damaged log: %s at offset %d, sequence %d: expected %s, found %s; %s",
		e.File, e.Offset, e.Sequence, e.Expected, e.Found, e.Hint)
}

// FormatError says that a file was written by a newer version of this package. The file is whole; this
// build must not touch it.
type FormatError struct {
	File      string // path of the file
	Version   uint8  // format version that the file names
	Supported uint8  // newest format version of this build
}

// Error names the file, both versions and the way out.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format version %d, this program knows up to %d; run the newer program on this directory",
		e.File, e.Version, e.Supported)
}

const (
	hintRestore      = "restore the directory from a backup, or cut the log here with the repair command"
	hintAcknowledged = "this record had been acknowledged; restore the directory from a backup, or cut the log here with the repair command"
	hintCovered      = "the log holds what it covered, so a start passes it over and nothing is lost; the repair command puts it aside"
	hintForeign      = "move the file away if it does not belong here"
)
