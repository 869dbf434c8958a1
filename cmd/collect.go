package cmd

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/fetch"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

const (
	productURL       = "https://github.com/tasard/tasard"
	contactRunesMax  = 200
	spreadSettingMax = time.Hour
	spreadDefault    = 5 * time.Minute
)

// collectOptions say how a node collects.
type collectOptions struct {
	off     bool
	contact string // whom a site can write to, "" = the project's page alone
	spread  time.Duration

	// The demo's own: its sources are not asked thrice a day.
	schedule collectors.Schedule
	catchUp  time.Duration // as in collectors.Config: over how long a slot that was missed is made up for, 0 = its default
	pause    time.Duration // between two requests to one host, as in fetch.Config
}

// addSources declares --sources.
func addSources(cmd *cobra.Command, directory *string) {
	cmd.Flags().Var(pathValue(directory, "DIR"), "sources", "add, replace or turn off sources by the definitions in `DIR`")
}

// addContact declares --collect-contact.
func addContact(cmd *cobra.Command, o *collectOptions) {
	cmd.Flags().Var(contactValue(&o.contact), "collect-contact",
		"an e-mail address or page for whoever runs a site that is asked: it goes into the User-Agent")
}

// addCollect declares the flags of collectOptions.
func addCollect(cmd *cobra.Command, o *collectOptions) {
	plainSwitch(cmd.Flags(), &o.off, "no-collect", "fetch nothing from the institutions")
	addContact(cmd, o)
	cmd.Flags().Var(spanValue(&o.spread, 0, spreadSettingMax), "collect-spread", "over how long after 08:00, 12:00 and 17:00 the sources are asked")
}

// openSet is the definitions of the program, with those of an operator's directory; "" = none. It is held against the
// catalogue by withSources.
func openSet(directory string) (*source.Set, error) {
	if directory == "" {
		return source.DefaultSet(), nil
	}
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return nil, fail(exitBadData, "%s: want a directory of definitions; choose another with --sources", directory)
	}
	set, err := source.DefaultSet().Extend(os.DirFS(directory), ".")
	if err != nil {
		return nil, fail(exitBadData, "read the definitions in %s: %w", directory, err)
	}
	return set, nil
}

// withSources completes a catalogue with the sources of definitions. What an operator's catalogue file says of a source wins,
// but for bounds, which such a file can't say.
func withSources(catalogue *engine.Catalogue, set *source.Set) (*engine.Catalogue, error) {
	if err := set.Check(catalogue); err != nil {
		return nil, &failure{exitBadData, err}
	}
	var sources []engine.Source
	for _, described := range set.Sources() {
		if catalogue.HasSource(described.ID) {
			bounds := described.Bounds
			described = catalogue.Source(described.ID)
			described.Bounds = bounds
		}
		sources = append(sources, described)
	}
	return catalogue.WithSources(sources...), nil
}

// newClient is what fetches documents. directory is that of the operator's definitions, beside which certificates lie.
func (p *process) newClient(o *collectOptions, directory string) *fetch.Client {
	config := fetch.Config{
		Clock: p.clock, Random: p.newRandom(), UserAgent: userAgent(buildVersion(), o.contact), Dial: p.dial, Roots: p.roots, Pause: o.pause,
	}
	if directory != "" {
		files := os.DirFS(directory)
		config.CA = func(name string) ([]byte, error) { return fs.ReadFile(files, name) }
	}
	return fetch.New(config)
}

// newRandom is chance for times that only have to differ.
func (p *process) newRandom() *rand.Rand { return rand.New(rand.NewPCG(p.seed(), p.seed())) }

// userAgent says who asks, and where to complain.
func userAgent(version, contact string) string {
	if version = strings.TrimPrefix(version, "v"); strings.ContainsAny(version, "() ") || version == "" {
		version = "dev"
	}
	comment := "+" + productURL
	if contact != "" {
		comment += "; " + contact
	}
	return fmt.Sprintf("tasard/%s (%s)", version, comment)
}

// collection is what collects beside a node. It may be replaced while it works.
type collection struct {
	fresh func(*source.Set) *collecting
	now   atomic.Pointer[collecting]

	mu      sync.Mutex
	ctx     context.Context // of start, nil before it
	resting bool            // another node of the cluster collects
	running bool
}

