package intake

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/cmd/sources"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
)

// savedYearMin is the minimum year for --saved.
const savedYearMin = 1900

// documentImport imports documents: saved copies of one page, read by the source's definition.
type documentImport struct {
	definition *source.Definition
	page       int
	saved      time.Time // time of saving; if zero, every rate must have a date
}

// importDocuments imports saved documents of a source. It parses all of them before the first import.
func importDocuments(ctx context.Context, p *process.Process, o importOptions, names []string) error {
	reference, err := node.LoadReferenceData(o.Config.Catalogue, o.Config.Definitions)
	if err != nil {
		return err
	}
	definition, err := sources.FindDefinition(reference.Sources, o.source)
	if err != nil {
		return err
	}
	page, err := sources.FindPage(definition, o.page)
	if err != nil {
		return err
	}
	if !o.saved.IsZero() && (o.saved.After(p.Clock()) || o.saved.UTC().Year() < savedYearMin) {
		return exit.Errorf(exit.Usage, "--saved %s: want an instant in the past, from %d on", terminal.FormatInstant(o.saved), savedYearMin)
	}
	var results []source.Result
	for _, name := range names {
		document, err := sources.ReadDocument(ctx, p, name)
		if err != nil {
			return err
		}
		result, err := definition.Parse(page, document)
		if err != nil {
			return exit.Errorf(exit.NoInput, "%s is not a document of %s: %w", name, definition.ID, err)
		}
		if count := undated(&result); count > 0 && o.saved.IsZero() {
			return exit.Errorf(exit.Usage, "%s: %d of its %s have no date; say when it was saved with --saved INSTANT", name, count,
				terminal.Plural(len(result.Observations), "rate"))
		}
		results = append(results, result)
	}
	return withTarget(ctx, p, o, func(target *importTarget, report *report) error {
		d := &documentImport{definition, page, o.saved}
		return importEach(p, target, report, len(results), func(fi *fileImport, i int) (string, error) {
			return names[i], d.importDocument(ctx, fi, names[i], &results[i])
		})
	})
}

// undated returns the number of rates without a date in the document. They can be imported only if the time of saving
// is known.
func undated(result *source.Result) int {
	count := 0
	for i := range result.Observations {
		if result.Observations[i].EffectiveDate.IsZero() {
			count++
		}
	}
	return count
}

// importDocument imports one document in batches. If ctx ends before the final batch, the earlier batches are imported;
// the same command imports the rest.
func (d *documentImport) importDocument(ctx context.Context, fi *fileImport, name string, result *source.Result) error {
	start := fi.clock()
	fi.sources, fi.counts.unit = nil, "row"
	for _, note := range result.Notes {
		fi.report.warn(fmt.Sprintf("%s: %s", name, note))
	}
	observedAt := start
	if !d.saved.IsZero() {
		observedAt = d.saved
	}
	refreshes := d.refreshes(result, observedAt)
	for len(refreshes) > 0 {
		if ctx.Err() != nil {
			return exit.Errorf(exit.Interrupted, "%s: interrupted; the same command imports the rest", name)
		}
		size := batchSize(refreshes)
		if err := fi.submit(collectors.Batch{Refreshes: refreshes[:size]}, name); err != nil {
			return err
		}
		refreshes = refreshes[size:]
		fi.counts.elapsed = fi.clock().Sub(start)
	}
	return nil
}

// batchSize returns the number of refreshes in the next batch. A refresh is a source's observations at one time.
func batchSize(refreshes []engine.Refresh) int {
	count := 0
	for i := range refreshes {
		if count += len(refreshes[i].Observations); count >= batchObservationsMin {
			return i + 1
		}
	}
	return len(refreshes)
}

// refreshes groups the rates of a document by day; each result is the source's observations of one day. Rates with a
// date are history of that day. Rates without a date, or with one after observedAt, get the time observedAt.
func (d *documentImport) refreshes(result *source.Result, observedAt time.Time) []engine.Refresh {
	dated := map[engine.Date][]engine.Observation{}
	var undated []engine.Observation
	for _, observation := range result.Observations {
		if day := observation.EffectiveDate; day.IsZero() || day > engine.DateOf(observedAt) {
			undated = append(undated, observation)
		} else {
			dated[day] = append(dated[day], observation)
		}
	}
	pageResult := source.Result{History: slices.Clone(result.History), Observations: undated}
	for day, observations := range dated {
		pageResult.History = append(pageResult.History, source.HistoryDay{Date: day, Observations: observations})
	}
	results := make([]source.Result, len(d.definition.Pages))
	results[d.page] = pageResult
	return collectors.BuildRefreshes(d.definition, results, observedAt, time.Time{})
}
