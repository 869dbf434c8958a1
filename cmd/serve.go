package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/intake"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

func (p *commands) newServe() *cobra.Command {
	o := command.Default()
	return command.Spec{
		Use:   "serve --data DIR",
		Short: "Run a node on a data directory",
		Long: `serve runs a node on a data directory, which it creates if needed, and serves /v1 and pages over HTTP. It answers 503
until it has read its log.

It collects rates at 08:00, 12:00 and 17:00 in Santo Domingo, spread over the minutes after, and after a start if a
slot was missed. tasard sources list shows the health of the sources; --sources adds, replaces or disables some;
--no-collect turns collecting off. --import imports a file of observations, or a named pipe, while the node answers;
see tasard import --help. If the file can't be read the node goes on with its data, and exits with 66 or 74 when it
has none.

Users get keys by e-mail: --smtp-addr and --mail-from send login codes. Callers without a key are counted by address;
behind a proxy set --trusted-proxy, or all of them count as one. tasard admin manages accounts, quarantine and manual
rates.

tasard help settings, signals and quotas explain more.`,
		Example: `  tasard serve --data ./data --collect-contact ana@example.com
  tasard serve --data ./data --import observations.csv --no-collect
  tasard serve --data /var/lib/tasard --listen :8080 --log-format json --trusted-proxy 10.0.0.0/8 \
    --smtp-addr mail.example.com:587 --smtp-user tasard --smtp-password-file ./password --mail-from no-reply@example.com
  TASARD_DATA=./data tasard serve`,
		Settings: func(flags *pflag.FlagSet) { command.Add(flags, o) },
		Run:      func(ctx context.Context, _ []string) error { return p.serve(ctx, o) },
	}.Command(p.Process)
}

