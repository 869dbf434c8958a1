package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

const (
	stdStream    = "-"
	backupSuffix = ".zst"
)

// New returns the command tasard backup.
func New(p *process.Process) *cobra.Command {
	b, settings := &backupRun{process: p}, &command.Serve{}
	return command.Spec{
		Use:   "backup --data DIR --to FILE",
		Short: "Copy the state of a node into one file while it runs",
		Long: `backup writes a snapshot of a node into one file: rates, history, quarantine, accounts, keys and quotas, as they are at
one moment. It comes through the management socket of the running node, in the directory or at --admin-socket; the node
keeps answering and accepting changes, and everything that it acknowledged before is in the file. Without a node the
newest snapshot of the directory is copied, and nothing is changed. It has every record only after a clean stop: after a
crash, start the node first.

Every byte is verified while it is copied, and again in the finished file. The file appears under its name only when it
is whole and on disk; an existing file is never replaced. Only its owner may read it, because it has digests of keys and
addresses. If --to is a directory, the file is called tasard-TIME.zst. With --to - the backup goes to stdout and the
summary to stderr.

tasard backup verify checks a backup, tasard restore makes a directory of it.`,
		Example: `  tasard backup --data ./data --to /backups/
  tasard backup --data ./data --to monday.zst
  tasard backup --admin-socket /run/tasard/admin.sock --to - | ssh backup@example.com 'cat > tasard.zst'`,
		Settings: func(flags *pflag.FlagSet) { command.Add(flags, settings, "data", "admin-socket") },
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(command.Path(&b.to, "FILE"), "to", "write the backup to `FILE`, or into this directory; - is standard output")
		},
		Run: func(ctx context.Context, _ []string) error {
			b.data, b.socket = settings.Config.Dir, settings.Config.Admin.Socket
			return b.run(ctx)
		},
		DataOptional: true,
		Subcommands:  []*cobra.Command{newBackupVerify(p)},
	}.Command(p)
}

func newBackupVerify(p *process.Process) *cobra.Command {
	return command.Spec{
		Use:   "verify FILE",
		Short: "Check every byte of a backup and print its contents",
		Long: `verify reads a backup to its end, checks every byte of it and prints a summary. It needs no node and no
directory. Damage ends it with exit code 78 and one line that names the place. FILE may be -, standard input.`,
		Example: `  tasard backup verify monday.zst
  tasard backup verify /var/backups/tasard-20261124T080000Z.zst`,
		Args: command.ExactArgs(1, "one backup"),
		Run:  func(ctx context.Context, args []string) error { return verifyBackup(ctx, p, args[0]) },
	}.Command(p)
}

// contents describe a backup.
type contents struct {
	wal.BackupInfo
	actors.BackupContents
}

type backupRun struct {
	process          *process.Process
	data, socket, to string
	contents         contents
	source           string // where the backup comes from, as text for the summary
}

func (b *backupRun) run(ctx context.Context) error {
	switch {
	case b.data == "" && b.socket == "":
		return exit.Errorf(exit.Usage, "no data directory; give --data DIR, or the socket of a running node with --admin-socket PATH")
	case b.to == "":
		return exit.Errorf(exit.Usage, "no destination; give --to FILE, --to DIR or --to -")
	}
	if b.data != "" {
		if err := datadir.RequireDir(b.data); err != nil {
			return err
		}
	}
	if b.to == stdStream {
		return b.toStdout(ctx)
	}
	return b.toFile(ctx)
}

func (b *backupRun) toStdout(ctx context.Context) error {
	stdout := b.process.Stdout
	if w, ok := stdout.(*terminal.ErrWriter); ok && terminal.IsTerminal(w.W) {
		return exit.Errorf(exit.Usage, "a backup cannot be written to a terminal; redirect it to a file or a program")
	}
	err := b.write(ctx, stdout)
	if err == nil {
		b.print(b.process.Stderr, "stdout")
	}
	return explain("write the backup", err)
}

func (b *backupRun) toFile(ctx context.Context) error {
	path := b.to
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "tasard-"+b.process.Clock().UTC().Format("20060102T150405Z")+backupSuffix)
	}
	var bytes int64
	err := wal.CreateFile(path,
		func(out io.Writer) error { return b.write(ctx, out) },
		func(file io.Reader) error {
			counted := &io.LimitedReader{R: contextReader{ctx, file}, N: 1 << 62}
			_, err := readBackup(counted, path)
			bytes = 1<<62 - counted.N
			return err
		})
	switch {
	case errors.Is(err, fs.ErrExist):
		return exit.Errorf(exit.CannotWrite, "%s exists and is not replaced; name another file with --to", path)
	case errors.Is(err, fs.ErrNotExist):
		return exit.Errorf(exit.CannotWrite, "write the backup: %w; nothing was made", err)
	case err != nil:
		return explain("write the backup", err)
	}
	b.print(b.process.Stdout, path+", "+terminal.Thousands(bytes)+" bytes")
	return nil
}

