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

// savedYearMin is the first year of observations in files.
const savedYearMin = 1900

// documentImport imports documents of one source: workbooks, pages, JSON.
type documentImport struct {
	definition *source.Definition
	page       int
	saved      time.Time // when they were saved, zero = unknown: then every rate in them has a date
}

// importDocuments imports documents. All of them are parsed before anything is changed.
func importDocuments(ctx context.Context, p *process.Process, o importOptions, names []string) error {
	known, err := node.LoadReferenceData(o.node.Catalogue, o.node.Definitions)
	if err != nil {
		return err
	}
	definition, err := sources.FindDefinition(known.Sources, o.source)
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
	var answers []source.Result
	for _, name := range names {
		document, err := sources.ReadDocument(ctx, p, name)
		if err != nil {
			return err
		}
		answer, err := definition.Parse(page, document)
		if err != nil {
			return exit.Errorf(exit.NoInput, "%s is not a document of %s: %w", name, definition.ID, err)
		}
		if count := undated(&answer); count > 0 && o.saved.IsZero() {
			return exit.Errorf(exit.Usage, "%s: %d of its %s have no date; say when it was saved with --saved INSTANT", name, count,
				terminal.Plural(len(answer.Observations), "rate"))
		}
		answers = append(answers, answer)
	}
	return withDataDir(ctx, p, o, func(to *node.Data, report *terminalReport) error {
		d := &documentImport{definition, page, o.saved}
		return importEach(p, to, report, len(answers), func(into *fileImport, i int) (string, error) {
			return names[i], d.importDocument(ctx, into, names[i], &answers[i])
		})
	})
}

// undated counts the rates without a date. They must not be imported as current, because the age of the file is
// unknown.
func undated(answer *source.Result) int {
	count := 0
	for i := range answer.Observations {
		if answer.Observations[i].EffectiveDate.IsZero() {
			count++
		}
	}
	return count
}

// importDocument imports one document in batches. If ctx ends, earlier batches are imported, and the same command
// imports the rest.
func (d *documentImport) importDocument(ctx context.Context, into *fileImport, name string, answer *source.Result) error {
	began := into.clock()
	into.sources, into.counts.unit = nil, "row"
	for _, note := range answer.Notes {
		into.report.warn(fmt.Sprintf("%s: %s", name, note))
	}
	at := began
	if !d.saved.IsZero() {
		at = d.saved
	}
	refreshes := d.refreshes(answer, at)
	for len(refreshes) > 0 {
		if ctx.Err() != nil {
			return exit.Errorf(exit.Interrupted, "%s: interrupted; the same command imports the rest", name)
		}
		size := batchSize(refreshes)
		if err := into.submit(lineBatch{refreshes: refreshes[:size]}, name); err != nil {
			return err
		}
		refreshes = refreshes[size:]
		into.counts.elapsed = into.clock().Sub(began)
		into.report.progress(importProgress{lineCounts: into.counts, file: name})
	}
	return nil
}

// batchSize returns how many refreshes are submitted at once.
func batchSize(refreshes []engine.Refresh) int {
	count := 0
	for i := range refreshes {
		if count += len(refreshes[i].Observations); count >= batchObservationsMin {
			return i + 1
		}
	}
	return len(refreshes)
}

// refreshes returns the contents of a document. Rates with a date belong to that day, the newest too. Rates without a
// date, or with one in the future, belong to at.
func (d *documentImport) refreshes(answer *source.Result, at time.Time) []engine.Refresh {
	dated := map[engine.Date][]engine.Observation{}
	var undated []engine.Observation
	for _, observation := range answer.Observations {
		if day := observation.EffectiveDate; day.IsZero() || day > engine.DateOf(at) {
			undated = append(undated, observation)
		} else {
			dated[day] = append(dated[day], observation)
		}
	}
	past := source.Result{History: slices.Clone(answer.History), Observations: undated}
	for day, observations := range dated {
		past.History = append(past.History, source.HistoryDay{Date: day, Observations: observations})
	}
	answers := make([]source.Result, len(d.definition.Pages))
	answers[d.page] = past
	return collectors.BuildRefreshes(d.definition, answers, at, time.Time{})
}
