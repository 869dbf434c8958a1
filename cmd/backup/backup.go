package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/remote"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

const (
	stdStream    = "-"
	backupSuffix = ".tar.zst"
)

// backupOptions say what is copied, and where to.
type backupOptions struct {
	data   string
	socket string
	to     string
}

// New is tasard backup.
func New(p *process.Process) *cobra.Command {
	o := &backupOptions{}
	return command.Spec{
		Use:   "backup --data DIR --to FILE",
		Short: "Copy a data directory into one file, also while its node runs",
		Long: `backup writes all that a data directory holds into one file: rates, history, held values, accounts, keys, quotas, as
they are at one moment. A node may be running: it is asked through the management socket in the directory, or at
--admin-socket, goes on answering and taking in meanwhile, and everything that it acknowledged before is in the copy.
Without a node the directory is read as it lies, and not changed.

Every byte is verified while it is copied, and again in the finished file. The file appears under its name only when it
is whole and on the disk; a name that is taken is refused. It can be read by its owner alone, as the directory can: it has
digests of keys and of addresses. --to may name a directory: then the file is called tasard-INSTANT.tar.zst. With --to -
the backup goes to stdout, and what it has is told on stderr. zstd and tar read the file as well.

tasard restore makes a directory of it again, tasard backup verify checks it.`,
		Example: `  tasard backup --data ./data --to /backups/
  tasard backup --data ./data --to monday.tar.zst
  tasard backup --admin-socket /run/tasard/admin.sock --to - | ssh backup@example.com 'cat > tasard.tar.zst'`,
		Settings: func(flags *pflag.FlagSet) {
			setting.AddData(flags, &o.data)
			setting.AddAdminSocket(flags, &o.socket)
		},
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.Path(&o.to, "FILE"), "to", "write the backup to `FILE`, or into this directory; - is standard output")
		},
		Run:          func(ctx context.Context, _ []string) error { return backup(ctx, p, o) },
		DataOptional: true,
		Subcommands:  []*cobra.Command{newBackupVerify(p)},
	}.Command(p)
}

func newBackupVerify(p *process.Process) *cobra.Command {
	return command.Spec{
		Use:   "verify FILE",
		Short: "Check every byte of a backup and say what it has",
		Long: `verify reads a backup to its end, holds every byte against its checksums and every record against its place, and says
what is in it. It needs no node and no directory. Damage ends it with exit code 78 and one line that names the place. FILE
may be -, standard input.`,
		Example: "  tasard backup verify monday.tar.zst",
		Args:    command.ExactArgs(1, "one backup"),
		Run:     func(ctx context.Context, args []string) error { return verifyBackup(ctx, p, args[0]) },
	}.Command(p)
}

// backup copies a node or a directory into a file, or to stdout.
func backup(ctx context.Context, p *process.Process, o *backupOptions) error {
	switch {
	case o.data == "" && o.socket == "":
		return exit.Errorf(exit.Usage, "tasard backup: no data directory; give --data DIR, or the socket of a running node with --admin-socket PATH")
	case o.to == "":
		return exit.Errorf(exit.Usage, "tasard backup: no place for the backup; give --to FILE, --to DIR or --to -")
	}
	if o.data != "" {
		if err := datadir.RequireDir(o.data); err != nil {
			return err
		}
	}
	taken := &backupResult{survey: actors.NewBackupCounter()}
	if o.to == stdStream {
		if out, ok := p.Stdout.(*terminal.ErrWriter); ok && terminal.IsTerminal(out.W) {
			return exit.Errorf(exit.Usage, "tasard backup: a backup is not for a terminal; send it to a file or a program")
		}
		into := &countingWriter{Writer: p.Stdout}
		if err := writeBackup(ctx, p, o, into, taken); err != nil {
			if into.failed != nil {
				return exit.Errorf(exit.IOError, "write the backup: %w", into.failed)
			}
			return err
		}
		taken.print(p.Stderr, "stdout")
		return nil
	}
	path, into := backupName(p, o.to), &countingWriter{}
	err := wal.CreateFile(path,
		func(out io.Writer) error {
			into.Writer = out
			return writeBackup(ctx, p, o, into, taken)
		},
		func(file io.Reader) error {
			_, err := wal.VerifyBackup(contextReader{ctx, file}, path, wal.BackupVisitor{})
			return err
		})
	var known *exit.Error
	switch {
	case errors.Is(err, fs.ErrExist):
		return exit.Errorf(exit.CannotWrite, "%s is there already; a backup replaces nothing: name another file with --to", path)
	case into.failed == nil && (errors.As(err, &known) || errors.Is(err, context.Canceled)):
		return err
	case into.failed != nil, err != nil && node.IsWriteRefused(err), errors.Is(err, fs.ErrNotExist):
		return exit.Errorf(exit.CannotWrite, "the backup can't be written: %w; no file was made", err)
	case err != nil:
		return err
	}
	taken.bytes = into.bytes
	taken.print(p.Stdout, path)
	return nil
}

// backupName is the file that --to means.
func backupName(p *process.Process, to string) string {
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		return filepath.Join(to, "tasard-"+p.Clock().UTC().Format("20060102T150405Z")+backupSuffix)
	}
	return to
}

// backupResult is what a backup command made.
type backupResult struct {
	info   wal.BackupInfo
	survey *actors.BackupCounter
	bytes  int64
	from   string
}

