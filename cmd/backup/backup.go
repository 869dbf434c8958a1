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
	backupStdio  = "-"
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
	return command.Row{
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
		Run:   func(ctx context.Context, _ []string) error { return backup(ctx, p, o) },
		Alone: true,
		Below: []*cobra.Command{newBackupVerify(p)},
	}.Command(p)
}

func newBackupVerify(p *process.Process) *cobra.Command {
	return command.Row{
		Use:   "verify FILE",
		Short: "Check every byte of a backup and say what it has",
		Long: `verify reads a backup to its end, holds every byte against its checksums and every record against its place, and says
what is in it. It needs no node and no directory. Damage ends it with exit code 78 and one line that names the place. FILE
may be -, standard input.`,
		Example: "  tasard backup verify monday.tar.zst",
		Args:    command.Want(1, "one backup"),
		Run:     func(ctx context.Context, args []string) error { return verifyBackup(ctx, p, args[0]) },
	}.Command(p)
}

// backup copies a node or a directory into a file, or to stdout.
func backup(ctx context.Context, p *process.Process, o *backupOptions) error {
	switch {
	case o.data == "" && o.socket == "":
		return exit.Fail(exit.Usage, "tasard backup: no data directory; give --data DIR, or the socket of a running node with --admin-socket PATH")
	case o.to == "":
		return exit.Fail(exit.Usage, "tasard backup: no place for the backup; give --to FILE, --to DIR or --to -")
	}
	if o.data != "" {
		if err := datadir.Need(o.data); err != nil {
			return err
		}
	}
	taken := &takenBackup{survey: actors.NewSurvey()}
	if o.to == backupStdio {
		if out, ok := p.Stdout.(*terminal.Output); ok && terminal.IsTerminal(out.To) {
			return exit.Fail(exit.Usage, "tasard backup: a backup is not for a terminal; send it to a file or a program")
		}
		into := &countedFile{Writer: p.Stdout}
		if err := copyOut(ctx, p, o, into, taken); err != nil {
			if into.failed != nil {
				return exit.Fail(exit.Broken, "write the backup: %w", into.failed)
			}
			return err
		}
		taken.tell(p.Stderr, "stdout")
		return nil
	}
	path, into := backupName(p, o.to), &countedFile{}
	err := wal.CreateFile(path,
		func(out io.Writer) error {
			into.Writer = out
			return copyOut(ctx, p, o, into, taken)
		},
		func(file io.Reader) error {
			_, err := wal.VerifyBackup(whileAlive{ctx, file}, path, wal.BackupVisitor{})
			return err
		})
	var known *exit.Failure
	switch {
	case errors.Is(err, fs.ErrExist):
		return exit.Fail(exit.CannotWrite, "%s is there already; a backup replaces nothing: name another file with --to", path)
	case into.failed == nil && (errors.As(err, &known) || errors.Is(err, context.Canceled)):
		return err
	case into.failed != nil, err != nil && node.RefusesWriting(err), errors.Is(err, fs.ErrNotExist):
		return exit.Fail(exit.CannotWrite, "the backup can't be written: %w; no file was made", err)
	case err != nil:
		return err
	}
	taken.bytes = into.bytes
	taken.tell(p.Stdout, path)
	return nil
}

// backupName is the file that --to means.
func backupName(p *process.Process, to string) string {
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		return filepath.Join(to, "tasard-"+p.Clock().UTC().Format("20060102T150405Z")+backupSuffix)
	}
	return to
}

// takenBackup is what a backup command made.
type takenBackup struct {
	info   wal.BackupInfo
	survey *actors.Survey
	bytes  int64
	from   string
}

func (t *takenBackup) tell(out io.Writer, name string) {
	terminal.Say(out, "backup    %s", name)
	if t.bytes > 0 {
		terminal.Say(out, ", %s bytes", terminal.Grouped(t.bytes))
	}
	terminal.Say(out, "\ntaken     %s, %s\n", terminal.Instant(t.info.TakenAt), t.from)
	tellHoldings(out, &t.info, t.survey.Holdings())
	terminal.Say(out, "The backup is whole.\n")
}

// tellHoldings says what a backup has.
func tellHoldings(out io.Writer, info *wal.BackupInfo, holds actors.Holdings) {
	terminal.Say(out, "records   up to %s", terminal.Grouped(info.Last))
	if info.Snapshot > 0 {
		terminal.Say(out, "; a snapshot up to %s", terminal.Grouped(info.Snapshot))
	}
	terminal.Say(out, "\nholds     %s rates, %s days of history, %s accounts\n", terminal.Grouped(holds.Rates), terminal.Grouped(holds.Days), terminal.Grouped(holds.Accounts))
}

