package collectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// Fetcher downloads a page of a source. Fetch must return soon after the end of ctx; its error is a *source.Failure.
type Fetcher interface {
	Fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, error)
}

// Sink is the part of engine.Ingester that collectors need. When Observe returns no error, what the receipt counts is
// durable.
type Sink interface {
	Observe([]engine.Refresh) (engine.Receipt, error)
}

// Config configures a Collector. Definitions, Fetcher and Clock are required, Sink only by Run; the zero value of
// every other field is usable.
type Config struct {
	Definitions []*source.Definition
	Fetcher     Fetcher
	Sink        Sink
	// Clock is the wall clock. It may be set forward or back: slots follow it, pauses between them do not use it.
	Clock func() time.Time
	// Schedule decides when sources are fetched. nil = Daily.
	Schedule Schedule
	// LastSlot returns the newest slot that a source was published for, zero for none: a restart does not repeat it.
	// It is called once for each source, when Run begins. nil = none; then every restart repeats the newest slot.
	LastSlot func(sourceID string) time.Time
	// Random draws the jitter. nil = always the same numbers; then all nodes fetch a source at the same second.
	Random *rand.Rand
	// Logger gets what an operator should know. nil discards.
	Logger *slog.Logger

	// Jitter is the time after a slot over which the sources are distributed; each draws its own offset. 0 = 5 min,
	// negative = none. It is at most half the time to the next slot.
	Jitter time.Duration
	// Concurrency is how many sources are fetched and parsed at once. 0 = 8. Each may hold a document of 10 MB and
	// its parsed form.
	Concurrency int
	// RetryAfter are the pauses before further tries within a slot, each after the end of the previous try. nil = 10
	// and 30 min, empty = no further try. A try that might reach into the next slot is skipped.
	RetryAfter []time.Duration
	// BreakerFailures is the number of consecutive failed slots after which a source is tried only once a day. 0 = 5.
	BreakerFailures int
	// HistoryDays is how many past days of a document are published. 0 = all, which for a workbook of the central
	// bank are 35 years at every slot; a live node uses HistoryDaysLive.
	HistoryDays int
}

// HistoryDaysLive covers any downtime of a node and corrections of the last weeks.
const HistoryDaysLive = 45

const (
	jitterDefault          = 5 * time.Minute
	catchUpJitterMax       = 15 * time.Second // of a slot that is made up for, after a start or a sleep
	sourceTimeout          = 45 * time.Second // for all pages of a source; the fetcher needs up to 30 s with its retries
	concurrencyDefault     = 8
	breakerFailuresDefault = 5
	frozenAfter            = 30 * 24 * time.Hour // without a change of values a source counts as frozen
)

func retryAfterDefault() []time.Duration { return []time.Duration{10 * time.Minute, 30 * time.Minute} }

func (c Config) withDefaults() Config {
	if c.Schedule == nil {
		c.Schedule = Daily()
	}
	if c.LastSlot == nil {
		c.LastSlot = func(string) time.Time { return time.Time{} }
	}
	if c.Random == nil {
		c.Random = rand.New(rand.NewPCG(0, 0))
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.RetryAfter == nil {
		c.RetryAfter = retryAfterDefault()
	}
	c.Jitter = max(cmp.Or(c.Jitter, jitterDefault), 0)
	c.Concurrency = cmp.Or(c.Concurrency, concurrencyDefault)
	c.BreakerFailures = cmp.Or(c.BreakerFailures, breakerFailuresDefault)
	return c
}

func (c *Config) validate() error {
	switch {
	case c.Fetcher == nil:
		return errors.New("check configuration: Fetcher is nil")
	case c.Clock == nil:
		return errors.New("check configuration: Clock is nil")
	case c.Concurrency < 0 || c.BreakerFailures < 0 || c.HistoryDays < 0:
		return errors.New("check configuration: a limit is negative")
	}
	for i, d := range c.Definitions {
		if i > 0 && c.Definitions[i-1].ID == d.ID {
			return fmt.Errorf("check configuration: two definitions have the id %q", d.ID)
		}
	}
	return nil
}

// Collector fetches every source at every slot and publishes what it reads. It is safe for concurrent use.
type Collector struct {
	config    Config
	runners   []*runner     // by source id
	semaphore chan struct{} // one token for each source that is being fetched or parsed
	running   atomic.Bool

	tried, failing          atomic.Int64 // numbers of sources, for Condition
	allFailing, someFailing engine.Fault

	parse func(d *source.Definition, page int, doc *source.Document) (source.Result, error)
}

// New returns a collector and starts nothing. Run and Check report an invalid configuration.
func New(c Config) *Collector {
	c = c.withDefaults()
	byID := func(a, b *source.Definition) int { return cmp.Compare(a.ID, b.ID) }
	c.Definitions = slices.SortedFunc(slices.Values(c.Definitions), byID)
	collector := &Collector{config: c, semaphore: make(chan struct{}, max(c.Concurrency, 1)), parse: (*source.Definition).Parse}
	for _, d := range c.Definitions {
		random := rand.New(rand.NewPCG(c.Random.Uint64(), c.Random.Uint64())) // its own: the jitter of a source does not depend on other sources
		collector.runners = append(collector.runners, newRunner(collector, d, random))
	}
	return collector
}

// Run collects until ctx ends and returns when nothing is running any more. Each source has a goroutine of its own;
// one that fails, hangs or panics does not affect the others. The error is nil, or says why Run could not begin. A
// Collector runs once.
func (c *Collector) Run(ctx context.Context) error {
	if err := c.config.validate(); err != nil {
		return err
	}
	if c.config.Sink == nil {
		return errors.New("check configuration: Sink is nil")
	}
	if c.running.Swap(true) {
		return errors.New("collect: this collector has run already; make a new one")
	}
	var all sync.WaitGroup
	for _, r := range c.runners {
		if r.definition.Disabled == "" {
			r.resume(c.config.LastSlot(r.definition.ID))
			all.Go(func() { r.run(ctx) })
		}
	}
	all.Wait()
	<-ctx.Done() // with every source disabled there is nothing to do until then
	return nil
}

// Health returns the health of every source, by id.
func (c *Collector) Health() []Health {
	all := make([]Health, len(c.runners))
	for i, r := range c.runners {
		all[i] = r.healthCopy()
	}
	return all
}

// now returns the wall clock without a monotonic reading, because it is compared with slots.
func (c *Collector) now() time.Time { return c.config.Clock().Round(0).UTC() }

// runLimited runs work when the semaphore allows it, with the timeout of a source. It returns false, without running
// work, if ctx ends first. Work that goes on after its timeout loses its token, so that it does not block other
// sources.
func (c *Collector) runLimited(ctx context.Context, work func(context.Context)) bool {
	select {
	case c.semaphore <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	var once sync.Once
	release := func() { once.Do(func() { <-c.semaphore }) }
	defer release()
	budget, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	stop := context.AfterFunc(budget, release)
	defer stop()
	if ctx.Err() != nil {
		return false
	}
	work(budget)
	return true
}