func (t *backupResult) print(out io.Writer, name string) {
	terminal.Fprintf(out, "backup    %s", name)
	if t.bytes > 0 {
		terminal.Fprintf(out, ", %s bytes", terminal.Thousands(t.bytes))
	}
	terminal.Fprintf(out, "\ntaken     %s, %s\n", terminal.FormatInstant(t.info.TakenAt), t.from)
	printContents(out, &t.info, t.survey.Contents())
	terminal.Fprintf(out, "The backup is whole.\n")
}

// printContents says what a backup has.
func printContents(out io.Writer, info *wal.BackupInfo, holds actors.BackupContents) {
	terminal.Fprintf(out, "records   up to %s", terminal.Thousands(info.Last))
	if info.Snapshot > 0 {
		terminal.Fprintf(out, "; a snapshot up to %s", terminal.Thousands(info.Snapshot))
	}
	terminal.Fprintf(out, "\nholds     %s rates, %s days of history, %s accounts\n", terminal.Thousands(holds.Rates), terminal.Thousands(holds.HistoryRows), terminal.Thousands(holds.Accounts))
}

// countingWriter counts what goes into a file, and remembers what went wrong with it.
type countingWriter struct {
	io.Writer
	bytes  int64
	failed error
}

// Write is io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.bytes += int64(n)
	if err != nil {
		c.failed = err
	}
	return n, err
}

// contextReader reads until the context ends.
type contextReader struct {
	ctx context.Context
	io.Reader
}

// Read is io.Reader.
func (w contextReader) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, exit.Errorf(exit.Interrupted, "interrupted: %w", err)
	}
	return w.Reader.Read(p)
}

// A node that starts or stops holds the directory and answers nobody for a moment.
const (
	lockWait         = 3 * time.Second
	lockPollInterval = 50 * time.Millisecond
)

// writeBackup takes the backup from the running node, or from the directory when no node answers.
func writeBackup(ctx context.Context, p *process.Process, o *backupOptions, out io.Writer, taken *backupResult) error {
	running := remote.New(remote.SocketPath(o.socket, o.data), "tasard serve")
	patience := time.NewTimer(lockWait)
	defer patience.Stop()
	look := time.NewTicker(lockPollInterval)
	defer look.Stop()
	for {
		err := copyFromNode(ctx, p, running, out, taken)
		if errors.Is(err, errNoNode) && o.data != "" {
			err = copyFromDirectory(ctx, p, o, out, taken)
		}
		if o.data == "" || !errors.Is(err, wal.ErrLocked) && !errors.Is(err, remote.ErrStopping) {
			return err
		}
		select {
		case <-look.C: // nothing is written yet
		case <-ctx.Done():
			return errInterrupted
		case <-patience.C:
			return exit.Errorf(exit.Busy, "%s: a running node holds the directory and does not answer at %s; name its socket with --admin-socket", o.data, running.Socket)
		}
	}
}

// errInterrupted is the end of a backup that was interrupted.
var errInterrupted = exit.Errorf(exit.Interrupted, "interrupted; no backup was made")

func copyFromNode(ctx context.Context, p *process.Process, n *remote.Node, out io.Writer, taken *backupResult) (err error) {
	copied, err := n.Backup(ctx)
	if err != nil {
		return nodeError(n, err)
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	taken.from = "of the running node"
	taken.info, err = wal.PackBackup(copied, out, taken.survey.Visitor())
	return streamError(ctx, copied, err)
}

func copyFromDirectory(ctx context.Context, p *process.Process, o *backupOptions, out io.Writer, taken *backupResult) error {
	if err := datadir.RequireLog(o.data); err != nil {
		return err
	}
	file, err := wal.NewBackupFile(out)
	if err != nil {
		return err
	}
	taken.from = "of a directory without a node"
	taken.info, err = wal.Backup(o.data, file, wal.BackupOptions{
		Clock: p.Clock, Program: process.Version(), Visit: taken.survey.Visitor(),
		Throttle: func(int) error {
			if ctx.Err() != nil {
				return errInterrupted
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	return file.Close()
}

// nodeError gives an error of asking for a copy its exit code. Without a node (errNoNode) the directory itself is copied.
func nodeError(n *remote.Node, err error) error {
	var refusal *admin.Error
	switch {
	case remote.NotRunning(err):
		return exit.Errorf(exit.Unavailable, "%w behind %s; start it, or name its socket with --admin-socket", errNoNode, n.Socket)
	case errors.Is(err, admin.ErrNoResponse):
		return exit.Errorf(exit.Unavailable, "the node behind %s did not answer within %s", n.Socket, admin.BackupIdleMax)
	case errors.As(err, &refusal) && refusal.Code == admin.CodeStopping:
		return exit.Errorf(exit.Busy, "%w: %s; ask again", remote.ErrStopping, refusal.Message)
	}
	return n.Explain(err)
}

// errNoNode says that there is no socket, or that nobody listens there.
var errNoNode = errors.New("no node is running")

// streamError tells why a copy broke off: the node's reason is behind it.
func streamError(ctx context.Context, c *admin.BackupStream, err error) error {
	var damage *wal.BackupError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return exit.Errorf(exit.Interrupted, "interrupted; no backup was made")
	case c.Err == nil && !errors.As(err, &damage): // of the place that it goes to, or of what reads it
		return err
	}
	if said := c.FailureReason(); said != "" {
		return exit.Errorf(exit.IOError, "the copy broke off; the node says: %s; no backup was made", said)
	}
	if errors.As(err, &damage) || errors.Is(err, actors.ErrUnknownRecord) {
		return exit.Errorf(exit.IOError, "what the node sent is not whole: %w; no backup was made", err)
	}
	return exit.Errorf(exit.IOError, "the copy broke off: %w; no backup was made", err)
}
