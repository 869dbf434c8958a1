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

// Fetcher gets a page of a source. It must return soon after the end of ctx; the error is a *source.Failure.
type Fetcher interface {
	Fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, error)
}

// Sink takes in what was collected: engine.Ingester, as far as collectors need it. When Observe returns without error, what
// the receipt counts is durable.
type Sink interface {
	Observe([]engine.Refresh) (engine.Receipt, error)
}

// Config says what is collected, how and when. Definitions, Fetcher, Sink and Clock are required, Sink by Run alone; the zero
// value of everything else is good.
type Config struct {
	Definitions []*source.Definition
	Fetcher     Fetcher
	Sink        Sink
	// Clock tells the time of day. It may step; slots follow it, pauses between them do not need it.
	Clock func() time.Time
	// Schedule is when sources are asked. nil = Daily.
	Schedule Schedule
	// LastSlot is the newest slot that a source was heard for, zero for none: what a restart must not do again. It is asked once
	// for each source, when Run begins. nil = none; then every restart repeats the newest slot.
	LastSlot func(sourceID string) time.Time
	// Random draws the offsets. nil = always the same ones; then all nodes of the world ask a source at the same second.
	Random *rand.Rand
	// Logger gets what an operator should know. nil discards.
	Logger *slog.Logger

	// Jitter is how long after a slot the last source is asked; each draws its own offset. 0 = 5 min, negative = none.
	// Never more than half of the span to the next slot.
	Jitter time.Duration
	// CatchUpJitter is the same for a slot that is made up for, after a start or a sleep. 0 = 15 s, negative = none.
	CatchUpJitter time.Duration
	// SourceTimeout is how long fetching and reading all pages of a source may take. 0 = 45 s. Less than the fetcher needs for its
	// own retries turns slow sources into failing ones.
	SourceTimeout time.Duration
	// Concurrency is how many sources are fetched and read at once. 0 = 8. Each may hold a document of 10 MB and what it
	// is unpacked to.
	Concurrency int
	// RetryAfter are the pauses before further tries within a slot, each after the end of the try before. nil = 10 and
	// 30 min, empty = no further try. A try that could reach into the next slot is left out.
	RetryAfter []time.Duration
	// BreakerFailures is after how many slots in a row in which nothing could be read a source rests. 0 = 5.
	BreakerFailures int
	// BreakerProbeDays is on every how many days a resting source is tried, in the first slot of the day. 0 = 1.
	BreakerProbeDays int
	// HistoryDays is how many days of the past a document hands over. 0 = all, which for a workbook of the central bank are
	// 35 years at every slot; HistoryDaysLive is for a node that collects.
	HistoryDays int
	// FrozenAfter is how long a source may say the same until it is called frozen. 0 = 30 days.
	FrozenAfter time.Duration
}

// HistoryDaysLive covers every pause that a node makes, and corrections of the last weeks.
const HistoryDaysLive = 45

const (
	jitterDefault           = 5 * time.Minute
	catchUpJitterDefault    = 15 * time.Second
	sourceTimeoutDefault    = 45 * time.Second
	concurrencyDefault      = 8
	breakerFailuresDefault  = 5
	breakerProbeDaysDefault = 1
	frozenAfterDefault      = 30 * 24 * time.Hour
)

func retryAfterDefault() []time.Duration { return []time.Duration{10 * time.Minute, 30 * time.Minute} }

// withDefaults fills in what is zero.
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
	c.CatchUpJitter = max(cmp.Or(c.CatchUpJitter, catchUpJitterDefault), 0)
	c.SourceTimeout = cmp.Or(c.SourceTimeout, sourceTimeoutDefault)
	c.Concurrency = cmp.Or(c.Concurrency, concurrencyDefault)
	c.BreakerFailures = cmp.Or(c.BreakerFailures, breakerFailuresDefault)
	c.BreakerProbeDays = cmp.Or(c.BreakerProbeDays, breakerProbeDaysDefault)
	c.FrozenAfter = cmp.Or(c.FrozenAfter, frozenAfterDefault)
	return c
}

// validate finds what makes a configuration useless.
func (c *Config) validate() error {
	switch {
	case c.Fetcher == nil:
		return errors.New("check configuration: Fetcher is nil")
	case c.Clock == nil:
		return errors.New("check configuration: Clock is nil")
	case c.SourceTimeout < 0 || c.Concurrency < 0 || c.BreakerFailures < 0 || c.BreakerProbeDays < 0 || c.HistoryDays < 0 || c.FrozenAfter < 0:
		return errors.New("check configuration: a limit is negative")
	}
	for i, d := range c.Definitions {
		if i > 0 && c.Definitions[i-1].ID == d.ID {
			return fmt.Errorf("check configuration: two definitions have the id %q", d.ID)
		}
	}
	return nil
}

// Collector asks every source at every slot and hands over what it says. It is safe for concurrent use.
type Collector struct {
	config    Config
	runners   []*runner     // by source id
	semaphore chan struct{} // one token for each source that is being fetched or read
	running   atomic.Bool

	tried, failing          atomic.Int64 // sources, for Condition
	allFailing, someFailing engine.Fault

	parse func(d *source.Definition, page int, doc *source.Document) (source.Result, error)
}

// New makes a collector. It starts nothing; what is wrong with the configuration is the error of Run and Check.
func New(c Config) *Collector {
	c = c.withDefaults()
	byID := func(a, b *source.Definition) int { return cmp.Compare(a.ID, b.ID) }
	c.Definitions = slices.SortedFunc(slices.Values(c.Definitions), byID)
	collector := &Collector{config: c, semaphore: make(chan struct{}, max(c.Concurrency, 1)), parse: (*source.Definition).Parse}
	for _, d := range c.Definitions {
		random := rand.New(rand.NewPCG(c.Random.Uint64(), c.Random.Uint64())) // its own: no source moves another one's offsets
		collector.runners = append(collector.runners, newRunner(collector, d, random))
	}
	return collector
}

// Run collects until ctx ends, and returns when nothing is under way any more. Sources are independent: each has a goroutine
// of its own, and one that fails, hangs or panics changes nothing for the others. The error is nil, or says why it could not
// begin. A collector runs once.
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

// Health is how every source is, by id.
func (c *Collector) Health() []Health {
	all := make([]Health, len(c.runners))
	for i, r := range c.runners {
		all[i] = r.healthCopy()
	}
	return all
}

// now is the time of day, without a monotonic reading: it is compared with slots.
func (c *Collector) now() time.Time { return c.config.Clock().Round(0).UTC() }

// runLimited does work in one of the places, under the budget. It reports false, with nothing done, when ctx ended before a place
// was free. Work that goes on after its deadline loses its place all the same, so that it holds up nobody else.
func (c *Collector) runLimited(ctx context.Context, work func(context.Context)) bool {
	select {
	case c.semaphore <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	var once sync.Once
	release := func() { once.Do(func() { <-c.semaphore }) }
	defer release()
	budget, cancel := context.WithTimeout(ctx, c.config.SourceTimeout)
	defer cancel()
	stop := context.AfterFunc(budget, release)
	defer stop()
	if ctx.Err() != nil {
		return false
	}
	work(budget)
	return true
}
