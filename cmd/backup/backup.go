package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

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
