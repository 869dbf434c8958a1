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

// documents takes documents of one source into a node: workbooks, pages, JSON, as somebody saved them.
type documents struct {
	definition *source.Definition
	page       int
	saved      time.Time // when somebody saved them, zero = not told: then every rate in them has a date
}

// importDocuments is importFiles for documents of a source. All of them are read before anything is changed.
func importDocuments(ctx context.Context, p *process.Process, o importOptions, names []string) error {
	known, err := node.LoadReference(o.node.Catalogue, o.node.Definitions)
	if err != nil {
		return err
	}
	definition, err := sources.Known(known.Sources, o.source)
	if err != nil {
		return err
	}
	page, err := sources.Page(definition, o.page)
	if err != nil {
		return err
	}
	if !o.saved.IsZero() && (o.saved.After(p.Clock()) || o.saved.UTC().Year() < savedYearMin) {
		return exit.Fail(exit.Usage, "--saved %s: want an instant of the past, since %d", terminal.Instant(o.saved), savedYearMin)
	}
	var answers []source.Answer
	for _, name := range names {
		document, err := sources.ReadDocument(ctx, p, name)
		if err != nil {
			return err
		}
		answer, err := definition.Parse(page, document)
		if err != nil {
			return exit.Fail(exit.NoInput, "%s is no document of %s: %w", name, definition.ID, err)
		}
		if count := undated(&answer); count > 0 && o.saved.IsZero() {
			return exit.Fail(exit.Usage, "%s: %d of its %s have no date; tell when it was saved with --saved INSTANT", name, count,
				terminal.Counted(len(answer.Observations), "rate"))
		}
		answers = append(answers, answer)
	}
	return onNode(ctx, p, o, func(to *node.Data, report *report) error {
		d := &documents{definition, page, o.saved}
		return importEach(p, to, report, len(answers), func(into *intake, i int) (string, error) {
			return names[i], d.take(ctx, into, names[i], &answers[i])
		})
	})
}

// undated counts the rates of a document that say nothing of when they were good. Taken as of now they would be wrong rates: who
// knows how long the file has lain there?
func undated(answer *source.Answer) int {
	count := 0
	for i := range answer.Observations {
		if answer.Observations[i].EffectiveDate.IsZero() {
			count++
		}
	}
	return count
}

// take takes one document in, in batches. When ctx ends, what was handed over is in; the same command takes in the rest.
func (d *documents) take(ctx context.Context, into *intake, name string, answer *source.Answer) error {
	began := into.clock()
	into.sources, into.tally.unit = nil, "row"
	for _, note := range answer.Notes {
		into.report.wonder(fmt.Sprintf("%s: %s", name, note))
	}
	at := began
	if !d.saved.IsZero() {
		at = d.saved
	}
	refreshes := d.refreshes(answer, at)
	for len(refreshes) > 0 {
		if ctx.Err() != nil {
			return exit.Fail(exit.Interrupted, "%s: interrupted; the same command takes in the rest", name)
		}
		size := batchOf(refreshes)
		if err := into.hand(gathered{refreshes: refreshes[:size]}, name); err != nil {
			return err
		}
		refreshes = refreshes[size:]
		into.tally.elapsed = into.clock().Sub(began)
		into.report.progress(progress{tally: into.tally, file: name})
	}
	return nil
}

// batchOf is how many refreshes are handed over at once.
func batchOf(refreshes []engine.Refresh) int {
	count := 0
	for i := range refreshes {
		if count += len(refreshes[i].Observations); count >= intakeBatchMin {
			return i + 1
		}
	}
	return len(refreshes)
}

// refreshes are what the document says. Whatever has a date is of that day, the newest too: a document that lay in a drawer
// says nothing about today, and says the same whenever it is read. What has none, or one that was still to come, is of at.
func (d *documents) refreshes(answer *source.Answer, at time.Time) []engine.Refresh {
	dated := map[engine.Date][]engine.Observation{}
	var undated []engine.Observation
	for _, observation := range answer.Observations {
		if day := observation.EffectiveDate; day.IsZero() || day > engine.DateOf(at) {
			undated = append(undated, observation)
		} else {
			dated[day] = append(dated[day], observation)
		}
	}
	past := source.Answer{History: slices.Clone(answer.History), Observations: undated}
	for day, observations := range dated {
		past.History = append(past.History, source.Day{Date: day, Observations: observations})
	}
	answers := make([]source.Answer, len(d.definition.Pages))
	answers[d.page] = past
	return collectors.Refreshes(d.definition, answers, at, time.Time{})
}
