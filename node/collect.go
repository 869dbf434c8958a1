package node

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

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/fetch"
	"github.com/tasard/tasard/collectors/source"
)

// productURL is where whoever runs a site finds out who asks.
const productURL = "https://github.com/tasard/tasard"

// NewClient is what fetches documents for such a node.
func (c Config) NewClient() *fetch.Client {
	c = c.withDefaults()
	config := fetch.Config{
		Clock: c.Clock, Random: c.newRandom(), UserAgent: userAgent(c.Version, c.Collect.Contact), Dial: c.Collect.Dial, Roots: c.Collect.Roots,
		Pause: c.Collect.Pause,
	}
	if c.Definitions != "" { // certificates lie beside the operator's definitions
		files := os.DirFS(c.Definitions)
		config.CA = func(name string) ([]byte, error) { return fs.ReadFile(files, name) }
	}
	return fetch.New(config)
}

// newRandom is chance for times that only have to differ.
func (c *Config) newRandom() *rand.Rand { return rand.New(rand.NewPCG(c.seed(), c.seed())) }

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

// liveCollector is what collects beside a node. It may be replaced while it works.
type liveCollector struct {
	newRun func(*source.Set) *collectorRun
	active atomic.Pointer[collectorRun]

	mu     sync.Mutex
	ctx    context.Context // of start, nil before it
	paused bool            // another node of the cluster collects
}

// collectorRun is a collector with the definitions that it goes by.
type collectorRun struct {
	set       *source.Set
	collector *collectors.Collector // nil = this node collects nothing
	client    *fetch.Client
	log       *slog.Logger

	cancel context.CancelFunc // nil = not started
	done   chan struct{}
}

// newLiveCollector makes what collects for a node; it asks nobody before start.
func newLiveCollector(c *Config, system *actors.System, set *source.Set) *liveCollector {
	all := &liveCollector{newRun: func(set *source.Set) *collectorRun { return newCollectorRun(c, system, set) }}
	all.active.Store(all.newRun(set))
	return all
}

func newCollectorRun(c *Config, system *actors.System, set *source.Set) *collectorRun {
	one := &collectorRun{set: set, log: c.Logger, done: make(chan struct{})}
	if !c.Collect.On {
		return one
	}
	spread, catchUp := c.Collect.Spread, time.Duration(0)
	if spread == 0 {
		spread, catchUp = -1, -1 // none; 0 would be the default
	}
	one.client = c.NewClient()
	one.collector = collectors.New(collectors.Config{
		Definitions: set.Definitions(), Fetcher: one.client, Sink: system, Clock: c.Clock, Schedule: c.Collect.Schedule,
		LastSlot: lastSlots(system, c.Logger), Random: c.newRandom(), Logger: c.Logger, Jitter: spread, CatchUpJitter: catchUp,
		HistoryDays: collectors.HistoryDaysLive,
	})
	return one
}

// activeRun is what collects at the moment.
func (c *liveCollector) activeRun() *collectorRun { return c.active.Load() }

// start collects until stop, or while it is this node's turn. The node must be ready: what it has heard is not asked for again.
func (c *liveCollector) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = ctx
	c.startIfActive()
}

// stop ends what is under way and waits for it: nothing reaches the node afterwards.
func (c *liveCollector) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = nil
	c.activeRun().stop()
}

// replace goes on with other definitions. What is under way is asked for again; how sources were until now is forgotten.
func (c *liveCollector) replace(set *source.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.swap(set)
	c.startIfActive()
}

// setActive tells whether it is this node that collects. When it is not any more, nothing is under way afterwards.
func (c *liveCollector) setActive(own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused = !own; c.paused {
		c.swap(c.activeRun().set)
	}
	c.startIfActive()
}

// swap puts a collector that asks nobody yet in the place of the present one.
func (c *liveCollector) swap(set *source.Set) {
	c.activeRun().stop()
	c.active.Store(c.newRun(set))
}

// startIfActive starts the present collector if it is to collect now.
func (c *liveCollector) startIfActive() {
	if c.ctx != nil && !c.paused {
		c.activeRun().start(c.ctx)
	}
}

// lastSlots tells what the log of a node has of each source: asked once, when collecting begins.
func lastSlots(system *actors.System, log *slog.Logger) func(string) time.Time {
	var slots map[string]time.Time
	return func(id string) time.Time {
		if slots == nil {
			var err error
			if slots, err = system.Slots(); err != nil {
				log.Warn("the newest slot is collected again", "cause", err.Error())
				slots = map[string]time.Time{}
			}
		}
		return slots[id]
	}
}

func (c *collectorRun) start(ctx context.Context) {
	if c.collector == nil || c.cancel != nil {
		return
	}
	ctx, c.cancel = context.WithCancel(ctx)
	go func() {
		defer close(c.done)
		if err := c.collector.Run(ctx); err != nil {
			c.log.Error("nothing is collected", "cause", err.Error())
		}
	}()
}

func (c *collectorRun) stop() {
	if c.cancel != nil {
		c.cancel()
		<-c.done
	}
	if c.client != nil {
		c.client.Close()
	}
}
