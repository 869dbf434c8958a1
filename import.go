package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/collectors"
)

// importOptions are the settings and flags of the import command.
type importOptions struct {
	node    nodeOptions
	log     logOptions
	format  string // "" = by name or first byte
	refused string // file for the lines that were not taken in, "" = stderr
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
reading broke off in the middle. What was read before stays in.`,
		Example: `  tasard import --data ./data observations.csv
  tasard import --data ./data --refused refused.ndjson 2024.csv 2025.csv
  zcat observations.ndjson.gz | tasard import --data ./data --format ndjson -`,
		Args: someFiles,
	}
	cmd.RunE = p.settled(func(ctx context.Context, files []string) error { return p.importFiles(ctx, o, files) })
	addNode(cmd, &o.node)
	addLog(cmd, &o.log)
	markSettings(cmd.Flags())
	cmd.Flags().Var(wordValue(&o.format, "csv", "ndjson"), "format", "form of the files; by default their names or first bytes tell")
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
	report, err := p.openReport(o.refused)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, report.close()) }()

	node, err := p.openNode(ctx, o.node, p.logger(o.log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.close()) }()
	return p.importAll(ctx, node, files, collectors.Format(o.format), report)
}

func (p *process) importAll(ctx context.Context, node *node, files []*input, format collectors.Format, report *report) error {
	var total tally
	for _, file := range files {
		intake := &intake{to: node.system, clock: p.clock, report: report, sources: node.catalogue}
		err := intake.take(ctx, file, format)
		total.add(&intake.tally)
		report.summary(p.stdout, file.name, &intake.tally)
		if err != nil {
			return node.failure(err)
		}
	}
	if lost := total.refused + total.malformed; lost > 0 {
		return fail(exitBadLines, "%s of %s not taken in: %s refused, %s malformed; reported above",
			grouped(lost), counted(total.lines, "line"), grouped(total.refused), grouped(total.malformed))
	}
	return nil
}
