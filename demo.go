package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/engine"
)

const (
	demoSource      = "demo-" // what ids of the demo market's sources begin with
	demoDays        = 365     // of history
	demoStepDefault = 5 * time.Second
	demoStepMin     = time.Second
	demoStepMax     = time.Hour
)

// demoOptions are the settings of the demo command.
type demoOptions struct {
	serviceOptions // data "" = a directory that is removed at the end
	log            logOptions
	seed           uint64
	step           time.Duration
}

func (p *process) newDemo() *cobra.Command {
	o := demoOptions{log: logOptions{format: "auto", level: "warn"}, seed: 1, step: demoStepDefault}
	o.front = frontOptions{listen: listenDefault, strict: true, feeNotice: engine.FeeNotice}
	o.accounts = defaultAccounts()
	o.accounts.limits, o.accounts.mail, o.accounts.keyPrefix = false, mailLog, engine.KeyPrefixTest
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a node with a simulated market, to look at",
		Long: `demo runs a whole node, log and all, but its rates are made up: a simulated market gives it a year of history and then
a new publication every step. Its sources are called demo-..., so that nobody takes its rates for real ones. The same
seed gives the same market.

It prints where it listens and lines to try. Login codes are printed, not sent; --limits=on holds callers to the quotas.
Without --data everything is gone when it ends, with SIGINT, SIGTERM, SIGHUP, or when nobody reads its output any more.`,
		Example: `  tasard demo
  tasard demo --listen 127.0.0.1:9000 --seed 7 --step 1s`,
		Args: noArguments,
	}
	cmd.RunE = p.settled(func(ctx context.Context, _ []string) error {
		return p.demo(ctx, &o, cmd.Flags().Changed("listen"))
	})
	addListen(cmd, &o.front)
	flags := cmd.Flags()
	addLog(cmd, &o.log)
	addLimits(cmd, &o.accounts)
	flags.Var(numberValue(&o.seed), "seed", "the seed of the market")
	flags.Var(spanValue(&o.step, demoStepMin, demoStepMax), "step", "the time between two publications")
	markSettings(flags)
	// No setting: a variable that is meant for serve must not fill its directory with made-up rates.
	flags.Var(pathValue(&o.node.data, "DIR"), "data", "keep the data in `DIR`; by default in a temporary directory")
	return cmd
}

// demo runs until ctx ends. Without a choice of the user's it takes another port when the default one is taken.
func (p *process) demo(ctx context.Context, o *demoOptions, chosen bool) (err error) {
	log := p.logger(o.log)
	ctx, end := p.untilDemoEnds(ctx)
	defer end.release()
	catalogue, err := demoCatalogue()
	if err != nil {
		return err
	}
	listener, note, err := demoListener(o.front.listen, chosen)
	if err != nil {
		return err
	}
	if o.node.data == "" {
		if o.node.data, err = os.MkdirTemp("", "tasard-demo-"); err != nil {
			return errors.Join(fail(exitCannotWrite, "make a directory for the demo: %w", err), listener.Close())
		}
		end.removes(o.node.data)
		defer func() { err = errors.Join(err, os.RemoveAll(o.node.data)) }()
	}
	s, err := p.startService(ctx, &o.serviceOptions, catalogue, listener, log)
	if err != nil {
		return err
	}
	say(p.stdout, "tasard demo: a whole node with a simulated market. Every rate is made up; sources are called %s...\n%slistening on %s\n",
		demoSource, note, s.front.url)
	err = p.runDemo(ctx, s, o, log)
	return errors.Join(s.node.failure(err), s.stop(ctx))
}

// demoListener listens on the address, or on any free port when the address is the default one and is taken.
func demoListener(address string, chosen bool) (net.Listener, string, error) {
	listener, err := listen(address)
	if !chosen && errors.Is(err, syscall.EADDRINUSE) {
		listener, err = listen("127.0.0.1:0")
		return listener, fmt.Sprintf("%s is taken by another program; this demo takes a free port\n", address), err
	}
	return listener, "", err
}

// demoCatalogue names a source for each institution so that every rate says what it is.
func demoCatalogue() (*engine.Catalogue, error) {
	type source struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	known := engine.DefaultCatalogue()
	var sources []source
	for _, institution := range known.Institutions() {
		sources = append(sources, source{demoSource + institution.ID, "Demo, tasas simuladas: " + institution.Name})
	}
	file, err := json.Marshal(map[string][]source{"sources": sources})
	if err != nil {
		return nil, fmt.Errorf("describe the demo's sources: %w", err)
	}
	return known.Extend(bytes.NewReader(file), "the demo's sources")
}

