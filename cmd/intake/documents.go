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

// savedYearMin is the year of the oldest observations that a file, such as an export, can have.
const savedYearMin = 1900

// documentImport takes documents of one source into a node: workbooks, pages, JSON, as somebody saved them.
type documentImport struct {
	definition *source.Definition
	page       int
	saved      time.Time // when somebody saved them, zero = not told: then every rate in them has a date
}

// importDocuments is importFiles for documents of a source. All of them are read before anything is changed.
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
		return exit.Errorf(exit.Usage, "--saved %s: want an instant of the past, since %d", terminal.FormatInstant(o.saved), savedYearMin)
	}
	var answers []source.Result
	for _, name := range names {
		document, err := sources.ReadDocument(ctx, p, name)
		if err != nil {
			return err
		}
		answer, err := definition.Parse(page, document)
		if err != nil {
			return exit.Errorf(exit.NoInput, "%s is no document of %s: %w", name, definition.ID, err)
		}
		if count := undated(&answer); count > 0 && o.saved.IsZero() {
			return exit.Errorf(exit.Usage, "%s: %d of its %s have no date; tell when it was saved with --saved INSTANT", name, count,
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

// undated counts the rates of a document that say nothing of when they were good. Taken as of now they would be wrong rates: who
// knows how long the file has lain there?
func undated(answer *source.Result) int {
	count := 0
	for i := range answer.Observations {
		if answer.Observations[i].EffectiveDate.IsZero() {
			count++
		}
	}
	return count
}

// importDocument takes one document in, in batches. When ctx ends, what was handed over is in; the same command takes in the rest.
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
			return exit.Errorf(exit.Interrupted, "%s: interrupted; the same command takes in the rest", name)
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

// batchSize is how many refreshes are handed over at once.
func batchSize(refreshes []engine.Refresh) int {
	count := 0
	for i := range refreshes {
		if count += len(refreshes[i].Observations); count >= batchObservationsMin {
			return i + 1
		}
	}
	return len(refreshes)
}

// refreshes are what the document says. Whatever has a date is of that day, the newest too: a document that lay in a drawer
// says nothing about today, and says the same whenever it is read. What has none, or one that was still to come, is of at.
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
