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

// productURL tells the operators of sites what the User-Agent is.
const productURL = "https://github.com/tasard/tasard"

// NewClient returns the client that fetches documents for such a node.
func (c Config) NewClient() *fetch.Client {
	c = c.withDefaults()
	config := fetch.Config{
		Clock: c.Clock, Random: c.newRandom(), UserAgent: userAgent(c.Version, c.Collect.Contact), Dial: c.Collect.Dial, Roots: c.Collect.Roots,
		Pause: c.Collect.Pause,
	}
	if c.Definitions != "" { // certificates are next to the operator's definitions
		files := os.DirFS(c.Definitions)
		config.CA = func(name string) ([]byte, error) { return fs.ReadFile(files, name) }
	}
	return fetch.New(config)
}

// newRandom returns pseudo-random numbers, which spread times.
func (c *Config) newRandom() *rand.Rand { return rand.New(rand.NewPCG(c.seed(), c.seed())) }

// userAgent returns a User-Agent with the program, its version and a contact.
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

// liveCollector is the collector of a node. It can be replaced while it runs.
type liveCollector struct {
	newRun func(*source.Set) *collectorRun
	active atomic.Pointer[collectorRun]

	mu     sync.Mutex
	ctx    context.Context // of start; nil before it
	paused bool            // another node of the cluster collects
}

// collectorRun is a collector with its definitions.
type collectorRun struct {
	set       *source.Set
	collector *collectors.Collector // nil = this node does not collect
	client    *fetch.Client
	log       *slog.Logger

	cancel context.CancelFunc // nil = not started
	done   chan struct{}
}

// newLiveCollector returns a collector that is not started.
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
	jitter := c.Collect.Spread
	if jitter == 0 {
		jitter = -1 // none; 0 would be the default
	}
	one.client = c.NewClient()
	one.collector = collectors.New(collectors.Config{
		Definitions: set.Definitions(), Fetcher: one.client, Sink: system, Clock: c.Clock, Schedule: c.Collect.Schedule,
		LastSlot: lastSlots(system, c.Logger), Random: c.newRandom(), Logger: c.Logger, Jitter: jitter,
		HistoryDays: collectors.HistoryDaysLive,
	})
	return one
}

// activeRun returns the present collector.
func (c *liveCollector) activeRun() *collectorRun { return c.active.Load() }

// start collects until stop, except while paused. The node must be ready, so that slots in its log are not collected
// again.
func (c *liveCollector) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = ctx
	c.startIfActive()
}

// stop stops collecting and waits: nothing reaches the node afterwards.
func (c *liveCollector) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = nil
	c.activeRun().stop()
}

// replace goes on with other definitions. Collections in progress start again; the health of sources is reset.
func (c *liveCollector) replace(set *source.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.swap(set)
	c.startIfActive()
}

// setActive pauses or resumes. After a pause nothing is in progress.
func (c *liveCollector) setActive(own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused = !own; c.paused {
		c.swap(c.activeRun().set)
	}
	c.startIfActive()
}

// swap replaces the present collector with one that is not started.
func (c *liveCollector) swap(set *source.Set) {
	c.activeRun().stop()
	c.active.Store(c.newRun(set))
}

// startIfActive starts the present collector unless stopped or paused.
func (c *liveCollector) startIfActive() {
	if c.ctx != nil && !c.paused {
		c.activeRun().start(c.ctx)
	}
}

// lastSlots returns a function with the newest slot of each source in the log, which is queried once.
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
