package collectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/suggest"
	"github.com/tasard/tasard/engine"
)

// clockCheckMax is the maximum wait of a runner between two readings of the clock. The runner thus notices that the
// clock was set, or that the machine was suspended.
const clockCheckMax = time.Minute

// A runner.slot that is more than clockErrorMin in the future comes from a wrong clock, and is ignored. Otherwise the
// source would not be collected until that slot.
const clockErrorMin = 24 * time.Hour

// runner fetches one source at each slot and publishes its rates. Only its goroutine (run) uses the fields from slot to
// learnt.
type runner struct {
	collector  *Collector
	definition *source.Definition
	seed       uint64 // of the jitter

	slot    time.Time // current slot: the newest begun
	pending bool      // the slot has not been tried yet
	nextTry time.Time // time of that try
	catchUp bool      // plan was not called yet; its first call may begin a missed slot
	learnt  Baseline  // history of the source

	requests chan chan<- tryResult // of RunNow; each gets at most one result and is closed

	mu     sync.Mutex
	health Health // guarded by mu
}

// resume restores the state of an earlier process: the newest slot with published rates, and the encoded Baseline.
func (r *runner) resume(slot time.Time, learnt string) {
	r.slot = slot
	var err error
	if r.learnt, err = DecodeBaseline(learnt); err != nil {
		r.collector.config.Logger.Warn("what the source gave before is forgotten and learnt again", "source", r.definition.ID, "cause", err.Error())
	}
	r.updateHealth(func(h *Health) {
		h.LastSlot, h.Baseline = slot, r.learnt
		h.Confirmed = h.Confirmed || !slot.IsZero()
	})
}

func (r *runner) run(ctx context.Context) {
	for ctx.Err() == nil {
		now := r.collector.now()
		next := r.plan(now)
		r.updateHealth(func(h *Health) { h.NextRun = next })
		if wait := next.Sub(now); wait > 0 {
			r.pause(ctx, min(wait, clockCheckMax))
		} else {
			r.try(ctx)
		}
	}
}

// pause waits until the span has passed or ctx ends. A request of RunNow ends the wait with a try.
func (r *runner) pause(ctx context.Context, span time.Duration) {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case reply := <-r.requests:
		r.tryNow(ctx, reply)
	}
}

// plan returns the time of the next try. If a newer slot is due, it first makes that slot the current one.
func (r *runner) plan(now time.Time) time.Time {
	if r.slot.After(now.Add(clockErrorMin)) {
		r.collector.config.Logger.Warn("the last slot is in the future: the clock is or was wrong",
			"source", r.definition.ID, "slot", r.slot, "now", now)
		r.slot = time.Time{}
	}
	if newest := r.collector.config.Schedule.Last(now); newest.After(r.slot) {
		r.beginSlot(newest, now)
	}
	r.catchUp = false
	if r.pending {
		return r.nextTry
	}
	after := now
	if r.slot.After(now) { // the clock was set back
		after = r.slot
	}
	return r.timeOf(r.collector.config.Schedule.Next(after))
}

// beginSlot makes slot the current one, which has not been tried.
func (r *runner) beginSlot(slot, now time.Time) {
	r.slot, r.pending, r.nextTry = slot, true, r.timeOf(slot)
	if r.catchUp {
		r.nextTry = now // no jitter: nodes do not start at the same moment
	}
}

// timeOf returns the time at which the source is fetched for a slot: after a random jitter up to Config.Jitter, but at
// most half the time to the next slot. In a demo, slots may be seconds apart.
func (r *runner) timeOf(slot time.Time) time.Time {
	span := min(r.collector.config.Jitter, r.collector.config.Schedule.Next(slot).Sub(slot)/2)
	random := rand.New(rand.NewPCG(r.seed, uint64(slot.Unix()))) //nolint:gosec // G115: any bits do
	return slot.Add(time.Duration(random.Int64N(int64(span) + 1)))
}

// try reads all pages and publishes the results for the slot. If the slot was tried before (RunNow), it publishes
// them without a slot. It returns false if ctx ended or a newer slot began before it read anything.
func (r *runner) try(ctx context.Context) (tryResult, bool) {
	c := r.collector
	a := tryResult{late: !r.pending}
	started := c.runLimited(ctx, func(ctx context.Context) {
		if !c.config.Schedule.Last(c.now()).Equal(r.slot) {
			return // a newer slot began during the wait for the semaphore
		}
		a.startedAt = c.now()
		r.updateHealth(func(h *Health) { h.Running, h.LastTry = a.startedAt, a.startedAt })
		a.pages = c.read(ctx, r.definition, allPages(r.definition))
	})
	if started && !a.startedAt.IsZero() && ctx.Err() == nil {
		a.published, a.publishFailure = r.publish(a.pages, a.late)
	}
	if !started || a.startedAt.IsZero() || ctx.Err() != nil && (a.publishFailure != nil || len(a.published.refreshes) == 0) {
		r.updateHealth(func(h *Health) { h.Running = time.Time{} }) // the node is stopping; not the source's fault
		return tryResult{}, false
	}
	a.endedAt, r.pending = c.now(), false
	r.record(a)
	return a, true
}

