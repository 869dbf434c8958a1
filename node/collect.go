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
	c = c.filled()
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

// collection is what collects beside a node. It may be replaced while it works.
type collection struct {
	fresh func(*source.Set) *collecting
	now   atomic.Pointer[collecting]

	mu      sync.Mutex
	ctx     context.Context // of start, nil before it
	resting bool            // another node of the cluster collects
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
func newCollection(c *Config, system *actors.System, set *source.Set) *collection {
	all := &collection{fresh: func(set *source.Set) *collecting { return newCollecting(c, system, set) }}
	all.now.Store(all.fresh(set))
	return all
}

func newCollecting(c *Config, system *actors.System, set *source.Set) *collecting {
	one := &collecting{set: set, log: c.Logger, ended: make(chan struct{})}
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
		Done: doneBy(system, c.Logger), Random: c.newRandom(), Logger: c.Logger, Spread: spread, CatchUpSpread: catchUp,
		HistoryDays: collectors.HistoryDaysLive,
	})
	return one
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
	c.ctx = nil
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
	if c.resting = !own; c.resting {
		c.renew(c.present().set)
	}
	c.goOn()
}

// renew puts a collector that asks nobody yet in the place of the present one.
func (c *collection) renew(set *source.Set) {
	c.present().stop()
	c.now.Store(c.fresh(set))
}

// goOn starts the present collector if it is to collect now.
func (c *collection) goOn() {
	if c.ctx != nil && !c.resting {
		c.present().start(c.ctx)
	}
}

// doneBy tells what the log of a node has of each source: asked once, when collecting begins.
func doneBy(system *actors.System, log *slog.Logger) func(string) time.Time {
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

func (c *collecting) start(ctx context.Context) {
	if c.collector == nil || c.cancel != nil {
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
