package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/cmd/sources"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

type importOptions struct {
	*command.Serve
	source string    // source of the documents; "" means the files are observation files
	page   string    // page of the source; "" means its only page
	saved  time.Time // time of saving; zero if unknown
}

// New returns the command tasard import.
func New(p *process.Process) *cobra.Command {
	o := importOptions{Serve: command.ForData()}
	return command.Spec{
		Use:   "import --data DIR FILE...",
		Short: "Import observations into a data directory",
		Long: `import reads observation files, CSV or NDJSON, into a data directory; "-" is standard input, and a named pipe is read to
its end. If a node is running on the directory, it gets the observations through its management socket and goes on
answering. Without a node the directory is changed directly.

A CSV file has these columns, in any order; an NDJSON file has them as keys, with strings as values:

  observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt

Instants are RFC 3339, dates YYYY-MM-DD; an empty value is unknown. Lines that are not published are reported with file,
line and reason: quarantined lines broke a rule for rates; refused lines name an institution or currency that the
catalogue does not have; malformed lines are not observations. The rest is imported. Importing a file again changes nothing.

Exit codes: 0 if every line was accepted or quarantined; 65 if some were refused or malformed, or all quarantined; 66 if a file can't be read or
is not an observation file (empty, a wrong header, compressed, a workbook); 74 if reading broke off, in which case the lines
before are imported.

With --source ID the files are documents of that source, as a browser or curl saved them: workbooks (.xlsx), pages,
JSON. All days of a workbook are imported, each under its own date. Rates without a date are those of --saved, and expire
from then on, so that an old page does not become a rate of today.`,
		Example: `  tasard import --data ./data observations.csv
  tasard import --data ./data 2024.csv 2025.csv 2> refused.txt
  zcat observations.ndjson.gz | tasard import --data ./data -
  tasard import --data ./data --source bcrd-usd TASA_DOLAR_REFERENCIA_MC.xlsx
  tasard import --data ./data --source bhd-site --saved 2026-11-20T09:30:00-04:00 rates.json`,
		Args: requireFiles,
		Settings: func(flags *pflag.FlagSet) {
			command.Add(flags, o.Serve, "data", "catalogue", "sources", "admin-socket", "log-format", "log-level")
		},
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(command.Line(&o.source, "ID", admin.IDMax), "source", "the files are documents of this source")
			flags.Var(command.Line(&o.page, "NAME", admin.IDMax), "page", "the page of the source, if it has several")
			flags.Var(command.Instant(&o.saved), "saved", "the `INSTANT` at which the documents were saved, RFC 3339, for rates without a date")
		},
		Run: func(ctx context.Context, files []string) error {
			switch {
			case o.source == "" && (o.page != "" || !o.saved.IsZero()):
				return exit.Errorf(exit.Usage, "--page and --saved are for documents of a source; add --source ID")
			case o.source != "":
				return importDocuments(ctx, p, o, files)
			}
			return importFiles(ctx, p, o, files)
		},
	}.Command(p)
}

func requireFiles(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return exit.Errorf(exit.Usage, "no file; name observation files, or - for standard input")
}