// publishOutcome is the result of publishing the rates of a try. The receipt tells which observations the engine
// accepted.
type publishOutcome struct {
	refreshes    []engine.Refresh
	historyCount int // refreshes[:historyCount] contain past days, the others current quotes
	receipt      engine.Receipt
}

// publish publishes the rates of the pages read, and updates the Baseline. It returns a failure after an error or panic
// of Config.Sink, and if the engine rejects all rates.
func (r *runner) publish(outcome pageResults, late bool) (published publishOutcome, failure *source.Failure) {
	if len(outcome.succeeded()) == 0 {
		return publishOutcome{}, nil
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			published, failure = publishOutcome{}, r.collector.panicFailure(r.definition, panicked)
		}
	}()
	observedAt := r.collector.now().Truncate(time.Second) // the API publishes times in whole seconds
	results := trimHistory(outcome.results, r.collector.config.HistoryDays, observedAt)
	published.refreshes = publishable(BuildRefreshes(r.definition, results, observedAt, r.slot))
	isCurrent := func(refresh engine.Refresh) bool { return !refresh.Slot.IsZero() }
	if published.historyCount = slices.IndexFunc(published.refreshes, isCurrent); published.historyCount < 0 {
		published.historyCount = len(published.refreshes)
	}
	current, learnt := published.refreshes[published.historyCount:], r.learnt
	if !late {
		learnt = r.learnt.after(r.runOf(results, observedAt))
	}
	for i := range current {
		switch {
		case late: // the engine accepts a source and currency only once for a slot
			current[i].Slot, current[i].Complete = time.Time{}, false
		case i == len(current)-1: // rates and Baseline become durable together
			current[i].Baseline = learnt.Encode()
		}
	}
	if len(published.refreshes) > 0 {
		if published.receipt, failure = r.observe(published.refreshes); failure != nil {
			return publishOutcome{}, failure
		}
	}
	r.learnt = learnt
	return published, published.failure()
}

// runOf returns the quotes of a try for the baseline.
func (r *runner) runOf(results []source.Result, at time.Time) baselineRun {
	run := baselineRun{slot: r.slot, at: at, complete: func(currency string) bool { return isCurrencyComplete(r.definition, results, currency) }}
	for i := range results {
		run.observations = append(run.observations, results[i].Observations...)
	}
	return run
}

func (r *runner) observe(refreshes []engine.Refresh) (engine.Receipt, *source.Failure) {
	receipt, err := r.collector.config.Sink.Observe(refreshes)
	if err != nil {
		failure := source.Failf(source.Internal, "publish %d refreshes: %v", len(refreshes), err)
		failure.Cause = err
		return engine.Receipt{}, failure
	}
	return receipt, nil
}

// PageReport is the result of reading one page.
type PageReport struct {
	Page    int             // index in Definition.Pages
	Name    string          // name of the page in the definition
	Digest  string          // SHA-256 of the document; "" = no document was fetched
	Notes   []string        // skipped parts of the document, with reasons
	Failure *source.Failure // nil = the page was read
}

// Report is the result of Check or RunNow. Its Observations were sent to the sink: the two sides of a quote are in one
// observation, even from two pages.
type Report struct {
	SourceID     string
	Pages        []PageReport
	Observations []engine.Observation // current quotes of all pages
	Refusals     []engine.Refusal     // by index of Observations; Reason "" = accepted
	HistoryDays  int                  // number of past days with quotes, over all pages
	Notes        []string
	Failure      *source.Failure // a page failed, or the sink accepted nothing; nil = neither
	Duration     time.Duration
}

