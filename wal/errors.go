package wal

import (
	"errors"
	"fmt"
)

var (
	// ErrLocked means that another process, or another Log in this process, has the directory open.
	ErrLocked = errors.New("the log is in use by another process")

	// ErrNoSpace means that the write would leave less free disk space than the reserve (Options.ReserveBytes).
	// Nothing was written. The call can be repeated when there is more space.
	ErrNoSpace = errors.New("not enough free disk space")

	// ErrPoisoned means that an earlier disk operation failed, so the contents of the disk are unknown. The Log writes
	// nothing more and must be opened again in a new process. The error also wraps the error of the operation that
	// failed.
	ErrPoisoned = errors.New("the log stopped after a failed disk operation")

	// ErrClosed means that Close was called before.
	ErrClosed = errors.New("the log is closed")

	// ErrUncovered means that the newest snapshot does not have the newest records, because the last process that had
	// the log open did not stop cleanly.
	ErrUncovered = errors.New("the newest records are not in a snapshot")

	// ErrLimit means that a record or batch exceeds a limit of this package.
	ErrLimit = errors.New("outside the limits of the log")
)

// DamageError reports that a file of a log or a backup does not have the bytes that were written. The operation that
// returned the error changed nothing on disk.
type DamageError struct {
	File     string // path of the damaged file, or of the file before a missing one; in a backup BACKUP:FILE
	Offset   int64  // byte in File where the damage was found
	Sequence uint64 // number of the first record that can't be trusted, 0 if unknown
	Expected string // "" = File is not a backup at all
	Found    string
	Hint     string // what the operator can do
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

// FormatError reports an intact file in a format version that this package does not read.
type FormatError struct {
	File      string
	Version   uint8 // format version of the file
	Supported uint8 // newest format version that this package reads
}

// Error names the file, both versions and the program that can read the file.
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

// errorIn returns the *DamageError or *FormatError for a fault in file. offset is where the decoded bytes begin in
// file.
func (f *formatFault) errorIn(file string, offset int64, sequence uint64, hint string) error {
	if f.version != 0 {
		return &FormatError{File: file, Version: f.version, Supported: FormatVersion}
	}
	return &DamageError{File: file, Offset: offset + int64(f.at), Sequence: sequence, Expected: f.expected, Found: f.found, Hint: hint}
}
