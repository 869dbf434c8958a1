package backup

import (
	"cmp"
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
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

const (
	stdStream    = "-"
	backupSuffix = ".zst"
)

type backupOptions struct{ data, socket, to string }

// New returns the command tasard backup.
func New(p *process.Process) *cobra.Command {
	o, settings := &backupOptions{}, &command.Serve{}
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
			flags.Var(command.Path(&o.to, "FILE"), "to", "write the backup to `FILE`, or into this directory; - is standard output")
		},
		Run: func(ctx context.Context, _ []string) error {
			o.data, o.socket = settings.Config.Dir, settings.Config.Admin.Socket
			return backup(ctx, p, o)
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

func backup(ctx context.Context, p *process.Process, o *backupOptions) error {
	switch {
	case o.data == "" && o.socket == "":
		return exit.Errorf(exit.Usage, "no data directory; give --data DIR, or the socket of a running node with --admin-socket PATH")
	case o.to == "":
		return exit.Errorf(exit.Usage, "no destination; give --to FILE, --to DIR or --to -")
	}
	if o.data != "" {
		if err := datadir.RequireDir(o.data); err != nil {
			return err
		}
	}
	b := &backupRun{process: p, options: o}
	if o.to == stdStream {
		return b.toStdout(ctx)
	}
	return b.toFile(ctx)
}

type backupRun struct {
	process  *process.Process
	options  *backupOptions
	info     wal.BackupInfo
	contents actors.BackupContents
	source   string         // text for the summary that says where the backup comes from
	out      countingWriter // destination of the backup
}

func (b *backupRun) toStdout(ctx context.Context) error {
	stdout := b.process.Stdout
	if w, ok := stdout.(*terminal.ErrWriter); ok && terminal.IsTerminal(w.W) {
		return exit.Errorf(exit.Usage, "a backup cannot be written to a terminal; redirect it to a file or a program")
	}
	err := b.write(ctx, stdout, b.copyFromDirectory)
	if err != nil && b.out.err != nil {
		return exit.Errorf(exit.IOError, "write the backup: %w", b.out.err)
	}
	if err == nil {
		b.print(b.process.Stderr, "stdout")
	}
	return err
}

func (b *backupRun) toFile(ctx context.Context) error {
	path := b.options.to
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "tasard-"+b.process.Clock().UTC().Format("20060102T150405Z")+backupSuffix)
	}
	err := wal.CreateFile(path,
		func(out io.Writer) error { return b.write(ctx, out, b.copyFromDirectory) },
		func(file io.Reader) error {
			_, _, err := readBackup(contextReader{ctx, file}, path)
			return err
		})
	var exitErr *exit.Error
	switch {
	case err == nil:
		b.print(b.process.Stdout, path+", "+terminal.Thousands(b.out.bytes)+" bytes")
		return nil
	case errors.Is(err, fs.ErrExist):
		return exit.Errorf(exit.CannotWrite, "%s exists and is not replaced; name another file with --to", path)
	case b.out.err == nil && (errors.As(err, &exitErr) || errors.Is(err, context.Canceled)):
		return err
	case b.out.err != nil, node.IsWriteRefused(err), errors.Is(err, fs.ErrNotExist):
		return exit.Errorf(exit.CannotWrite, "write the backup: %w; no file was made", cmp.Or(b.out.err, err))
	}
	return err
}

func (b *backupRun) print(out io.Writer, name string) {
	terminal.Fprintf(out, "backup    %s\ntaken     %s, %s\n", name, terminal.FormatInstant(b.info.TakenAt), b.source)
	printContents(out, &b.info, &b.contents)
	terminal.Fprintf(out, "The backup is whole.\n")
}

func printContents(out io.Writer, info *wal.BackupInfo, c *actors.BackupContents) {
	rows := "rows"
	if c.HistoryRows == 1 {
		rows = "row"
	}
	terminal.Fprintf(out, "records   up to %s\ncontents  %s, %s %s of daily history, %s\n",
		terminal.Thousands(info.Sequence), terminal.Plural(c.Rates, "rate"), terminal.Thousands(c.HistoryRows), rows, terminal.Plural(c.Accounts, "account"))
}

// countingWriter counts the bytes written to a Writer and keeps the newest error.
type countingWriter struct {
	io.Writer
	bytes int64
	err   error
}