// runDemo fills the node with the past, says what there is to see, and then publishes until the end.
func (p *process) runDemo(ctx context.Context, s *service, o *demoOptions, log *slog.Logger) error {
	if ready, err := s.ready(ctx); !ready {
		return err
	}
	last, err := lastDemoDay(ctx, s.node, o.node.data)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	began := p.clock()
	market := simulated.NewMarket(o.seed)
	today := engine.DateOf(began)
	past := market.History(max(last, today.AddDays(-demoDays))+1, today-1)
	taken, err := publish(s.node, append(past, market.Refreshes(began.Truncate(time.Second))...))
	if err != nil {
		return err
	}
	say(p.stdout, "%s rates and %d days of history from %s made-up observations, in %s; seed %d, a new publication every %s\n\n",
		grouped(s.node.rates()), demoDays, grouped(taken), p.clock().Sub(began).Round(time.Millisecond), o.seed, o.step)
	if err := printBest(p.stdout, s.node); err != nil {
		return err
	}
	say(p.stdout, "\nTry:\n%s\nCtrl-C stops it.\n", tryLines(s.front.url))
	return p.keepPublishing(ctx, s, market, o.step, log)
}

func (p *process) keepPublishing(ctx context.Context, s *service, market *simulated.Market, step time.Duration, log *slog.Logger) error {
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for {
		if ticked, err := await(ctx, s, ticker.C); !ticked {
			return err
		}
		taken, err := publish(s.node, market.Refreshes(p.clock().Truncate(time.Second)))
		if err != nil {
			return err
		}
		log.Info("published", "observations", taken)
	}
}

func publish(n *node, refreshes []engine.Refresh) (int, error) {
	receipt, err := n.system.Observe(refreshes)
	if err != nil {
		return 0, fmt.Errorf("publish made-up rates: %w", err)
	}
	return receipt.Accepted, nil
}

// lastDemoDay is the newest day of history in the directory, no day when it is empty. A directory with rates that are not
// made up is refused.
func lastDemoDay(ctx context.Context, n *node, data string) (engine.Date, error) {
	states, err := n.states(ctx)
	if err != nil {
		return 0, err
	}
	var last engine.Date
	for _, book := range states {
		for _, offer := range book.Offers {
			if !strings.HasPrefix(offer.SourceID, demoSource) {
				return 0, fail(exitBadData, "%s: holds rates of %s, which are no demo's; give the demo a directory of its own", data, offer.SourceID)
			}
		}
		if days := len(book.History); days > 0 {
			last = max(last, book.History[days-1].Date)
		}
	}
	return last, nil
}

// printBest shows the best rates of the moment.
func printBest(out io.Writer, n *node) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say(table, "  DOP for 1\tyou buy at\t\tyou sell at\t\n")
	for _, currency := range []string{"USD", "EUR", "GBP", "CHF", "CAD"} {
		say(table, "  %s", currency)
		for _, operation := range engine.Operations() {
			page, err := n.system.Ranking(engine.RankingQuery{
				Filter: engine.Filter{Currency: currency}, Cut: engine.Cut{Limit: 1}, Operation: operation,
			})
			if err != nil {
				return fmt.Errorf("look up the best rates: %w", err)
			}
			side, name := "-", ""
			if len(page.Items) > 0 {
				side, name = page.Items[0].Side(operation).String(), page.Items[0].InstitutionName
			}
			say(table, "\t%s\t%s", side, name)
		}
		say(table, "\n")
	}
	if err := table.Flush(); err != nil {
		return fail(exitBroken, "write to standard output: %w", err)
	}
	return nil
}

// tryLines are commands that show what a node answers.
func tryLines(url string) string {
	return fmt.Sprintf(`  curl '%[1]s/v1/rates/best?currency=USD&operation=buy&limit=3'
  curl '%[1]s/v1/convert?currency=EUR&operation=sell&amount=250.00&limit=3'
  curl '%[1]s/v1/rates/history?currency=USD&institution=popular'
Get a key (the login code is printed here, not sent; README.md has the rest):
  curl -H 'Content-Type: application/json' -d '{"email":"ana@example.com"}' %[1]s/v1/account/codes
`, url)
}
