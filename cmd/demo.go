package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

const (
	demoDays         = 365 // days of history to publish
	demoSeed         = 4   // all sites of this market respond at the start; awaitFirstFetch waits 3 s for silent ones
	demoStepDefault  = 5 * time.Second
	demoStepMin      = time.Second
	demoStepMax      = time.Hour
	demoPollInterval = 10 * time.Millisecond // time between two checks in awaitFirstFetch
	demoPollsMax     = 300
)

type demoOptions struct {
	*command.Serve // if Config.Dir is "", the demo uses a temporary directory
	step           time.Duration
	faults         []string          // values of --break: a source and the fault of its simulated site
	market         *simulated.Market // source of the simulated rates
}

func (p *commands) newDemo() (cmd *cobra.Command) {
	o := demoOptions{Serve: command.Default(), step: demoStepDefault}
	o.Limits, o.Log.Level = false, "warn"
	c := &o.Config
	c.HTTP.Conns, c.HTTP.ConnsPerAddress, c.HTTP.Demo = 0, 0, true
	c.Mail, c.Accounts.KeyPrefix = node.Mail{Method: admin.MailLog}, account.KeyPrefixTest
	cmd = command.Spec{
		Use:   "demo",
		Short: "Run a node with a simulated market",
		Long: `demo runs a whole node with made-up rates. A simulated market has a year of history, and simulated sites of all
institutions on this machine publish new rates every step. The node fetches them as it fetches the real sites. Its
sources are called demo-..., so that their rates are not taken for real ones. With --break a source fails, to show
how the node reacts.

It prints its address and commands to try. Login codes are printed, not sent; --limits=on enforces quotas. Without
--data all data is deleted at the end, after SIGINT, SIGTERM or SIGHUP; a second signal leaves it in the directory for
temporary files.`,
		Example: `  tasard demo
  tasard demo --listen 127.0.0.1:9000 --step 1s
  tasard demo --break bhd-site=zeros --break infodolar=challenge`,
		Settings: func(flags *pflag.FlagSet) {
			command.Add(flags, o.Serve, "listen", "limits", "log-format", "log-level", "access-log", "metrics-listen")
			flags.Var(command.Duration(&o.step, demoStepMin, demoStepMax), "step", "time between two publications")
		},
		Flags: func(flags *pflag.FlagSet) {
			flags.StringArrayVar(&o.faults, "break", nil, "inject a fault into a source, as `SOURCE=FAULT`, such as bhd-site=zeros; repeatable")
			// Only the command line can set --data here. A variable TASARD_DATA is meant for serve, and the demo must
			// not fill that directory with made-up rates.
			flags.Var(command.Path(&c.Dir, "DIR"), "data", "data directory `DIR`; default a temporary one")
		},
		Run: func(ctx context.Context, _ []string) error { return p.demo(ctx, &o) },
	}.Command(p.Process)
	return cmd
}

// demo runs the demo until ctx ends.
func (p *commands) demo(ctx context.Context, o *demoOptions) (err error) {
	log := p.NodeLogger(o.Log)
	if err := admin.CheckSocket(filepath.Join(o.Config.Dir, admin.SocketName)); err != nil {
		return exit.Errorf(exit.BadData, "--data: %w; choose a shorter one", err)
	}
	if !signal.Ignored(syscall.SIGHUP) { // nohup starts programs with SIGHUP ignored
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	reference, err := demoReference()
	if err != nil {
		return err
	}
	o.market = simulated.NewMarket(demoSeed)
	o.Config.Collect = node.Collect{Deferred: true, Schedule: collectors.Schedule(o.step), Pause: -1}
	site, err := p.startSite(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.Close()) }()
	listener, err := node.Listen(o.Config.HTTP.Listen, "HTTP.Listen")
	if err != nil {
		return err
	}
	if o.Config.Dir == "" {
		if o.Config.Dir, err = os.MkdirTemp("", "tasard-demo-"); err != nil {
			return errors.Join(exit.Errorf(exit.CannotWrite, "make a directory for the demo: %w", err), listener.Close())
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Config.Dir)) }()
	}
	config := command.NodeConfig(p.Process, o.Serve, log)
	config.Reference, config.HTTP.Listener = &reference, listener
	n, err := node.Open(ctx, config)
	if err != nil {
		return err
	}
	terminal.Fprintf(p.Stdout, "tasard demo: a whole node with a simulated market. Every rate is made up; sources are called %s...\n%d sources are fetched over HTTP, from simulated sites on this machine\nlistening on %s\n",
		node.DemoPrefix, len(slices.DeleteFunc(n.SourceHealth(), func(h collectors.Health) bool { return h.State == collectors.Disabled })), n.URL())
	err = p.runDemo(ctx, n, o, log)
	if stopErr := node.StopCause(n.System()); stopErr != nil {
		err = stopErr
	}
	return errors.Join(err, n.Close(ctx))
}

// demoReference returns the program's institutions and currencies, with simulated sources in place of the real ones.
// The IDs of these sources mark every rate as made up.
func demoReference() (node.ReferenceData, error) {
	return node.NewReferenceData(engine.DefaultCatalogue(), simulated.Definitions(source.DefaultSet()))
}

// startSite starts the simulated sites with the injected faults. It redirects all connections of this process to
// sources there.
func (p *commands) startSite(o *demoOptions) (*simulated.Site, error) {
	site := simulated.NewSite(o.market)
	for _, text := range o.faults {
		source, name, _ := strings.Cut(text, "=")
		if !slices.Contains(simulated.Faults(), simulated.Fault(name)) {
			return nil, exit.Errorf(exit.Usage, "--break %q: want SOURCE=FAULT, such as bhd-site=zeros; faults are %v", text, simulated.Faults())
		}
		if err := site.SetFault(source, simulated.Fault(name)); err != nil {
			return nil, exit.Errorf(exit.Usage, "--break %s: %w", text, err)
		}
	}
	if err := site.Start(); err != nil {
		return nil, exit.Errorf(exit.FailStop, "%w", err)
	}
	p.Dial = site.Dial
	return site, nil
}

