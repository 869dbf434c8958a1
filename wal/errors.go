package wal

import (
	"errors"
	"fmt"
)

var (
	// ErrLocked means that another process, or another Log in this process, has the directory open.
	ErrLocked = errors.New("the log is in use by another process")

	// ErrNoSpace means that the write would leave less free disk space than the reserve (Options.ReserveBytes). Nothing
	// was written. The call can be repeated after space is freed.
	ErrNoSpace = errors.New("not enough free disk space")

	// ErrPoisoned means that an earlier disk operation failed, so the contents of the disk are unknown. The Log writes
	// nothing more; open it again in a new process. The error also wraps the original error.
	ErrPoisoned = errors.New("the log stopped after a failed disk operation")

	// ErrClosed means that Close was called before.
	ErrClosed = errors.New("the log is closed")

	// ErrUncovered means that the newest snapshot lacks the newest records, because the previous process did not stop
	// cleanly.
	ErrUncovered = errors.New("the newest records are not in a snapshot")

	// ErrLimit means that a record or batch exceeds a limit of this package.
	ErrLimit = errors.New("outside the limits of the log")
)

// DamageError reports a file of a log or a backup that differs from the bytes written. The failed operation changed
// nothing on disk.
type DamageError struct {
	File     string // the damaged file, or the one before a missing file; in a backup BACKUP:FILE
	Offset   int64  // byte in File at which the damage was found
	Sequence uint64 // number of the first untrusted record; 0 = unknown
	Expected string // "" = File is not a backup at all
	Found    string
	Hint     string // advice for the operator
}

// Error returns all fields on one line.
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

// FormatError reports an intact file in a format version unknown to this package.
type FormatError struct {
	File      string
	Version   uint8 // format version of the file
	Supported uint8 // newest format version that this package reads
}

// Error names the file, both versions and the required program.
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
	hintNoSegment    = "if a restore was interrupted here, empty the directory and restore again; otherwise " + hintAcknowledged
	hintCovered      = "no record is lost: a start skips this snapshot, and tasard log repair moves it aside"
	hintForeign      = "move the file out of the directory"
	hintOtherBackup  = "use another copy of the backup, or an older one"
	hintNoBackup     = "name a file that tasard backup has written"
)

// formatFault describes why decoded bytes are not valid.
type formatFault struct {
	at       int // offset in the decoded bytes
	expected string
	found    string
	torn     bool  // true if an interrupted write can be the cause
	version  uint8 // if not 0, the header is valid and has this unsupported version
}

func newFault(at int, expected, found string) *formatFault {
	return &formatFault{at: at, expected: expected, found: found}
}

func tornFault(at int, expected, found string) *formatFault {
	return &formatFault{at: at, expected: expected, found: found, torn: true}
}

// errorIn converts a fault in file to a *DamageError or *FormatError. offset is the position of the decoded bytes in
// file.
func (f *formatFault) errorIn(file string, offset int64, sequence uint64, hint string) error {
	if f.version != 0 {
		return &FormatError{File: file, Version: f.version, Supported: FormatVersion}
	}
	return &DamageError{File: file, Offset: offset + int64(f.at), Sequence: sequence, Expected: f.expected, Found: f.found, Hint: hint}
}
