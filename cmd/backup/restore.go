package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

// NewRestore returns the command tasard restore.
func NewRestore(p *process.Process) *cobra.Command {
	from, settings := "", &command.Serve{}
	return command.Spec{
		Use:   "restore --from FILE --data NEWDIR",
		Short: "Make a data directory of a backup",
		Long: `restore makes a data directory of a backup. A node started on it answers as the copied one did at the moment of the
copy. The directory must be new or empty. The whole backup is verified before anything is written. Until the directory
is complete and on disk every command refuses it, also after a crash. After an error everything is removed again.

Later changes are not in it: keys and sessions that were revoked since are valid again, suspensions of accounts are
gone, and quota that was used since can be used again. The age of the backup is printed; docs/recovery.md says what to
do about an old one. With --from - the backup comes from stdin and is verified while it is written.`,
		Example: `  tasard restore --from monday.zst --data ./data-restored
  ssh backup@example.com 'cat tasard.zst' | tasard restore --from - --data /var/lib/tasard`,
		Settings: func(flags *pflag.FlagSet) { command.Add(flags, settings, "data") },
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(command.Path(&from, "FILE"), "from", "the backup; - is standard input")
		},
		Run: func(ctx context.Context, _ []string) error {
			if from == "" {
				return exit.Errorf(exit.Usage, "no backup; give --from FILE, or --from - for standard input")
			}
			return restore(ctx, p, from, settings.Config.Dir)
		},
	}.Command(p)
}

func restore(ctx context.Context, p *process.Process, from, data string) error {
	if err := restoreError(data, wal.CheckEmpty(data)); err != nil {
		return err
	}
	if err := node.CheckOwner(data, true); err != nil { // files of root would keep the node of another user from starting
		return err
	}
	file, name, err := openBackup(p, from)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()     // nothing was written to it
	if seeker, ok := file.(io.Seeker); ok { // verify it first; a pipe can be verified only while it is restored
		if _, err := readBackup(contextReader{ctx, file}, name); err != nil {
			return explain("read the backup", err)
		}
		if _, err := seeker.Seek(0, io.SeekStart); err != nil {
			return exit.Errorf(exit.IOError, "read the backup again: %w", err)
		}
	}
	r, err := wal.OpenBackup(contextReader{ctx, file}, name)
	if err != nil {
		return explain("read the backup", err)
	}
	defer r.Close()
	c := contents{BackupInfo: r.Info}
	err = wal.Create(data, wal.Options{Clock: p.Clock}, c.Sequence, func(out io.Writer) (err error) {
		c.BackupContents, err = countState(c.Sequence, r, out)
		return err
	})
	if err != nil {
		return restoreError(data, err)
	}
	terminal.Fprintf(p.Stdout, "restored  %s\n", data)
	c.printWithAge(p)
	terminal.Fprintf(p.Stdout, "Later changes are not in it: keys and sessions that were revoked since are valid again, suspensions are gone, and\n"+
		"quota that was used since can be used again. See \"An old backup\" in docs/recovery.md.\n")
	return nil
}

// readBackup verifies a backup and counts its contents.
func readBackup(file io.Reader, name string) (c contents, err error) {
	r, err := wal.OpenBackup(file, name)
	if err != nil {
		return c, err
	}
	defer r.Close()
	c.BackupInfo = r.Info
	c.BackupContents, err = countState(r.Info.Sequence, r, io.Discard)
	return c, err
}

// countState copies the state after the record with the number sequence, and counts its contents.
func countState(sequence uint64, state io.Reader, out io.Writer) (actors.BackupContents, error) {
	state = io.TeeReader(state, out)
	contents, err := actors.CountBackup(sequence, state)
	if _, copyErr := io.Copy(io.Discard, state); copyErr != nil {
		err = copyErr // the cause: a state can't be decoded if its bytes are damaged
	}
	return contents, err
}

// restoreError adds an exit code to an error that has occurred while the new data directory was written.
func restoreError(data string, err error) error {
	switch {
	case errors.Is(err, wal.ErrNotEmpty):
		return exit.Errorf(exit.CannotWrite, "%s is not empty; name a new or empty directory with --data, or remove the files of an interrupted restore", data)
	case errors.Is(err, wal.ErrLocked):
		return exit.Errorf(exit.Busy, "%s: a running node, or another restore, holds the directory; name another with --data", data)
	}
	return explain("restore to "+data, err)
}

func verifyBackup(ctx context.Context, p *process.Process, from string) error {
	file, name, err := openBackup(p, from)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	c, err := readBackup(contextReader{ctx, file}, name)
	if err != nil {
		return explain("read the backup", err)
	}
	terminal.Fprintf(p.Stdout, "backup    %s\n", name)
	c.printWithAge(p)
	terminal.Fprintf(p.Stdout, "The backup is whole.\n")
	return nil
}

func (c *contents) printWithAge(p *process.Process) {
	age := p.Clock().Sub(c.TakenAt).Round(time.Second)
	terminal.Fprintf(p.Stdout, "taken     %s, %s\n", terminal.FormatInstant(c.TakenAt), formatAge(age))
	c.describe(p.Stdout)
}

// formatAge formats the age of a backup. The age is negative if the clock of one of the machines was wrong.
func formatAge(age time.Duration) string {
	switch {
	case age < 0:
		return terminal.FormatDays(-age) + " ahead of this machine's clock"
	case age < time.Minute:
		return age.String() + " ago"
	}
	return terminal.FormatDays(age) + " ago"
}

func openBackup(p *process.Process, path string) (io.ReadCloser, string, error) {
	if path == stdStream {
		return io.NopCloser(p.Stdin), "stdin", nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", exit.Errorf(exit.NoInput, "%s: there is no such file", path)
	case err == nil && !info.Mode().IsRegular():
		return nil, "", exit.Errorf(exit.NoInput, "%s is not a file; name a backup file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, "", exit.Errorf(exit.NoInput, "read the backup: %w", err)
	}
	return file, path, nil
}
