package intake

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/cmd/internal/datadir"
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
	to         *datadir.Directory
	definition *source.Definition
	page       int
	saved      time.Time // when somebody saved them, zero = not told: then every rate in them has a date
	report     *report
	clock      func() time.Time
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
	return onNode(ctx, p, o, func(to *datadir.Directory, report *report) error {
		d := &documents{to, definition, page, o.saved, report, p.Clock}
		var total tally
		for i := range answers {
			taken, err := d.take(ctx, names[i], &answers[i])
			total.add(&taken)
			report.summary(p.Stdout, names[i], &taken)
			if err != nil {
				return to.Failure(err)
			}
		}
		return total.lost()
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
func (d *documents) take(ctx context.Context, name string, answer *source.Answer) (tally, error) {
	began := d.clock()
	taken := tally{unit: "row"}
	for _, note := range answer.Notes {
		d.report.wonder(fmt.Sprintf("%s: %s", name, note))
	}
	at := began
	if !d.saved.IsZero() {
		at = d.saved
	}
	refreshes := d.refreshes(answer, at)
	for len(refreshes) > 0 {
		if ctx.Err() != nil {
			return taken, exit.Fail(exit.Interrupted, "%s: interrupted; the same command takes in the rest", name)
		}
		size := batchOf(refreshes)
		if err := d.hand(name, refreshes[:size], &taken); err != nil {
			return taken, err
		}
		refreshes = refreshes[size:]
		taken.elapsed = d.clock().Sub(began)
		d.report.progress(progress{tally: taken, file: name})
	}
	return taken, nil
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

func (d *documents) hand(name string, refreshes []engine.Refresh, taken *tally) error {
	receipt, err := d.to.System.Observe(refreshes)
	if err != nil {
		return fmt.Errorf("take in %s: %w", name, err)
	}
	lines := make([]untaken, len(receipt.Refused))
	for i := range receipt.Refused {
		lines[i] = untakenRow(&receipt.Refused[i], name)
	}
	taken.count(&receipt, lines)
	for _, line := range lines {
		if err := d.report.untaken(line); err != nil {
			return err
		}
	}
	return nil
}

// untakenRow names a value of a document, which has no lines, by what it is of.
func untakenRow(r *engine.Refusal, name string) untaken {
	o := &r.Observation
	line := untaken{File: name, Outcome: refused, Reason: r.Reason, Detail: r.Detail, Held: r.HeldID, Of: o.InstitutionID + " " + o.Currency}
	if !o.EffectiveDate.IsZero() {
		line.Of += " " + o.EffectiveDate.String()
	}
	if r.HeldID != 0 {
		line.Outcome = held
	}
	return line
}
