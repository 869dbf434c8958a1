package collectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/suggest"
	"github.com/tasard/tasard/engine"
)

// PageReport is the outcome of reading one page.
type PageReport struct {
	Page    int             // index in Definition.Pages
	Name    string          // name of the page in the definition
	Digest  string          // SHA-256 of the document; "" = no document was fetched
	Notes   []string        // the skipped parts of the document, and why
	Failure *source.Failure // nil = the page was read
}

// Report is the result of Check.
type Report struct {
	SourceID     string
	Pages        []PageReport
	Observations []engine.Observation // current quotes of all pages
	HistoryDays  int                  // number of past days with quotes, summed over all pages
	Notes        []string
	Failure      *source.Failure // of the first page that failed; nil = all pages were read
	Duration     time.Duration
}

// Check fetches and parses a source once and publishes nothing. The source may be disabled. If the source fails, the
// failure is in the report. Check returns an error if the source is unknown, the configuration is invalid or ctx ends.
func (c *Collector) Check(ctx context.Context, id string) (Report, error) {
	if err := c.config.validate(); err != nil {
		return Report{}, err
	}
	r, found := c.find(id)
	if !found {
		return Report{}, fmt.Errorf("check %q: there is no such source", id)
	}
	d := r.definition
	start := c.config.Clock()
	var outcome pageResults
	if !c.runLimited(ctx, func(ctx context.Context) { outcome = c.read(ctx, d, allPages(d)) }) || ctx.Err() != nil {
		return Report{}, fmt.Errorf("check %q: %w", id, context.Cause(ctx))
	}
	report := newReport(d, &outcome)
	report.Duration = c.config.Clock().Sub(start)
	return report, nil
}

func (c *Collector) find(id string) (*runner, bool) {
	i, found := slices.BinarySearchFunc(c.runners, id, func(r *runner, id string) int { return cmp.Compare(r.definition.ID, id) })
	if !found {
		return nil, false
	}
	return c.runners[i], true
}

func newReport(d *source.Definition, outcome *pageResults) Report {
	report := Report{SourceID: d.ID, Pages: outcome.pages, Failure: outcome.failure}
	for i := range outcome.results {
		report.Observations = append(report.Observations, outcome.results[i].Observations...)
		report.HistoryDays += len(outcome.results[i].History)
		report.Notes = append(report.Notes, outcome.results[i].Notes...)
	}
	return report
}

// allPages returns the indexes of all pages, except those that are only read instead of another.
func allPages(d *source.Definition) []int {
	var pages []int
	for i := range d.Pages {
		if d.Pages[i].InsteadOf == "" {
			pages = append(pages, i)
		}
	}
	return pages
}

// pageResults is the outcome of one try to read some pages of a source.
type pageResults struct {
	results []source.Result // by index in Definition.Pages; zero for pages that were not read
	pages   []PageReport    // the pages that were tried, in order
	failure *source.Failure // of the first page that failed; nil = none
}

// succeeded returns the indexes of the pages that were read.
func (r *pageResults) succeeded() []int {
	var pages []int
	for i := range r.pages {
		if r.pages[i].Failure == nil {
			pages = append(pages, r.pages[i].Page)
		}
	}
	return pages
}

// read fetches and parses pages one after the other. If a page fails, it tries the pages that are read instead, and
// then continues with the next.
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

// readInstead reads the first of the pages that are read instead of a page, and that have other requests:
// Definition.Parse has already tried those with the same requests. It returns false if none can be read.
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

// readPage fetches and parses a page. If the fetcher or the parser panics, the page has failed with a failure of kind
// Internal.
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
		return source.Result{}, withPlaces(failureOf(err, "read"), d, page, doc)
	case len(result.Observations) == 0 && len(result.History) == 0:
		return source.Result{}, source.Failf(source.Empty, "the page was read and has no rates")
	}
	return result, nil
}

// withPlaces adds to the failure of a page that has changed where its rates stand now, if they are found.
func withPlaces(failure *source.Failure, d *source.Definition, page int, doc *source.Document) *source.Failure {
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

// failureOf turns an error into a failure. If the error wraps a failure, the result is a copy of it, so that the caller
// may change the result. step names the action that failed.
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
