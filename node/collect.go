package node

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

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

// NewClient returns the HTTP client for fetching documents from the sources' sites. secrets are the sources' API keys
// and other secrets.
func (c Config) NewClient(secrets SourceSecrets) *fetch.Client {
	c = c.withDefaults()
	config := fetch.Config{
		Clock: c.Clock, UserAgent: userAgent(c.Version, c.Collect.Contact), Dial: c.Collect.Dial, Roots: c.Collect.Roots,
		Pause: c.Collect.Pause, Secret: func(name string) string { return secrets[name].Reveal() },
	}
	if c.Definitions != "" { // the directory may contain certificates that definitions name
		files := os.DirFS(c.Definitions)
		config.CA = func(name string) ([]byte, error) { return source.ReadFile(files, name) }
	}
	return fetch.New(config)
}

// userAgent returns the User-Agent header: the program, its version, and the operator's contact. It looks like a
// crawler's, because some sites refuse clients whose name does not begin with Mozilla.
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

// liveCollector fetches rates from sources at scheduled times. In a cluster it works only between start and pause.
type liveCollector struct {
	config  *Config
	system  *actors.System
	set     *source.Set // definitions of the sources; those with missing secrets are disabled
	client  *fetch.Client
	archive *archive.Writer // stores fetched documents; nil if Config.Collect.Archive is ""

	mu        sync.Mutex
	collector *collectors.Collector // nil if Config.Collect.On is false; runs only once
	paused    bool                  // another node of the cluster collects
	cancel    context.CancelFunc    // nil while collector does not run
	done      chan struct{}         // closed when collecting has ended
}

func newLiveCollector(c *Config, system *actors.System, set *source.Set, secrets SourceSecrets) *liveCollector {
	l := &liveCollector{config: c, system: system, set: secrets.Apply(set)}
	if !c.Collect.On {
		return l
	}
	if c.Collect.Archive != "" {
		l.archive = archive.New(archive.Config{Dir: c.Collect.Archive, Clock: c.Clock, Free: wal.FreeSpace, Logger: c.Logger})
	}
	l.client = c.NewClient(secrets)
	l.collector = l.newCollector()
	return l
}

func (l *liveCollector) newCollector() *collectors.Collector {
	c, jitter := l.config, time.Duration(0) // the default of package collectors
	if c.Collect.Schedule != collectors.Daily {
		jitter = -1
	}
	return collectors.New(collectors.Config{
		Definitions: l.set.Definitions(), Fetcher: l.client, Sink: l.system, Clock: c.Clock, Schedule: c.Collect.Schedule,
		LastSlot: bySource(l.system.Slots, c.Logger, "the newest slot is collected again"), Random: rand.New(rand.NewPCG(c.seed(), c.seed())), Logger: c.Logger, Jitter: jitter,
		Baseline: bySource(l.system.Baselines, c.Logger, "what sources usually give is forgotten and learnt again"), HistoryDays: collectors.HistoryDaysLive,
		Archive: l.archive,
	})
}

func (l *liveCollector) nextSlot() time.Time { return l.config.Collect.Schedule.Next(l.config.Clock()) }

// start starts collecting if it is configured. The node must have read its log, because otherwise it would repeat
// scheduled times (slots) whose rates are already in the log.
func (l *liveCollector) start(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused = false; l.collector == nil {
		return
	}
	ctx, l.cancel = context.WithCancel(ctx)
	collector, done := l.collector, make(chan struct{})
	l.done = done
	l.config.Logger.Info("collecting has begun", "sources", len(l.set.Definitions()), "nextSlot", l.nextSlot().UTC().Format(time.RFC3339))
	go func() {
		defer close(done)
		if err := collector.Run(ctx); err != nil {
			l.config.Logger.Error("collecting failed", "cause", err.Error())
		}
	}()
}

// pause stops collecting until the next start. When it returns, no collection is in progress.
func (l *liveCollector) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused = true; l.cancel != nil {
		l.cancel()
		<-l.done
		l.cancel, l.collector = nil, l.newCollector()
	}
}

// collectedOnce reports whether every source was tried. It is true if the node does not collect.
func (l *liveCollector) collectedOnce() bool {
	collector, _ := l.current()
	return collector == nil || !slices.ContainsFunc(collector.Health(), func(h collectors.Health) bool {
		return h.Runs == 0 && h.LastSlot.IsZero() && h.State != collectors.Disabled
	})
}

// current returns the collector (nil if the node does not collect), and whether another node collects.
func (l *liveCollector) current() (_ *collectors.Collector, paused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.collector, l.paused
}

// progress returns the next fetch time and the failed sources. The time is zero if the node does not collect.
func (l *liveCollector) progress() (next time.Time, failed []string) {
	collector, _ := l.current()
	if collector == nil {
		return time.Time{}, nil
	}
	for _, h := range collector.Health() {
		if h.State == collectors.Failing || h.State == collectors.Quarantined {
			failed = append(failed, h.SourceID)
		}
	}
	return l.nextSlot(), failed
}

// tryNow fetches a source at once and publishes its rates.
func (l *liveCollector) tryNow(ctx context.Context, id string) (admin.SourceRun, error) {
	collector, paused := l.current()
	switch {
	case collector == nil:
		return admin.SourceRun{}, &engine.Error{Code: admin.CodeNotConfigured, Message: "this node collects nothing: it was started with --no-collect"}
	case paused:
		return admin.SourceRun{}, &engine.Error{Code: engine.CodeDataUnavailable, Message: "another node of the cluster collects; ask that one"}
	}
	report, err := collector.RunNow(ctx, id)
	if err != nil {
		return admin.SourceRun{}, err
	}
	return DescribeRun(&report), nil
}

// bySource returns a function that looks up a source ID in the result of query. The first lookup runs query, which
// needs the log to be read. If query fails, the function logs effect and returns zero values.
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