// countedFile counts what goes into a file, and remembers what went wrong with it.
type countedFile struct {
	io.Writer
	bytes  int64
	failed error
}

// Write is io.Writer.
func (c *countedFile) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.bytes += int64(n)
	if err != nil {
		c.failed = err
	}
	return n, err
}

// whileAlive reads until the context ends.
type whileAlive struct {
	ctx context.Context
	io.Reader
}

// Read is io.Reader.
func (w whileAlive) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, exit.Fail(exit.Interrupted, "interrupted: %w", err)
	}
	return w.Reader.Read(p)
}

// A node that starts or stops holds the directory and answers nobody for a moment.
const (
	lockPatience = 3 * time.Second
	lockLook     = 50 * time.Millisecond
)

// copyOut takes the backup from the running node, or from the directory when no node answers.
func copyOut(ctx context.Context, p *process.Process, o *backupOptions, out io.Writer, taken *takenBackup) error {
	running := remote.New(remote.Socket(o.socket, o.data), "tasard serve")
	patience := time.NewTimer(lockPatience)
	defer patience.Stop()
	look := time.NewTicker(lockLook)
	defer look.Stop()
	for {
		err := copyNode(ctx, p, running, out, taken)
		if errors.Is(err, errNoNode) && o.data != "" {
			err = copyDirectory(ctx, p, o, out, taken)
		}
		if o.data == "" || !errors.Is(err, wal.ErrLocked) && !errors.Is(err, remote.ErrLeaves) {
			return err
		}
		select {
		case <-look.C: // nothing is written yet
		case <-ctx.Done():
			return errNoBackup
		case <-patience.C:
			return exit.Fail(exit.Busy, "%s: a running node holds the directory and does not answer at %s; name its socket with --admin-socket", o.data, running.Socket)
		}
	}
}

// errNoBackup is the end of a backup that was interrupted.
var errNoBackup = exit.Fail(exit.Interrupted, "interrupted; no backup was made")

func copyNode(ctx context.Context, p *process.Process, n *remote.Node, out io.Writer, taken *takenBackup) (err error) {
	copied, err := n.Backup(ctx)
	if err != nil {
		return notCopied(n, err)
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	taken.from = "of the running node"
	taken.info, err = wal.PackBackup(copied, out, taken.survey.Visitor())
	return explain(ctx, copied, err)
}

func copyDirectory(ctx context.Context, p *process.Process, o *backupOptions, out io.Writer, taken *takenBackup) error {
	if err := datadir.NeedLog(o.data); err != nil {
		return err
	}
	file, err := wal.NewBackupFile(out)
	if err != nil {
		return err
	}
	taken.from = "of a directory without a node"
	taken.info, err = wal.Backup(o.data, file, wal.BackupOptions{
		Clock: p.Clock, Program: process.Version(), Visit: taken.survey.Visitor(),
		Pace: func(int) error {
			if ctx.Err() != nil {
				return errNoBackup
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	return file.Close()
}

// notCopied gives an error of asking for a copy its exit code. Without a node (errNoNode) the directory itself is copied.
func notCopied(n *remote.Node, err error) error {
	var refusal *admin.Refusal
	switch {
	case remote.Absent(err):
		return exit.Fail(exit.Unavailable, "%w behind %s; start it, or name its socket with --admin-socket", errNoNode, n.Socket)
	case errors.Is(err, admin.ErrSilent):
		return exit.Fail(exit.Unavailable, "the node behind %s did not answer within %s", n.Socket, admin.BackupSilence)
	case errors.As(err, &refusal) && refusal.Code == admin.CodeLeaving:
		return exit.Fail(exit.Busy, "%w: %s; ask again", remote.ErrLeaves, refusal.Message)
	}
	return n.Explain(err)
}

// errNoNode says that there is no socket, or that nobody listens there.
var errNoNode = errors.New("no node is running")

// explain tells why a copy broke off: the node's reason is behind it.
func explain(ctx context.Context, c *admin.BackupStream, err error) error {
	var damage *wal.BackupError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return exit.Fail(exit.Interrupted, "interrupted; no backup was made")
	case c.Failed == nil && !errors.As(err, &damage): // of the place that it goes to, or of what reads it
		return err
	}
	if said := c.Reason(); said != "" {
		return exit.Fail(exit.Broken, "the copy broke off; the node says: %s; no backup was made", said)
	}
	if errors.As(err, &damage) || errors.Is(err, actors.ErrUnknownRecord) {
		return exit.Fail(exit.Broken, "what the node sent is not whole: %w; no backup was made", err)
	}
	return exit.Fail(exit.Broken, "the copy broke off: %w; no backup was made", err)
}