// Check fetches and parses a source once, for a collector that does not run. Its rates belong to no slot, and
// Config.Sink decides what becomes of them; nil = nothing. The source may be disabled. The report contains the source's
// failure. Check returns an error for an unknown source or the end of ctx.
func (c *Collector) Check(ctx context.Context, id string) (Report, error) {
	r, found := c.find(id)
	if !found {
		return Report{}, fmt.Errorf("check %q: there is no such source", id)
	}
	a := tryResult{late: true, startedAt: c.now()}
	r.slot = c.config.Schedule.Last(a.startedAt)
	if !c.runLimited(ctx, func(ctx context.Context) { a.pages = c.read(ctx, r.definition, allPages(r.definition)) }) || ctx.Err() != nil {
		return Report{}, fmt.Errorf("check %q: %w", id, context.Cause(ctx))
	}
	if c.config.Sink != nil {
		a.published, a.publishFailure = r.publish(a.pages, a.late)
	}
	a.endedAt = c.now()
	return r.report(&a), nil
}

func (c *Collector) find(id string) (*runner, bool) {
	i, found := slices.BinarySearchFunc(c.runners, id, func(r *runner, id string) int { return cmp.Compare(r.definition.ID, id) })
	if !found {
		return nil, false
	}
	return c.runners[i], true
}

// allPages returns the indexes of all pages, without substitutes (pages read only in place of another).
func allPages(d *source.Definition) []int {
	var pages []int
	for i := range d.Pages {
		if d.Pages[i].InsteadOf == "" {
			pages = append(pages, i)
		}
	}
	return pages
}

// pageResults is what a try has read.
type pageResults struct {
	results []source.Result // by index in Definition.Pages; zero for unread pages
	pages   []PageReport    // pages without those that are read only in place of another, in order
	failure *source.Failure // of the first failed page; nil = none
}

// succeeded returns the indexes of the pages read.
func (r *pageResults) succeeded() []int {
	var pages []int
	for i := range r.pages {
		if r.pages[i].Failure == nil {
			pages = append(pages, r.pages[i].Page)
		}
	}
	return pages
}

// read fetches and parses pages one after the other. For a failed page it tries the substitutes, then continues.
func (c *Collector) read(ctx context.Context, d *source.Definition, pages []int) pageResults {
	outcome := pageResults{results: make([]source.Result, len(d.Pages))}
	for _, page := range pages {
		report := PageReport{Page: page, Name: d.Pages[page].Name}
		result, failure := c.readPage(ctx, d, page, &report)
		if failure != nil && failure.Kind != source.Blocked {
			if instead, ok := c.readInstead(ctx, d, page, &report); ok {
				instead.Notes = append(instead.Notes, fmt.Sprintf("read from another address: %v", failure))
				result, failure = instead, nil
			}
		}
		if failure != nil {
			failure.Page = cmp.Or(failure.Page, report.Name)
			report.Failure = failure
			outcome.failure = cmp.Or(outcome.failure, failure)
		} else {
			outcome.results[page] = result
			report.Notes = result.Notes
		}
		outcome.pages = append(outcome.pages, report)
	}
	return outcome
}

// readInstead reads the first readable substitute of a page. It skips substitutes with the same requests, because
// Definition.Parse has already tried them. It returns false if none can be read.
func (c *Collector) readInstead(
	ctx context.Context, d *source.Definition, page int, report *PageReport,
) (source.Result, bool) {
	for _, other := range d.Alternatives(page) {
		if reflect.DeepEqual(d.Pages[other].Requests, d.Pages[page].Requests) {
			continue
		}
		tried := PageReport{}
		if result, failure := c.readPage(ctx, d, other, &tried); failure == nil {
			report.Digest = tried.Digest
			return result, true
		}
	}
	return source.Result{}, false
}

// readPage fetches and parses a page. A panic of the fetcher or the parser becomes a failure of kind Internal.
func (c *Collector) readPage(
	ctx context.Context, d *source.Definition, page int, report *PageReport,
) (result source.Result, failure *source.Failure) {
	defer func() {
		if panicked := recover(); panicked != nil {
			failure = c.panicFailure(d, panicked)
		}
	}()
	doc, err := c.config.Fetcher.Fetch(ctx, d, page)
	switch {
	case err != nil:
		return source.Result{}, failureOf(err, "fetch")
	case doc == nil:
		return source.Result{}, source.Failf(source.Internal, "fetch: the fetcher returned neither a document nor a failure")
	case ctx.Err() != nil: // the fetcher ignored the end of ctx, so the document may be too late
		return source.Result{}, failureOf(ctx.Err(), "fetch")
	}
	report.Digest = doc.Digest()
	if c.config.Archive != nil {
		c.config.Archive.Keep(d.ID, page, doc)
	}
	result, err = c.parse(d, page, doc)
	switch {
	case err != nil:
		return source.Result{}, withSuggestion(failureOf(err, "read"), d, page, doc)
	case len(result.Observations) == 0 && len(result.History) == 0:
		return source.Result{}, source.Failf(source.Empty, "the page was read and has no rates")
	}
	return result, nil
}

