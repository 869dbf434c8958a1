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

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/fetch"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/wal"
)

const productURL = "https://github.com/tasard/tasard"

// NewClient returns the HTTP client with which the node fetches the documents that have the rates of sources. secrets
// has the secrets that definitions name.
func (c Config) NewClient(secrets SourceSecrets) *fetch.Client {
	c = c.withDefaults()
	config := fetch.Config{
		Clock: c.Clock, Random: c.newRandom(), UserAgent: userAgent(c.Version, c.Collect.Contact), Dial: c.Collect.Dial, Roots: c.Collect.Roots,
		Pause: c.Collect.Pause, Secret: func(name string) string { return secrets[name].Reveal() },
	}
	if c.Definitions != "" { // the directory also has the certificates that definitions of sources name
		files := os.DirFS(c.Definitions)
		config.CA = func(name string) ([]byte, error) { return fs.ReadFile(files, name) }
	}
	return fetch.New(config)
}

// newRandom returns a pseudo-random generator with a random seed.
func (c *Config) newRandom() *rand.Rand { return rand.New(rand.NewPCG(c.seed(), c.seed())) }

// userAgent returns the value of the header User-Agent: the program, its version, and how to contact the operator. It
// has the form of a crawler's, because some sites refuse every client whose name does not begin with Mozilla.
func userAgent(version, contact string) string {
	if version = strings.TrimPrefix(version, "v"); strings.ContainsAny(version, "() ") || version == "" {
		version = "dev"
	}
	comment := "+" + productURL
	if contact != "" {
		comment += "; " + contact
	}
	return fmt.Sprintf("Mozilla/5.0 (compatible; tasard/%s; %s)", version, comment)
}

// liveCollector collects: it fetches the rates of sources at their scheduled times. It uses the newest definitions of
// sources (how the rates of a source are read), which Reload can replace.
type liveCollector struct {
	newRun func(*source.Set, SourceSecrets) *collectorRun
	active atomic.Pointer[collectorRun]
	texts  *quotedTexts

	archive *archive.Writer // keeps fetched documents; nil if Config.Collect.Archive is ""

	mu     sync.Mutex
	ctx    context.Context // argument of start; nil before start and after stop
	paused bool            // another node of the cluster collects
}

// collectorRun is a collector with one set of definitions. It can be started only once.
type collectorRun struct {
	set       *source.Set // sources whose secrets are missing are disabled
	secrets   SourceSecrets
	collector *collectors.Collector // nil if Config.Collect.On is false
	client    *fetch.Client
	log       *slog.Logger

	cancel context.CancelFunc // nil before start
	done   chan struct{}      // closed when collecting has ended
}

func newLiveCollector(c *Config, system *actors.System, set *source.Set, secrets SourceSecrets) *liveCollector {
	live := &liveCollector{texts: newQuotedTexts(system)}
	if c.Collect.On && c.Collect.Archive != "" {
		live.archive, live.texts.archived = c.NewArchive(c.Collect.Archive), true
	}
	live.newRun = func(set *source.Set, secrets SourceSecrets) *collectorRun {
		return newCollectorRun(c, system, live, set, secrets)
	}
	live.active.Store(live.newRun(set, secrets))
	return live
}

// NewArchive returns a writer of an archive, which keeps fetched documents.
func (c Config) NewArchive(dir string) *archive.Writer {
	c = c.withDefaults()
	return archive.New(archive.Config{Dir: dir, Clock: c.Clock, Free: wal.FreeSpace, Logger: c.Logger})
}

func newCollectorRun(c *Config, system *actors.System, live *liveCollector, set *source.Set, secrets SourceSecrets) *collectorRun {
	run := &collectorRun{set: secrets.Apply(set), secrets: secrets, log: c.Logger, done: make(chan struct{})}
	if !c.Collect.On {
		return run
	}
	jitter := c.Collect.Spread
	if jitter == 0 {
		jitter = -1 // each site is read at once; 0 would mean the default of package collectors
	}
	run.client = c.NewClient(secrets)
	run.collector = collectors.New(collectors.Config{
		Definitions: run.set.Definitions(), Fetcher: run.client, Sink: live.texts, Clock: c.Clock, Schedule: c.Collect.Schedule,
		LastSlot: bySource(system.Slots, c.Logger, "the newest slot is collected again"), Random: c.newRandom(), Logger: c.Logger, Jitter: jitter,
		Baseline: bySource(system.Baselines, c.Logger, "what sources usually give is forgotten and learnt again"), HistoryDays: collectors.HistoryDaysLive,
		Archive: live.archive,
	})
	return run
}

func (c *liveCollector) activeRun() *collectorRun { return c.active.Load() }

// start starts collecting. A paused collector starts when setActive resumes it. The node must have read its log.
// Otherwise it would collect again for scheduled times (slots) whose rates are already in its log.
func (c *liveCollector) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = ctx
	if c.archive != nil {
		c.archive.Start()
	}
	c.startIfActive()
}

// stop stops collecting. When it returns, no collection is in progress, and the fetched documents are kept.
func (c *liveCollector) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	started := c.ctx != nil
	c.ctx = nil
	c.activeRun().stop()
	if started && c.archive != nil {
		_ = c.archive.Close() // its error is in the log
	}
}

// tryNow fetches a source at once and publishes its rates.
func (c *liveCollector) tryNow(ctx context.Context, id string) (admin.SourceRun, error) {
	c.mu.Lock()
	run, paused := c.activeRun(), c.paused
	c.mu.Unlock()
	switch {
	case run.collector == nil:
		return admin.SourceRun{}, &engine.Error{Code: admin.CodeNotConfigured, Message: "this node collects nothing: it was started with --no-collect"}
	case paused:
		return admin.SourceRun{}, &engine.Error{Code: engine.CodeDataUnavailable, Message: "another node of the cluster collects; ask that one"}
	}
	report, err := run.collector.RunNow(ctx, id)
	if err != nil {
		return admin.SourceRun{}, err
	}
	return describeRun(&report), nil
}

// replace switches to other definitions of sources, and other secrets for them. It interrupts collections in progress,
// which start again, and resets the health of sources.
func (c *liveCollector) replace(set *source.Set, secrets SourceSecrets) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.swap(set, secrets)
	c.startIfActive()
}

// setActive resumes or pauses collecting. When it returns after pausing, no collection is in progress.
func (c *liveCollector) setActive(active bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused = !active; c.paused {
		run := c.activeRun()
		c.swap(run.set, run.secrets)
	}
	c.startIfActive()
}

// swap stops the active collectorRun, and replaces it by a new one that is not started.
func (c *liveCollector) swap(set *source.Set, secrets SourceSecrets) {
	c.activeRun().stop()
	c.active.Store(c.newRun(set, secrets))
}

// startIfActive starts the active collectorRun. If the collector is stopped or paused, it does nothing.
func (c *liveCollector) startIfActive() {
	if c.ctx != nil && !c.paused {
		c.activeRun().start(c.ctx)
	}
}

// bySource returns a function that returns what the log has about the collection of a source. Its argument is the id of
// the source. Only its first call queries the system. If that fails, it logs the effect.
func bySource[T any](query func() (map[string]T, error), log *slog.Logger, effect string) func(id string) T {
	var values map[string]T
	return func(id string) T {
		if values == nil {
			var err error
			if values, err = query(); err != nil {
				log.Warn(effect, "cause", err.Error())
				values = map[string]T{}
			}
		}
		return values[id]
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
			c.log.Error("collecting failed", "cause", err.Error())
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