// Write implements io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.bytes += int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}

// contextReader reads from a Reader until ctx ends. After that, Read returns an error.
type contextReader struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, exit.Errorf(exit.Interrupted, "interrupted: %w", err)
	}
	return r.Reader.Read(p)
}

// A node that starts or stops holds the lock of its data directory, but does not respond for a moment. The method
// write then tries again after each lockPollInterval, for at most lockWaitMax.
const (
	lockWaitMax      = 3 * time.Second
	lockPollInterval = 50 * time.Millisecond
)

// write writes the backup to out. It gets the backup from the node that listens at the management socket. If no node
// listens there, it calls copyStopped.
func (b *backupRun) write(ctx context.Context, out io.Writer, copyStopped func(context.Context) error) error {
	b.out.Writer = out
	data := b.options.data
	server := datadir.New(datadir.SocketPath(b.options.socket, data), "tasard serve")
	timeout := time.NewTimer(lockWaitMax)
	defer timeout.Stop()
	poll := time.NewTicker(lockPollInterval)
	defer poll.Stop()
	for {
		err := b.copyFromNode(ctx, server)
		if errors.Is(err, errNoNode) && data != "" {
			err = copyStopped(ctx)
		}
		if data == "" || !errors.Is(err, wal.ErrLocked) && !errors.Is(err, datadir.ErrStopping) {
			return err
		}
		select {
		case <-poll.C: // the next attempt; nothing has been written yet
		case <-ctx.Done():
			return errInterrupted
		case <-timeout.C:
			return exit.Errorf(exit.Busy, "%s: a running node holds the directory and does not answer at %s; name its socket with --admin-socket",
				data, server.Socket)
		}
	}
}

var errInterrupted = exit.Errorf(exit.Interrupted, "interrupted; no backup was made")

func (b *backupRun) copyFromNode(ctx context.Context, n *datadir.Node) (err error) {
	stream, err := n.Backup(ctx)
	if err != nil {
		return nodeError(n, err)
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	b.source = "from the running node"
	b.info, b.contents, err = readBackup(io.TeeReader(stream, &b.out), "the copy")
	return b.streamError(ctx, err)
}

func (b *backupRun) copyFromDirectory(ctx context.Context) (err error) {
	if err := datadir.RequireLog(b.options.data); err != nil {
		return err
	}
	b.source = "from the directory, no node is running"
	sequence, state, err := wal.StoppedState(b.options.data)
	if errors.Is(err, wal.ErrUncovered) {
		return exit.Errorf(exit.Unavailable, "%s: %w; the last node did not stop cleanly: start it and back it up, or copy the directory", b.options.data, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	b.info = wal.BackupInfo{Program: process.Version(), TakenAt: b.process.Clock().UTC(), Sequence: sequence}
	return wal.WriteBackup(&b.out, b.info, func(out io.Writer) (err error) {
		b.contents, err = countState(sequence, contextReader{ctx, state}, out)
		return err
	})
}

// errNoNode means that no node listens at the management socket.
var errNoNode = errors.New("no node is running")

// nodeError adds an exit code to the error of a request that asks the node for a backup.
func nodeError(n *datadir.Node, err error) error {
	var apiErr *admin.Error
	switch {
	case datadir.NotRunning(err):
		return exit.Errorf(exit.Unavailable, "%s: %w; start it, or name its socket with --admin-socket", n.Socket, errNoNode)
	case errors.Is(err, admin.ErrNoResponse):
		return exit.Errorf(exit.Unavailable, "the node behind %s did not answer within %s; try again", n.Socket, admin.BackupIdleMax)
	case errors.As(err, &apiErr) && apiErr.Code == admin.CodeStopping:
		return exit.Errorf(exit.Busy, "%w: %s; try again", datadir.ErrStopping, apiErr.Message)
	}
	return n.Explain(err)
}

// streamError adds an exit code to an error that has occurred while the backup was copied from the node.
func (b *backupRun) streamError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errInterrupted
	case b.out.err != nil, errors.Is(err, actors.ErrUnknownRecord):
		return err
	}
	return exit.Errorf(exit.IOError, "copy from the node: %w; no backup was made; if the node ended it, its log has the cause", err)
}