// withSuggestion adds the new places of the rates to the failure of a redesigned page, if package suggest finds them.
func withSuggestion(failure *source.Failure, d *source.Definition, page int, doc *source.Document) *source.Failure {
	isOfOne := d.Institution != "" || d.Pages[page].Institution != ""
	if !isOfOne || failure.Kind != source.Layout && failure.Kind != source.Value && failure.Kind != source.Empty {
		return failure
	}
	if found := suggest.Describe(doc); found != "" {
		failure.Detail += fmt.Sprintf("; the rates seem to have moved: %s; try: tasard sources suggest %s", found, d.ID)
	}
	return failure
}

// panicFailure logs a panic with its stack and returns it as a failure.
func (c *Collector) panicFailure(d *source.Definition, panicked any) *source.Failure {
	c.config.Logger.Error("collecting panicked; other sources continue",
		"source", d.ID, "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
	return source.Failf(source.Internal, "panic: %v; the log has the stack", panicked)
}

// failureOf converts an error to a failure. For a wrapped failure it returns a copy, so that the caller may change it.
// step names the failed action.
func failureOf(err error, step string) *source.Failure {
	var failure *source.Failure
	switch {
	case errors.As(err, &failure):
		copied := *failure
		return &copied
	case errors.Is(err, context.DeadlineExceeded):
		failure = source.Failf(source.Timeout, "%s: not finished within %v", step, sourceTimeout)
	default:
		failure = source.Failf(source.Internal, "%s: %v", step, err)
	}
	failure.Cause = err
	return failure
}

// RunNow reads all pages of a source at once, publishes their rates and returns the result. The rates belong to the
// current slot if it has not been tried yet, otherwise to no slot. The next slot is not affected. RunNow waits for a
// running try.
//
// The error is an *engine.Error: the source is unknown or disabled, or the collector is not running.
func (c *Collector) RunNow(ctx context.Context, id string) (Report, error) {
	r, found := c.find(id)
	switch {
	case !found:
		return Report{}, &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("there is no source %q", id)}
	case r.definition.Disabled != "":
		return Report{}, &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf(
			"the source %s is disabled (%s), so it is not published; tasard sources check %s reads it once", id, r.definition.Disabled, id)}
	}
	stopped := &engine.Error{Code: engine.CodeDataUnavailable, Message: "this node does not collect now: it starts, stops or reads its definitions again; try again"}
	if !c.running.Load() {
		return Report{}, stopped
	}
	reply := make(chan tryResult, 1)
	select {
	case r.requests <- reply:
	case <-c.ended:
		return Report{}, stopped
	case <-ctx.Done():
		return Report{}, stopped
	}
	if a, ok := <-reply; ok {
		return r.report(&a), nil
	}
	return Report{}, stopped
}

// tryNow makes a try for RunNow.
func (r *runner) tryNow(ctx context.Context, reply chan<- tryResult) {
	defer close(reply)
	r.plan(r.collector.now()) // a slot may have begun during the pause
	if a, ok := r.try(ctx); ok {
		reply <- a
	}
}

func (r *runner) report(a *tryResult) Report {
	report := Report{SourceID: r.definition.ID, Pages: a.pages.pages, Failure: a.failure(), Duration: a.endedAt.Sub(a.startedAt)}
	for i := range a.pages.results {
		result := &a.pages.results[i]
		report.Observations = append(report.Observations, result.Observations...)
		report.HistoryDays += len(result.History)
		report.Notes = append(report.Notes, result.Notes...)
	}
	report.Observations = source.JoinSides(report.Observations)
	decisions := a.published.decisions()
	for i := range report.Observations {
		decision, known := decisions[quoteIDOf(&report.Observations[i])]
		if !known {
			decision.Reason = NotPublished
		}
		report.Refusals = append(report.Refusals, decision)
	}
	return report
}

// NotPublished is the reason for a quote that did not reach the sink: publishing failed, there is no sink, or the page
// with the other side could not be read.
const NotPublished engine.Reason = "not_published"

// decisions returns the sink's decision on each current quote, without past days. An accepted quote has no reason.
func (o *publishOutcome) decisions() map[quoteID]engine.Refusal {
	decisions := map[quoteID]engine.Refusal{}
	for i := o.historyCount; i < len(o.refreshes); i++ {
		for _, observation := range o.refreshes[i].Observations {
			decisions[quoteIDOf(&observation)] = engine.Refusal{}
		}
	}
	for _, refusal := range o.receipt.Refused {
		if refusal.Refresh >= o.historyCount {
			decisions[quoteIDOf(&refusal.Observation)] = refusal
		}
	}
	return decisions
}
