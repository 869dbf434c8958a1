package collectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// PageReport is what came of one page.
type PageReport struct {
	Page    int
	Name    string // "" when the source has one page
	Digest  string // of the document, "" when none came
	Notes   []string
	Failure *source.Failure // nil = it answered
}

// Report is what Check found.
type Report struct {
	SourceID     string
	Pages        []PageReport
	Observations []engine.Observation // of now, all pages
	HistoryDays  int                  // days of the past, all pages
	Notes        []string
	Failure      *source.Failure // of the first page that failed; nil = all answered
	Duration     time.Duration
}

// Check fetches and reads a source once, now, and stores nothing; a disabled source too. The error says that there is no such
// source, that the configuration is of no use, or that ctx ended; how a source failed stands in the report.
func (c *Collector) Check(ctx context.Context, id string) (Report, error) {
	if err := c.config.validate(); err != nil {
		return Report{}, err
	}
	i, found := slices.BinarySearchFunc(c.runners, id, func(r *runner, id string) int { return cmp.Compare(r.definition.ID, id) })
	if !found {
		return Report{}, fmt.Errorf("check %q: there is no such source", id)
	}
	d := c.runners[i].definition
	began := c.config.Clock()
	var read pageResults
	if !c.runLimited(ctx, func(ctx context.Context) { read = c.read(ctx, d, allPages(d)) }) || ctx.Err() != nil {
		return Report{}, fmt.Errorf("check %q: %w", id, context.Cause(ctx))
	}
	report := Report{
		SourceID: d.ID, Pages: read.pages, Failure: read.failure, Duration: c.config.Clock().Sub(began),
	}
	for i := range read.results {
		report.Observations = append(report.Observations, read.results[i].Observations...)
		report.HistoryDays += len(read.results[i].History)
		report.Notes = append(report.Notes, read.results[i].Notes...)
	}
	return report, nil
}

func allPages(d *source.Definition) []int {
	pages := make([]int, len(d.Pages))
	for i := range pages {
		pages[i] = i
	}
	return pages
}

// pageResults is what came of one try at some pages of a source.
type pageResults struct {
	results []source.Result // by page; the zero Answer for those that gave none
	pages   []PageReport    // of those that were asked, in their order
	failure *source.Failure // of the first page that failed
}

// succeeded are the pages that said something.
func (r *pageResults) succeeded() []int {
	var pages []int
	for i := range r.pages {
		if r.pages[i].Failure == nil {
			pages = append(pages, r.pages[i].Page)
		}
	}
	return pages
}

// pages fetches and reads pages, one after the other; one that fails stops none after it, as long as there is time.
func (c *Collector) read(ctx context.Context, d *source.Definition, pages []int) pageResults {
	read := pageResults{results: make([]source.Result, len(d.Pages))}
	for _, page := range pages {
		report := PageReport{Page: page, Name: d.Pages[page].Name}
		answer, failure := c.readPage(ctx, d, page, &report)
		if failure != nil {
			failure.Page = cmp.Or(failure.Page, report.Name)
			report.Failure = failure
			read.failure = cmp.Or(read.failure, failure)
		} else {
			read.results[page] = answer
			report.Notes = answer.Notes
		}
		read.pages = append(read.pages, report)
	}
	return read
}

// readPage turns a panic in a fetcher or in a reader into a failure of this page.
func (c *Collector) readPage(
	ctx context.Context, d *source.Definition, page int, report *PageReport,
) (answer source.Result, failure *source.Failure) {
	defer func() {
		if thrown := recover(); thrown != nil {
			failure = c.panicFailure(d, thrown)
		}
	}()
	doc, err := c.config.Fetcher.Fetch(ctx, d, page)
	switch {
	case err != nil:
		return source.Result{}, failureOf(err, "fetch")
	case doc == nil:
		return source.Result{}, source.Failf(source.Internal, "fetch: found neither a document nor a failure; mend the fetcher")
	case ctx.Err() != nil: // a fetcher that does not look at its time: what it brings so late may belong to another slot
		return source.Result{}, failureOf(ctx.Err(), "fetch")
	}
	report.Digest = doc.Digest()
	answer, err = c.parse(d, page, doc)
	switch {
	case err != nil:
		return source.Result{}, failureOf(err, "read")
	case len(answer.Observations) == 0 && len(answer.History) == 0:
		return source.Result{}, source.Failf(source.Empty, "the page was read, but nothing stands in it")
	}
	return answer, nil
}

// panicFailure is the failure that a panic amounts to; where it happened goes to the log.
func (c *Collector) panicFailure(d *source.Definition, thrown any) *source.Failure {
	c.config.Logger.Error("collecting panicked; the other sources go on",
		"source", d.ID, "panic", fmt.Sprint(thrown), "stack", string(debug.Stack()))
	return source.Failf(source.Internal, "panic: %v; the log has the stack", thrown)
}

// failureOf is the failure in an error; one that is none yet is our own fault, unless time ran out. It is a copy: the page is
// written into it.
func failureOf(err error, step string) *source.Failure {
	var failure *source.Failure
	switch {
	case errors.As(err, &failure):
		own := *failure
		return &own
	case errors.Is(err, context.DeadlineExceeded):
		failure = source.Failf(source.Timeout, "%s: found no end within the time for this source", step)
	default:
		failure = source.Failf(source.Internal, "%s: %v", step, err)
	}
	failure.Cause = err
	return failure
}
