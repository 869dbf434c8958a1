package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

const (
	listenDefault = "127.0.0.1:8080"
	feeNoticeMax  = 300 // characters
	drainDelayMax = 10 * time.Minute
	noMailNote    = "no mail server is named (--smtp-addr), so nobody can ask for a login code"
)

// serveOptions are the settings of the serve command.
type serveOptions struct {
	serviceOptions
	log      logOptions
	imported string // file to take in at start, "" = none
}

func (p *process) newServe() *cobra.Command {
	o := defaultServe()
	cmd := &cobra.Command{
		Use:   "serve --data DIR",
		Short: "Run the node on a data directory",
		Long: `serve runs the node on a data directory, which it creates if there is none, and answers /v1 over HTTP. While it replays
its log it answers 503. SIGINT and SIGTERM stop it in order: requests in flight get their answer, everything accepted is
on disk. A second signal kills it; nothing that was acknowledged is lost by that either.

It fetches what the institutions publish at 08:00, 12:00 and 17:00 in Santo Domingo, spread over the minutes after, and once
after a start when a slot was missed; tasard sources list tells how each source is. With --no-collect it fetches nothing. A
directory of definitions, --sources, mends, adds or turns off sources without another program.

With --import it takes a file of observations, or a named pipe, in after the start, while it answers; tasard import --help
tells the form. A file that can't be read is an error in the log, and the node goes on with the data that it has; without
any data it ends with code 66, or 74 when reading broke off.

Callers get a key by e-mail: with --smtp-addr and --mail-from the node sends login codes. All keys of an account share its
quota of the day and of the minute; callers without a key are counted by address. Behind a proxy, name it with
--trusted-proxy, or all callers are one. The operator looks after the node with tasard admin.

With --tls-cert and --tls-key it answers over HTTPS (TLS 1.2 and later, HTTP/1.1) and nothing else. SIGHUP reads again the
certificate and its key, the password for the mail server and the definitions of --sources: all of them, or none when one is
bad, and the log says what has changed or what is wrong. Asked to stop with --drain-delay, it first answers on for that long:
/readyz says 503 and every answer ends its connection. A service manager is told through NOTIFY_SOCKET (Type=notify-reload,
WatchdogSec).`,
		Example: `  tasard serve --data ./data --collect-contact ana@example.com
  tasard serve --data ./data --import observations.csv --no-collect
  tasard serve --data /var/lib/tasard --listen :8080 --log-format json --trusted-proxy 10.0.0.0/8 \
    --smtp-addr mail.example.com:587 --smtp-user tasard --smtp-password-file ./password --mail-from no-reply@example.com
  TASARD_DATA=./data tasard serve`,
		Args: noArguments,
	}
	cmd.RunE = p.settled(func(ctx context.Context, _ []string) error { return p.serve(ctx, o) })
	addServe(cmd, o)
	return cmd
}

// defaultServe is what serve does where nobody says otherwise.
func defaultServe() *serveOptions {
	o := &serveOptions{log: logOptions{format: "auto", level: "info"}}
	o.front = frontOptions{
		listen: listenDefault, strict: true, feeNotice: engine.FeeNotice, conns: connsDefault, connsPerAddress: connsPerAddressDefault,
	}
	o.accounts = defaultAccounts()
	o.collect.spread = spreadDefault
	return o
}

// addServe declares the settings of serve, for itself and for the commands that look at them.
func addServe(cmd *cobra.Command, o *serveOptions) {
	addListen(cmd, &o.front)
	addTLS(cmd, &o.front.tls)
	addConnections(cmd, &o.front)
	cmd.Flags().Var(spanValue(&o.front.drainDelay, 0, drainDelayMax), "drain-delay",
		"how long a node that was asked to stop answers on, so that balancers see it leave: /readyz says 503, every answer ends its connection")
	addNode(cmd, &o.node)
	addCluster(cmd, &o.cluster)
	addLog(cmd, &o.log)
	addWatch(cmd, &o.front)
	addAccounts(cmd, &o.accounts)
	flags := cmd.Flags()
	flags.Var(pathValue(&o.imported, "FILE"), "import", "take a `FILE` of observations in after the start; - is standard input")
	addCollect(cmd, &o.collect)
	flags.Var(switchValue(&o.front.strict), "strict", "refuse unknown query parameters")
	flags.Var(switchValue(&o.front.corsAuthorization), "cors-authorization", "let browsers send the Authorization header")
	flags.Var(sentenceValue(&o.front.feeNotice, feeNoticeMax), "fee-notice", "the sentence about fees in conversions")
	flags.Var(originValue(&o.front.publicURL), "public-url", "the address under which people reach the pages, for links that search engines and integrators copy")
	markSettings(flags)
}

func addListen(cmd *cobra.Command, o *frontOptions) {
	cmd.Flags().Var(addressValue(&o.listen), "listen", "the address to answer on; port 0 takes a free one")
}