// importFiles imports observation files, one after the other. It opens all of them before the first import.
func importFiles(ctx context.Context, p *process.Process, o importOptions, names []string) (err error) {
	var files []*process.Input
	defer func() {
		for _, file := range files {
			err = errors.Join(err, file.Close())
		}
	}()
	for _, name := range names {
		file, err := p.OpenInput(name)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	return withTarget(ctx, p, o, func(target *importTarget, report *report) error {
		return importEach(p, target, report, len(files), func(fi *fileImport, i int) (string, error) {
			return files[i].Name, fi.importFile(ctx, files[i])
		})
	})
}

// importTarget is the target of an import: a running node, or a data directory without one.
type importTarget struct {
	sink      engine.Ingester
	catalogue *engine.Catalogue
	explain   func(error) error // adds the cause and an exit code to an error of sink
}

// withTarget calls work with the running node, or with the data directory if no node is running.
func withTarget(ctx context.Context, p *process.Process, o importOptions, work func(*importTarget, *report) error) (err error) {
	say := func(text string) { terminal.Fprintf(p.Stderr, "%s\n", text) }
	report := &report{warn: say, progress: say, rejected: func(l rejectedLine) { say(l.String()) }}
	selected := datadir.Options{Data: o.Config.Dir, Socket: o.Config.Admin.Socket}
	if running := selected.Running(ctx); running != nil && datadir.RequireDir(o.Config.Dir) == nil {
		reference, err := node.LoadReferenceData(o.Config.Catalogue, o.Config.Definitions)
		if err != nil {
			return err
		}
		return work(&importTarget{admin.Importer{Context: ctx, Client: running.Client}, reference.Catalogue, running.Explain}, report)
	}
	if err := node.CheckOwner(o.Config.Dir, true); err != nil { // first, because it explains errors of the others
		return err
	}
	if err := node.CheckSingle(o.Config.Dir); err != nil {
		return err
	}
	data, err := datadir.Open(ctx, p, o.Config, p.Logger(o.Log))
	if exit.Code(err) == exit.Busy {
		return exit.Errorf(exit.Busy, "%s: a running node uses the directory, and none listens on %s; name its socket with --admin-socket",
			o.Config.Dir, datadir.SocketPath(o.Config.Admin.Socket, o.Config.Dir))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	explain := func(err error) error { return cmp.Or(node.StopCause(data.System), err) } // the cause explains more than err
	return work(&importTarget{data.System, data.Catalogue, explain}, report)
}

// importEach calls importOne for each of count files, and prints a summary after each.
func importEach(p *process.Process, target *importTarget, report *report, count int, importOne func(*fileImport, int) (name string, err error)) error {
	var total lineCounts
	for i := range count {
		fi := &fileImport{sink: target.sink, clock: p.Clock, report: report, sources: target.catalogue}
		name, err := importOne(fi, i)
		total.add(&fi.counts)
		terminal.Fprintf(p.Stdout, "%s: %s\n", name, &fi.counts)
		if err != nil {
			return target.explain(err)
		}
	}
	return total.err()
}

// Import imports a file into a running node and logs rejected lines. It stops without an error if ctx ends or the disk
// is full. A file that cannot be read, or is not an observation file, is an error only if the node has no data;
// otherwise Import logs the problem.
func Import(ctx context.Context, p *process.Process, n *node.Node, file *process.Input, log *slog.Logger) error {
	fi := &fileImport{sink: n.System(), clock: p.Clock, sources: n.Catalogue(), report: &report{
		warn:     func(text string) { log.Warn(text) },
		progress: func(text string) { log.Info(text) },
		rejected: func(l rejectedLine) { log.Warn(l.String(), "outcome", l.Outcome, "reason", l.Reason, "line", l.Line) },
	}}
	err := fi.importFile(ctx, file)
	if err == nil || fi.counts.lines > 0 {
		log.Info(fmt.Sprintf("imported %s: %s", file.Name, &fi.counts))
	}
	if cause := node.StopCause(n.System()); cause != nil {
		return cause
	}
	switch code := exit.Code(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil || readOnly(err):
		log.Warn(err.Error())
		return nil
	case (code == exit.NoInput || code == exit.IOError) && (n.System().Recovery().Last > 0 || fi.counts.lines > 0):
		log.Error("import: " + err.Error() + "; the node continues with the data that it has")
		return nil
	}
	return err
}

// readOnly reports whether err means that the node's disk is full or its cluster has no majority.
func readOnly(err error) bool {
	var engineErr *engine.Error
	return errors.As(err, &engineErr) && (engineErr.Code == engine.CodeReadOnly || engineErr.Code == engine.CodeNoMajority)
}

// report tells an operator about the problems of an import.
type report struct {
	warn     func(text string)  // for valid input that may be a mistake
	progress func(text string)  // how much of a large file has been imported
	rejected func(rejectedLine) // called for each rejected line, in the order of the file
}

func (c *lineCounts) String() string {
	repeats, perSecond := "", 0
	if c.elapsed > 0 {
		perSecond = int(int64(c.lines) * int64(time.Second) / int64(c.elapsed))
	}
	if c.accepted > c.changed {
		repeats = fmt.Sprintf("; %s of the accepted repeat a known value", terminal.Thousands(c.accepted-c.changed))
	}
	if c.notices > 0 {
		repeats += "; " + terminal.Plural(c.notices, "published rate") + " withdrawn or confirmed by others, as the warnings say"
	}
	return fmt.Sprintf("%s in %s, %s a second: %s accepted (%s new), %s quarantined, %s refused, %s malformed%s",
		terminal.Plural(c.lines, cmp.Or(c.unit, "line")), c.elapsed.Round(time.Millisecond), terminal.Thousands(perSecond),
		terminal.Thousands(c.accepted), terminal.Thousands(c.changed), terminal.Thousands(c.quarantined), terminal.Thousands(c.refused), terminal.Thousands(c.malformed), repeats)
}

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