func (p *commands) serve(ctx context.Context, o *command.Serve) (err error) {
	hangups := make(chan os.Signal, 1) // if SIGHUPs arrive during a reload, one is kept and causes another reload
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	signal.Ignore(syscall.SIGPIPE) // otherwise the node would end when the reader of its log has ended
	log := p.NodeLogger(o.Log)
	var file *process.Input
	if o.ImportFile != "" {
		file, err = p.OpenInput(o.ImportFile)
		if exists, _ := wal.Exists(o.Config.Dir); err != nil && !exists { // opening the node reports errors of the directory
			return err
		}
		if err != nil {
			log.Error("import: " + err.Error() + "; the node continues with the data that it has")
		} else {
			defer func() { err = errors.Join(err, file.Close()) }()
		}
	}
	config := command.NodeConfig(p.Process, o, log)
	config.Collect.Archive = command.ArchiveDir(o.Config.Dir)
	sockets, err := p.takeSockets(&config.HTTP)
	if err != nil {
		return err
	}
	codes := terminal.NewLogQueue(p.Stdout) // for --smtp-addr log; like the log, it does not block on its reader
	defer codes.Close()
	config.Mail.Print, config.Collect.Deferred = codes, true
	n, err := node.Open(ctx, config)
	if err != nil {
		return err
	}
	logStart(log, &config, n.URL())
	log.Info("listening on " + n.URL())
	if sockets > 0 {
		log.Info("the service manager opened the sockets: they stay open over a restart, --listen is not used", "sockets", sockets)
	}
	if config.Mail.MethodOrDefault() == admin.MailOff {
		log.Info(command.NoMailNotice)
	}
	if config.Accounts.Unlimited && config.HTTP.ConnsPerAddress > 0 {
		log.Info("quotas are off (--limits off); the limit of connections stays: more of one client address are closed (--connections-per-address)", "connectionsPerAddress", config.HTTP.ConnsPerAddress)
	}
	notifier := p.newNotifier(n, log)
	err = p.runNode(ctx, n, &serveLoop{config.Collect.On, file, hangups, notifier, log})
	log.Info("stopping")
	notifier.send(daemon.SdNotifyStopping)
	err = errors.Join(err, n.Close(ctx))
	notifier.stop()
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// logStart logs the program, its directory, and its listen addresses.
func logStart(log *slog.Logger, c *node.Config, url string) {
	build, _ := debug.ReadBuildInfo()
	directory, err := filepath.Abs(c.Dir)
	if err != nil {
		directory = c.Dir // the working directory was removed
	}
	attrs := []any{"version", c.Version, "commit", cmp.Or(process.Commit(build), "unknown"), "pid", os.Getpid(), "data", directory, "listen", url}
	for _, address := range [][2]string{{"metrics", c.Admin.Metrics}, {"cluster", c.Cluster.Name}, {"clusterListen", c.Cluster.Listen}} {
		if address[1] != "" {
			attrs = append(attrs, address[0], address[1])
		}
	}
	log.Info("tasard is starting", attrs...)
}

// serveLoop has the parameters of runNode.
type serveLoop struct {
	collects bool             // the node fetches rates from sources
	file     *process.Input   // file to import; nil if there is none
	reload   <-chan os.Signal // receives SIGHUP
	notifier *notifier
	log      *slog.Logger
}

// runNode waits until the node is ready, and imports the file if there is one. Until the node stops, it then makes the
// node read its files again at each SIGHUP.
func (p *commands) runNode(ctx context.Context, n *node.Node, loop *serveLoop) error {
	if ok, err := await(ctx, n, n.Ready()); !ok {
		return err
	}
	p.raiseMemoryLimit()
	recovery := n.System().Recovery()
	loop.log.Info(fmt.Sprintf("recovered %s rates", terminal.Thousands(n.Rates())), "lastRecord", recovery.Last, "snapshot", recovery.SnapshotSequence)
	if recovery.TornBytes > 0 {
		loop.log.Warn("an unfinished record at the end of the log was put aside", "bytes", recovery.TornBytes, "file", recovery.TornFile)
	}
	if recovery.AmbiguousTail {
		loop.log.Warn("the mark of the log is old: if power was lost, the last batch may be missing")
	}
	if recovery.Mark == wal.MarkHalf {
		loop.log.Warn("one half of the mark of the log was damaged and is written again")
	}
	for _, name := range recovery.UnfinishedSnapshots {
		loop.log.Info("an unfinished snapshot was removed", "file", name)
	}
	if !loop.collects {
		loop.log.Info("nothing is collected (--no-collect)")
	}
	n.Collect() // only now, so that the lines above come before problems
	loop.notifier.ready(statusLine(n))
	if loop.file != nil {
		if err := p.importWhileServing(ctx, n, loop.file, loop.log); err != nil {
			return err
		}
	}
	for {
		if ok, err := await(ctx, n, loop.reload); !ok {
			return err
		}
		loop.notifier.reloading()
		reload(n, loop.log)
		loop.notifier.ready(statusLine(n))
	}
}

func statusLine(n *node.Node) string {
	return fmt.Sprintf("%s rates, %s", terminal.Thousands(n.Rates()), n.URL())
}

// reload makes the node read its certificates and keys again. After an error, which it logs, the node keeps the old
// ones.
func reload(n *node.Node, log *slog.Logger) {
	change, err := n.Reload()
	if err != nil {
		for line := range strings.SplitSeq(command.Explain(err).Error(), "\n") {
			log.Error("reload: " + line)
		}
		log.Error("nothing was reloaded: the node goes on as before; mend that and send SIGHUP again")
		return
	}
	log.Info("reloaded: " + cmp.Or(change, "nothing has changed"))
}

// importWhileServing imports a file. It returns when the import has ended or the node stops. The import may block
// forever on a named pipe without a writer.
func (p *commands) importWhileServing(ctx context.Context, n *node.Node, file *process.Input, log *slog.Logger) error {
	importCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	var importErr error
	go func() {
		defer close(done)
		importErr = intake.Import(importCtx, p.Process, n, file, log)
	}()
	_, err := await(ctx, n, done)
	cancel()
	<-done
	if err != nil {
		return err
	}
	return importErr
}

// await returns true when events yields a value or is closed. If ctx ends first, it returns false. If the node fails
// first, it returns false and the error.
func await[T any](ctx context.Context, n *node.Node, events <-chan T) (bool, error) {
	if ctx.Err() != nil {
		return false, nil
	}
	select {
	case <-events:
		return true, nil
	case <-ctx.Done():
		return false, nil
	case <-n.Done():
		return false, n.Err()
	}
}

func (p *commands) newConfig() *cobra.Command {
	return command.Spec{
		Use:   "config",
		Short: "Check the settings of serve",
		Long: `config checks the settings with which tasard serve would run: flags, TASARD_ variables and the configuration file. Give
it the flags of serve. It does not touch the data directory or a running node.`,
		Example: `  tasard config check --config tasard.toml
  TASARD_LISTEN=:8080 tasard config check --data ./data`,
		Subcommands: []*cobra.Command{p.newConfigCheck()},
	}.Command(p.Process)
}

func (p *commands) newConfigCheck() *cobra.Command {
	o := command.Default()
	cmd := command.Spec{
		Use:   "check --data DIR",
		Short: "Check everything that serve checks before it starts",
		Long: `check finds everything that would keep tasard serve from starting, without looking at the data directory: values,
named files, definitions, catalogue, certificate and key, secrets and their permissions, contradictions, and whether
the address belongs to this machine. It prints every problem, one a line, and exits with 78, or says that the
configuration is valid. Names and values come first: while one of them is wrong, the rest is not checked.`,
		Example: `  tasard config check --config /etc/tasard/tasard.toml
  tasard config check --data ./data --listen :8080`,
		Settings: func(flags *pflag.FlagSet) { command.Add(flags, o) },
	}.Command(p.Process)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		problem := command.Resolve(cmd, p.Environ)
		if problem == nil {
			problem = errors.Join(command.RequireData(cmd), command.CheckServe(p.Process, o))
		}
		if problem != nil {
			return exit.Wrap(exit.BadData, problem)
		}
		terminal.Fprintf(p.Stdout, "The configuration is valid.\n")
		return nil
	}
	return cmd
}