// serve runs the node until ctx ends or something fails. What needs nothing of the data directory is checked before it is
// touched.
func (p *process) serve(ctx context.Context, o *serveOptions) (err error) {
	wanted, release := hangUps()
	defer release()
	log := p.logger(o.log)
	if err := p.checkCluster(&o.cluster, o.node.data); err != nil {
		return err
	}
	known, err := openKnown(o.node)
	if err != nil {
		return err
	}
	var file *input
	if o.imported != "" {
		if file, err = p.openImport(o); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	listener, err := listen(o.front.listen)
	if err != nil {
		return err
	}
	s, err := p.startService(ctx, &o.serviceOptions, known, listener, log)
	if err != nil {
		return err
	}
	log.Info("tasard is starting", "data", o.node.data)
	log.Info("listening on " + s.front.url)
	if o.accounts.way() == mailOff {
		log.Info(noMailNote)
	}
	err = p.runNode(ctx, s, &runOptions{o, file, wanted}, log)
	log.Info("stopping")
	if err = errors.Join(err, s.stop(ctx)); err == nil {
		log.Info("stopped")
	}
	return err
}

// runOptions are what a node does once it is ready.
type runOptions struct {
	*serveOptions
	file   *input           // to take in, nil = none
	wanted <-chan os.Signal // to read the files again
}

// runNode waits for the recovery, takes the file in if there is one, and then waits for the end.
func (p *process) runNode(ctx context.Context, s *service, o *runOptions, log *slog.Logger) error {
	if ready, err := s.ready(ctx); !ready {
		return err
	}
	if err := s.node.refuseDemo(); err != nil {
		return err
	}
	found := s.node.system.Recovery()
	log.Info(fmt.Sprintf("recovered %s rates", grouped(s.node.rates())), "lastRecord", found.Last, "snapshot", found.SnapshotSequence)
	if found.TornBytes > 0 {
		log.Warn("an unfinished record at the end of the log was put aside", "bytes", found.TornBytes, "file", found.TornFile)
	}
	if found.AmbiguousTail {
		log.Warn("the mark of the log is old: if power was lost, the last batch may be missing")
	}
	defer s.beginToCollect(ctx, log)()
	s.notifier.ready(s.status())
	if o.file != nil {
		if err := p.takeInBeside(ctx, s, o.file, log); err != nil {
			return err
		}
	}
	again := reload{o.serveOptions, p.variable(credentialsVariable), s, s.notifier, log}
	return again.serve(ctx, o.wanted)
}

// beginToCollect starts collecting: always, or in turn with the other nodes. end waits until the turn is given up.
func (s *service) beginToCollect(ctx context.Context, log *slog.Logger) (end func()) {
	if s.cluster == nil {
		s.collection.start(ctx)
		return func() {}
	}
	s.collection.turn(false)
	s.collection.start(ctx)
	turns, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.collectInTurn(turns, log)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// openImport opens the file to take in. What can't be opened keeps no node down that has data: it is told later then.
func (p *process) openImport(o *serveOptions) (*input, error) {
	file, err := openInput(o.imported, p.stdin)
	if err == nil {
		return file, nil
	}
	if found, _ := wal.Exists(o.node.data); !found { // the start tells what is wrong with a directory
		return nil, err
	}
	return &input{ReadCloser: io.NopCloser(unreadable{err}), name: o.imported}, nil
}

// takeInBeside imports a file and waits for the end of that, or of the node: a pipe may wait for ever for its writer.
func (p *process) takeInBeside(ctx context.Context, s *service, file *input, log *slog.Logger) error {
	taking, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = p.takeIn(taking, s.node, file, log)
	}()
	_, err := await(ctx, s, ended)
	cancel()
	<-ended
	if err != nil {
		return err
	}
	return failed
}

// takeIn imports a file into the running node. Lines that are not published are logged; a stop in the middle is no error,
// nor is a file that can't be read, or is none of observations, unless the node has nothing else to answer from.
func (p *process) takeIn(ctx context.Context, n *node, file *input, log *slog.Logger) error {
	var breath actors.Breath
	defer breath.End()
	intake := &intake{
		to: n.system, clock: p.clock, report: &logReport{log: log, clock: p.clock, last: p.clock()}, sources: n.catalogue,
		pause: breath.Take,
	}
	err := intake.take(ctx, file, collectors.AnyFormat)
	if err == nil || intake.tally.lines > 0 {
		log.Info(fmt.Sprintf("imported %s: %s", file.name, &intake.tally))
	}
	err = n.failure(err)
	switch code := exitCode(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil || readOnly(err):
		log.Warn(err.Error())
		return nil
	case (code == exitNoInput || code == exitBroken) && (n.system.Recovery().Last > 0 || intake.tally.lines > 0):
		log.Error("import: " + err.Error() + "; the node goes on with the data that it has")
		return nil
	}
	return err
}

// readOnly tells an error that passes: the disk is full, and reads go on.
func readOnly(err error) bool {
	var answer *engine.Error
	return errors.As(err, &answer) && answer.Code == engine.CodeReadOnly
}
