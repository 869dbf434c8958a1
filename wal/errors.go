package wal

import (
	"errors"
	"fmt"
)

var (
	// ErrLocked means that another process, or another Log of this one, has the directory open.
	ErrLocked = errors.New("the log is in use by another process")

	// ErrNoSpace means that less disk space is free than the reserve. Nothing was written; the same call succeeds once
	// there is space.
	ErrNoSpace = errors.New("not enough free disk space")

	// ErrPoisoned means that an earlier disk operation failed, so the contents of the disk are unknown. The Log writes
	// nothing more; open it again in a new process. The error also wraps the first cause.
	ErrPoisoned = errors.New("the log stopped after a failed disk operation")

	// ErrClosed means that Close was called before.
	ErrClosed = errors.New("the log is closed")

	// ErrLimit means that a record or batch exceeds a limit of this package.
	ErrLimit = errors.New("outside the limits of the log")
)

// DamageError reports a file of a log, or a backup, that is not as it was written. Nothing on disk was changed, and
// nothing was restored.
type DamageError struct {
	File     string // path of the damaged file, or of the last file before a missing one; in a backup after a colon
	Offset   int64  // byte in File where the damage was found
	Sequence uint64 // first record that cannot be trusted, 0 if unknown
	Expected string // "" if the file is not a backup at all
	Found    string
	Hint     string // what the operator can do
}

// Error gives all fields on one line.
func (e *DamageError) Error() string {
	if e.Expected == "" {
		return fmt.Sprintf("%s is not a backup: it %s; %s", e.File, e.Found, e.Hint)
	}
	record := ""
	if e.Sequence > 0 {
		record = fmt.Sprintf(", record %d", e.Sequence)
	}
	return fmt.Sprintf("%s is damaged at offset %d%s: expected %s, found %s; %s", e.File, e.Offset, record, e.Expected, e.Found, e.Hint)
}

// FormatError reports an intact file in a format version that this package does not read.
type FormatError struct {
	File      string
	Version   uint8 // format version of the file
	Supported uint8 // newest format version that this package reads
}

// Error names the file, both versions and the way out.
func (e *FormatError) Error() string {
	program := "a newer tasard"
	if e.Version < e.Supported {
		program = "the older tasard that wrote it"
	}
	return fmt.Sprintf("%s has format version %d, this program reads version %d; use %s", e.File, e.Version, e.Supported, program)
}

const (
	hintRestore      = "restore the directory from a backup, or cut the log here with tasard log repair"
	hintAcknowledged = "this record was acknowledged; " + hintRestore
	hintCovered      = "no record is lost: a start skips this snapshot, and tasard log repair moves it aside"
	hintForeign      = "move the file out of the directory"
	hintOtherBackup  = "use another copy of the backup, or an older one"
	hintNoBackup     = "name a file that tasard backup has written"
)

// fault says why bytes are not the structure that should be there.
type fault struct {
	at       int // offset in the decoded bytes
	expected string
	found    string
	torn     bool  // an interrupted write can have caused it
	version  uint8 // not 0: the header is intact and has this unsupported version
}

func newFault(at int, expected, found string) *fault {
	return &fault{at: at, expected: expected, found: found}
}

func tornFault(at int, expected, found string) *fault {
	return &fault{at: at, expected: expected, found: found, torn: true}
}

// in is the error of a fault in a file, whose decoded bytes begin at offset.
func (f *fault) in(file string, offset int64, sequence uint64, hint string) error {
	if f.version != 0 {
		return &FormatError{File: file, Version: f.version, Supported: FormatVersion}
	}
	return &DamageError{File: file, Offset: offset + int64(f.at), Sequence: sequence, Expected: f.expected, Found: f.found, Hint: hint}
}
