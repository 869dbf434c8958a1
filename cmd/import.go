package cmd

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

// importOptions are the settings and flags of the import command.
type importOptions struct {
	node    node.Config
	log     logOptions
	format  string    // "" = by name or first byte
	refused string    // file for the lines that were not taken in, "" = stderr
	source  string    // whose documents the files are, "" = they are files of observations
	page    string    // which page of that source, "" = the only one
	saved   time.Time // when those documents were saved, zero = not told
}

func (p *process) newImport() *cobra.Command {
	o := importOptions{log: logOptions{format: "text", level: "warn"}}
	cmd := &cobra.Command{
		Use:   "import --data DIR FILE...",
		Short: "Take files of observations into a data directory",
		Long: `import takes files of observations, CSV or NDJSON, into a data directory; "-" is standard input, and a named pipe is read
until its writer ends. No node may be running on the directory: hand the file to the node instead, with tasard serve
--import FILE.

A CSV file begins with these columns, in any order; an NDJSON file has them as keys, all values texts:

  observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt

Instants are RFC 3339, dates YYYY-MM-DD; empty means unknown. Every line that is not published is reported with file,
line and reason: held lines are kept in quarantine; refused ones name an institution or currency that is not in the
catalogue; malformed ones are no observations. The rest is taken in all the same. Reading a file twice changes nothing.

The exit code is 0 when every line was taken in or held, 65 when some were refused or malformed and the rest was taken in,
66 when a file can't be read or is as a whole no file of observations (empty, a wrong header, packed, a workbook), 74 when
reading broke off in the middle. What was read before stays in.

With --source ID the files are documents of that source instead, as a browser or curl saved them: workbooks (.xlsx, and the
old .xls), pages, JSON. All days of a workbook are taken in, each as of its own day. What says no date is of the moment that
--saved tells, and expires from then on: an old page makes no rate of today.`,
		Example: `  tasard import --data ./data observations.csv
  tasard import --data ./data --refused refused.ndjson 2024.csv 2025.csv
  zcat observations.ndjson.gz | tasard import --data ./data --format ndjson -
  tasard import --data ./data --source bcrd-usd TASA_DOLAR_REFERENCIA_MC.xlsx
  tasard import --data ./data --source bhd-site --saved 2026-11-20T09:30:00-04:00 rates.json`,
		Args: someFiles,
	}
	cmd.RunE = p.settled(func(ctx context.Context, files []string) error {
		switch {
		case o.source == "" && (o.page != "" || !o.saved.IsZero()):
			return fail(exitUsage, "tasard import: --page and --saved are for documents of a source; name it with --source ID")
		case o.source != "" && o.format != "":
			return fail(exitUsage, "tasard import: --format is for files of observations; how documents are read the definition of their source says")
		case o.source != "":
			return p.importDocuments(ctx, o, files)
		}
		return p.importFiles(ctx, o, files)
	})
	addDirectory(cmd, &o.node)
	addLog(cmd, &o.log)
	markSettings(cmd.Flags())
	cmd.Flags().Var(wordValue(&o.format, "csv", "ndjson"), "format", "form of the files; by default their names or first bytes tell")
	cmd.Flags().Var(lineValue(&o.source, "ID", admin.IDMax), "source", "the files are documents of this source")
	cmd.Flags().Var(lineValue(&o.page, "NAME", admin.IDMax), "page", "which page of the source the documents are, when it has several")
	cmd.Flags().Var(instantValue(&o.saved), "saved", "the `INSTANT` at which the documents were saved, RFC 3339: rates without a date are of then")
	cmd.Flags().Var(pathValue(&o.refused, "FILE"), "refused", "write the lines that were not published to `FILE`, as NDJSON, not to stderr")
	return cmd
}

func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return fail(exitUsage, "%s: no file given; name the files of observations, or - for standard input", cmd.CommandPath())
}

// importFiles takes the files in, one after the other. All of them are opened before anything is changed.
func (p *process) importFiles(ctx context.Context, o importOptions, names []string) (err error) {
	var files []*input
	defer func() {
		for _, file := range files {
			err = errors.Join(err, file.Close())
		}
	}()
	for _, name := range names {
		file, err := openInput(name, p.stdin)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	return p.onNode(ctx, o, func(to *directory, report *report) error {
		return p.importAll(ctx, to, files, collectors.Format(o.format), report)
	})
}

// onNode opens the report and the data directory for a work, and closes them.
func (p *process) onNode(ctx context.Context, o importOptions, work func(*directory, *report) error) (err error) {
	report, err := p.openReport(o.refused)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, report.close()) }()
	opened, err := p.openDirectory(ctx, o.node, p.logger(o.log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.close()) }()
	return work(opened, report)
}

func (p *process) importAll(ctx context.Context, to *directory, files []*input, format collectors.Format, report *report) error {
	var total tally
	for _, file := range files {
		intake := &intake{to: to.system, clock: p.clock, report: report, sources: to.catalogue}
		err := intake.take(ctx, file, format)
		total.add(&intake.tally)
		report.summary(p.stdout, file.name, &intake.tally)
		if err != nil {
			return to.failure(err)
		}
	}
	return total.lost()
}