// runDemo publishes rates of past days, prints commands to try, and changes the simulated rates until ctx ends.
func (p *commands) runDemo(ctx context.Context, n *node.Node, o *demoOptions, log *slog.Logger) error {
	if ok, err := await(ctx, n, n.Ready()); !ok {
		return err
	}
	lastDay, err := lastDemoDay(n, o.Config.Dir)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	start := p.Clock()
	today := engine.DateOf(start)
	newestDay := engine.DateOf(start.Add(-simulated.HistoryHour * time.Hour)) // a day that is over, so that sources with injected faults have rates too
	receipt, err := n.System().Observe(o.market.History(max(lastDay, today.AddDays(-demoDays))+1, newestDay))
	if err != nil {
		return fmt.Errorf("publish made-up rates: %w", err)
	}
	o.market.Step(start)
	n.Collect()
	if ok, err := p.awaitFirstFetch(ctx, n); !ok {
		return err
	}
	for _, health := range n.SourceHealth() {
		receipt.Accepted += health.Accepted
	}
	terminal.Fprintf(p.Stdout, "%s rates and %d days of history from %s made-up observations, in %s; a new publication every %s\n\n",
		terminal.Thousands(n.Rates()), demoDays, terminal.Thousands(receipt.Accepted), p.Clock().Sub(start).Round(time.Millisecond), o.step)
	if err := printBestRates(p.Stdout, n); err != nil {
		return err
	}
	terminal.Fprintf(p.Stdout, "\nTry:\n%s\nCtrl-C stops it.\n", exampleCommands(p.ProgramName(), n.URL(), n.Socket()))
	return p.advanceMarket(ctx, n, o, log)
}

// awaitFirstFetch waits until every source has been fetched, in this process or before, up to a few seconds: a source
// with an injected fault may never respond.
func (p *commands) awaitFirstFetch(ctx context.Context, n *node.Node) (bool, error) {
	ticker := time.NewTicker(demoPollInterval)
	defer ticker.Stop()
	for range demoPollsMax {
		if ok, err := await(ctx, n, ticker.C); !ok {
			return false, err
		}
		if !slices.ContainsFunc(n.SourceHealth(), func(h collectors.Health) bool { return h.State == collectors.Never && h.LastSlot.IsZero() }) {
			break
		}
	}
	return true, nil
}

// advanceMarket changes the simulated rates every o.step, until ctx ends. The node fetches them at its next scheduled
// time (slot).
func (p *commands) advanceMarket(ctx context.Context, n *node.Node, o *demoOptions, log *slog.Logger) error {
	ticker := time.NewTicker(o.step)
	defer ticker.Stop()
	for {
		if ok, err := await(ctx, n, ticker.C); !ok {
			return err
		}
		o.market.Step(p.Clock())
		log.Info("the market has moved")
	}
}

// lastDemoDay returns the newest day of history in the data directory, or zero if there is none. It returns an error if
// the directory contains rates of real sources.
func lastDemoDay(n *node.Node, data string) (engine.Date, error) {
	states, err := n.System().States()
	if err != nil {
		return 0, err
	}
	var newest engine.Date
	for _, state := range states {
		for _, quote := range state.SourceQuotes {
			if !strings.HasPrefix(quote.SourceID, node.DemoPrefix) {
				return 0, exit.Errorf(exit.BadData, "%s holds real rates, of %s; use another directory for the demo", data, quote.SourceID)
			}
		}
		if days := len(state.History); days > 0 {
			newest = max(newest, state.History[days-1].Date)
		}
	}
	return newest, nil
}

func printBestRates(out io.Writer, n *node.Node) error {
	var failure error
	terminal.Table(out, "  DOP for 1\tyou buy at\t\tyou sell at\t", []string{"USD", "EUR", "GBP", "CHF", "CAD"}, func(currency *string) []any {
		row := []any{*currency}
		for _, operation := range engine.Operations() {
			page, err := n.System().Ranking(engine.RankingQuery{
				Filter: engine.Filter{Currency: *currency}, PageRequest: engine.PageRequest{Limit: 1}, Operation: operation,
			})
			failure = cmp.Or(failure, err)
			price, name := "-", "-"
			if len(page.Items) > 0 {
				price, name = page.Items[0].Side(operation).String(), page.Items[0].InstitutionName
			}
			row = append(row, price, name)
		}
		return row
	})
	if failure != nil {
		return fmt.Errorf("look up the best rates: %w", failure)
	}
	return nil
}

// exampleCommands returns shell commands to try with the node.
func exampleCommands(program, url, socket string) string {
	return fmt.Sprintf(`  curl '%[1]s/v1/rates/best?currency=USD&operation=buy&limit=3'
  curl '%[1]s/v1/convert?currency=EUR&operation=sell&amount=250.00&limit=3'
  curl '%[1]s/v1/rates/history?currency=USD&institution=popular'
  %[3]s sources list --admin-socket %[2]s
Pages: %[1]s/ and %[1]s/docs; keys are made at %[1]s/account, or so (the login code is printed here, not sent):
  curl -H 'Content-Type: application/json' -d '{"email":"ana@example.com"}' %[1]s/v1/account/codes
`, url, socket, program)
}