func (b *backupRun) print(out io.Writer, name string) {
	terminal.Fprintf(out, "backup    %s\ntaken     %s, %s\n", name, terminal.FormatInstant(b.contents.TakenAt), b.source)
	b.contents.describe(out)
	terminal.Fprintf(out, "The backup is whole.\n")
}

func (c *contents) describe(out io.Writer) {
	terminal.Fprintf(out, "records   up to %s\ncontents  %s, %s of daily history, %s\n",
		terminal.Thousands(c.Sequence), terminal.Plural(c.Rates, "rate"), terminal.Plural(c.HistoryRows, "row"), terminal.Plural(c.Accounts, "account"))
}

// contextReader reads from a Reader until ctx ends. After that, Read returns an error.
type contextReader struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, exit.Errorf(exit.Interrupted, "interrupted; nothing was made")
	}
	return r.Reader.Read(p)
}

// write writes the backup to out. It gets the backup from the node that listens at the management socket. Without such
// a node it copies the data directory.
func (b *backupRun) write(ctx context.Context, out io.Writer) error {
	n := datadir.New(datadir.SocketPath(b.socket, b.data), "tasard serve")
	stream, err := n.Backup(ctx)
	var apiErr *admin.Error
	switch {
	case datadir.NotRunning(err) && b.data != "":
		return b.copyDirectory(ctx, out)
	case datadir.NotRunning(err):
		return exit.Errorf(exit.Unavailable, "%s: no node is running; start it, or name its socket with --admin-socket", n.Socket)
	case errors.Is(err, admin.ErrNoResponse):
		return exit.Errorf(exit.Unavailable, "the node behind %s did not answer within %s; try again", n.Socket, admin.BackupIdleMax)
	case errors.As(err, &apiErr) && apiErr.Code == admin.CodeStopping:
		return exit.Errorf(exit.Busy, "%w: %s; try again", datadir.ErrStopping, apiErr.Message)
	case err != nil:
		return n.Explain(err)
	}
	b.source = "from the running node"
	b.contents, err = readBackup(io.TeeReader(contextReader{ctx, stream}, out), "the copy")
	return errors.Join(err, stream.Close())
}

func (b *backupRun) copyDirectory(ctx context.Context, out io.Writer) (err error) {
	if err := datadir.RequireLog(b.data); err != nil {
		return err
	}
	b.source = "from the directory, no node is running"
	sequence, state, err := wal.StoppedState(b.data)
	switch {
	case errors.Is(err, wal.ErrUncovered):
		return exit.Errorf(exit.Unavailable, "%s: %w; the last node did not stop cleanly: start it and back it up, or copy the directory", b.data, err)
	case errors.Is(err, wal.ErrLocked): // or by a node that starts or stops
		return exit.Errorf(exit.Busy, "%s: a running node holds the directory and does not answer; try again, or name its socket with --admin-socket", b.data)
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	b.contents.BackupInfo = wal.BackupInfo{Program: process.Version(), TakenAt: b.process.Clock().UTC(), Sequence: sequence}
	return wal.WriteBackup(out, b.contents.BackupInfo, func(out io.Writer) (err error) {
		b.contents.BackupContents, err = countState(sequence, contextReader{ctx, state}, out)
		return err
	})
}

// explain adds an exit code to an error of a backup or restore. doing is the action, for errors of writing.
func explain(doing string, err error) error {
	var damageErr *wal.DamageError
	var formatErr *wal.FormatError
	var exitErr *exit.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exitErr):
		return exitErr // err itself may join several errors
	case errors.As(err, &damageErr):
		return exit.Errorf(exit.BadData, "%w", damageErr)
	case errors.As(err, &formatErr):
		return exit.Errorf(exit.BadData, "%w", formatErr)
	case errors.Is(err, actors.ErrUnknownRecord):
		return exit.Errorf(exit.BadData, "read the backup: %w", err)
	case node.IsWriteRefused(err), errors.Is(err, syscall.EFBIG):
		return exit.Errorf(exit.CannotWrite, "%s: %w; nothing was made", doing, err)
	}
	return exit.Errorf(exit.IOError, "%s: %w; nothing was made", doing, err)
}

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
