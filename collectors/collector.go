package collectors

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// Fetcher downloads a page of a source. The definition d describes how to fetch and read the source; page is an index
// in d.Pages. Fetch must return soon after ctx ends. The error is a *source.Failure.
type Fetcher interface {
	Fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, error)
}

// Sink publishes a Collector's rates. It is a part of engine.Ingester. A Refresh contains the observations (rates) of
// one source at one time. The Receipt tells which observations were accepted. After a nil error the accepted ones are
// durable.
type Sink interface {
	Observe([]engine.Refresh) (engine.Receipt, error)
}

// Config configures a Collector. Definitions, Fetcher and Clock are required, and Sink for Run. All other fields may be
// zero.
type Config struct {
	Definitions []*source.Definition
	Fetcher     Fetcher
	Sink        Sink
	// Clock is the wall clock. It determines the next scheduled time (slot). It may be set forward or back, because
	// waits use timers.
	Clock func() time.Time
	// Schedule determines the slots.
	Schedule Schedule
	// LastSlot returns the newest slot with published rates of a source, or zero. Run calls it once for each source,
	// and does not fetch the source for this slot again. nil = every restart fetches all sources for the newest slot.
	LastSlot func(sourceID string) time.Time
	// Baseline returns the newest durable Refresh.Baseline of a source, or "". Run calls it once for each source. nil =
	// a restart forgets the usual quotes of sources.
	Baseline func(sourceID string) string
	// Random is the source of jitter. nil = all nodes use the same numbers, and fetch a source in the same second.
	Random *rand.Rand
	// Archive stores the fetched documents. nil = none.
	Archive *archive.Writer
	// Logger logs changes in the health of sources. nil = nothing is logged.
	Logger *slog.Logger

	// Jitter spreads the load of a slot: each source is fetched at a random time up to Jitter after the slot. A slot
	// missed before a start or a wake-up has no jitter. 0 = 5 min, negative = none. At most half the time between two
	// slots.
	Jitter time.Duration
	// Concurrency is the number of sources fetched and parsed at the same time. 0 = 8. Each may need memory for a
	// document of 10 MB and its parsed form.
	Concurrency int
	// HistoryDays is the number of a workbook's past days that are published at each slot. 0 = all days, 35 years in a
	// workbook of the central bank. A live node uses HistoryDaysLive.
	HistoryDays int
}

// HistoryDaysLive is Config.HistoryDays of a live node: enough to fill gaps after a downtime, and to correct recent
// days.
const HistoryDaysLive = 45

const (
	jitterDefault      = 5 * time.Minute
	sourceTimeout      = 45 * time.Second // for all pages of a source together; one Fetch takes up to 30 s
	concurrencyDefault = 8
)

func (c Config) withDefaults() Config {
	if c.LastSlot == nil {
		c.LastSlot = func(string) time.Time { return time.Time{} }
	}
	if c.Baseline == nil {
		c.Baseline = func(string) string { return "" }
	}
	if c.Random == nil {
		c.Random = rand.New(rand.NewPCG(0, 0))
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Jitter = max(cmp.Or(c.Jitter, jitterDefault), 0)
	c.Concurrency = cmp.Or(c.Concurrency, concurrencyDefault)
	return c
}

// Collector fetches every source at every slot and publishes the rates. It is safe for concurrent use.
type Collector struct {
	config    Config
	runners   []*runner     // sorted by source id
	semaphore chan struct{} // one element for each source being fetched or parsed
	running   atomic.Bool   // true = Run was called
	ended     chan struct{} // closed when Run returns

	allFailing, someFailing engine.Fault // the two faults that Condition reports

	parse func(d *source.Definition, page int, doc *source.Document) (source.Result, error)
}

// New returns a collector.
func New(c Config) *Collector {
	c = c.withDefaults()
	byID := func(a, b *source.Definition) int { return cmp.Compare(a.ID, b.ID) }
	c.Definitions = slices.SortedFunc(slices.Values(c.Definitions), byID)
	collector := &Collector{config: c, semaphore: make(chan struct{}, max(c.Concurrency, 1)), ended: make(chan struct{}), parse: (*source.Definition).Parse}
	for _, d := range c.Definitions {
		collector.runners = append(collector.runners, &runner{
			collector: collector, definition: d, seed: c.Random.Uint64(), catchUp: true,
			requests: make(chan chan<- tryResult), health: newHealth(d),
		})
	}
	return collector
}

// Run fetches and publishes the sources at each slot until ctx ends and all its goroutines have ended. Each source has
// its own goroutine, so a failing, hanging or panicking source does not affect the others. Run returns an error only
// for a second call.
func (c *Collector) Run(ctx context.Context) error {
	if c.running.Swap(true) {
		return errors.New("collect: this collector has run already; make a new one")
	}
	defer close(c.ended)
	var wg sync.WaitGroup
	for _, r := range c.runners {
		if r.definition.Disabled == "" {
			r.resume(c.config.LastSlot(r.definition.ID), c.config.Baseline(r.definition.ID))
			wg.Go(func() { r.run(ctx) })
		}
	}
	wg.Wait()
	<-ctx.Done() // if every source is disabled, wg.Wait returns at once
	return nil
}

// Health returns the health of every source, sorted by id.
func (c *Collector) Health() []Health {
	healths := make([]Health, len(c.runners))
	for i, r := range c.runners {
		healths[i] = r.healthCopy()
	}
	return healths
}

// now returns the wall clock time without the monotonic reading, so that comparisons notice if the clock was set.
func (c *Collector) now() time.Time { return c.config.Clock().Round(0).UTC() }

// runLimited waits for the semaphore and calls work with sourceTimeout. It returns false if ctx ends before that.
func (c *Collector) runLimited(ctx context.Context, work func(context.Context)) bool {
	select {
	case c.semaphore <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-c.semaphore }()
	if ctx.Err() != nil {
		return false
	}
	workCtx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	work(workCtx)
	return true
}

// Schedule determines the slots (scheduled times for fetching). They are the results of time.Time.Truncate with this
// duration, for demos and tests, or those of Daily. All nodes must use the same slots.
type Schedule time.Duration

// Daily is the schedule of live nodes: 08:00, 12:00 and 17:00 in Santo Domingo, which has no daylight saving time.
const Daily Schedule = 0

// slotSpanMax is longer than the time between two slots of Daily.
const slotSpanMax = 24 * time.Hour

// Last returns the newest slot at or before now. For Daily it starts from a slot that is certainly in the past.
func (s Schedule) Last(now time.Time) time.Time {
	if s != Daily {
		return now.UTC().Truncate(time.Duration(s))
	}
	last := engine.NextRefresh(now.Add(-slotSpanMax))
	for next := engine.NextRefresh(last); !next.After(now); next = engine.NextRefresh(last) {
		last = next
	}
	return last
}

// Next returns the first slot after a time. For Daily, API clients get the same time as the next refresh.
func (s Schedule) Next(after time.Time) time.Time {
	if s != Daily {
		return s.Last(after).Add(time.Duration(s))
	}
	return engine.NextRefresh(after)
}