// collecting is a collector with the definitions that it goes by.
type collecting struct {
	set       *source.Set
	collector *collectors.Collector // nil = this node collects nothing
	client    *fetch.Client
	log       *slog.Logger

	cancel context.CancelFunc // nil = not started
	ended  chan struct{}
}

// newCollection makes what collects for a node; it asks nobody before start.
func (p *process) newCollection(n *node, set *source.Set, o *collectOptions, directory string, log *slog.Logger) *collection {
	c := &collection{fresh: func(set *source.Set) *collecting { return p.newCollecting(n, set, o, directory, log) }}
	c.now.Store(c.fresh(set))
	return c
}

func (p *process) newCollecting(n *node, set *source.Set, o *collectOptions, directory string, log *slog.Logger) *collecting {
	c := &collecting{set: set, log: log, ended: make(chan struct{})}
	if o.off {
		return c
	}
	spread, catchUp := o.spread, o.catchUp
	if spread == 0 {
		spread, catchUp = -1, -1 // none; 0 would be the default
	}
	c.client = p.newClient(o, directory)
	c.collector = collectors.New(collectors.Config{
		Definitions: set.Definitions(), Fetcher: c.client, Sink: n.system, Clock: p.clock, Schedule: o.schedule,
		Done: doneBy(n, log), Random: p.newRandom(), Logger: log, Spread: spread, CatchUpSpread: catchUp,
		HistoryDays: collectors.HistoryDaysLive,
	})
	return c
}

// present is what collects at the moment.
func (c *collection) present() *collecting { return c.now.Load() }

// start collects until stop, or while it is this node's turn. The node must be ready: what it has heard is not asked for again.
func (c *collection) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = ctx
	c.goOn()
}

// stop ends what is under way and waits for it: nothing reaches the node afterwards.
func (c *collection) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.running = nil, false
	c.present().stop()
}

// replace goes on with other definitions. What is under way is asked for again; how sources were until now is forgotten.
func (c *collection) replace(set *source.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renew(set)
	c.goOn()
}

// turn tells whether it is this node that collects. When it is not any more, nothing is under way afterwards.
func (c *collection) turn(own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resting = !own; c.resting && c.running {
		c.renew(c.present().set)
	}
	c.goOn()
}

// renew puts a collector that asks nobody yet in the place of the present one.
func (c *collection) renew(set *source.Set) {
	c.present().stop()
	c.now.Store(c.fresh(set))
	c.running = false
}

// goOn starts the present collector if it is to collect now.
func (c *collection) goOn() {
	if c.ctx != nil && !c.resting && !c.running {
		c.running = true
		c.present().start(c.ctx)
	}
}

// doneBy tells what the log of a node has of each source: asked once, when collecting begins.
func doneBy(n *node, log *slog.Logger) func(string) time.Time {
	var slots map[string]time.Time
	return func(id string) time.Time {
		if slots == nil {
			var err error
			if slots, err = n.system.Slots(); err != nil {
				log.Warn("the newest slot is collected again", "cause", err.Error())
				slots = map[string]time.Time{}
			}
		}
		return slots[id]
	}
}

func (c *collecting) start(ctx context.Context) {
	if c.collector == nil {
		c.log.Info("nothing is collected (--no-collect)")
		return
	}
	ctx, c.cancel = context.WithCancel(ctx)
	go func() {
		defer close(c.ended)
		if err := c.collector.Run(ctx); err != nil {
			c.log.Error("nothing is collected", "cause", err.Error())
		}
	}()
}

func (c *collecting) stop() {
	if c.cancel != nil {
		c.cancel()
		<-c.ended
	}
	if c.client != nil {
		c.client.Close()
	}
}

// contactValue is one line that fits into the comment of a User-Agent.
func contactValue(into *string) *value[string] {
	parse := func(text string) (string, error) {
		if text == "" || len(text) > contactRunesMax || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()\;`, r) }) {
			return "", fmt.Errorf("%q: want an e-mail address or the address of a page", text)
		}
		return text, nil
	}
	return &value[string]{into, "TEXT", parse, func(text string) string { return text }}
}
