package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

// documentBytesMax is the maximum size of a document, such as a source's page. No source has a larger one.
const documentBytesMax = 16 << 20

func newParse(p *process.Process) *cobra.Command {
	o, page := &options{}, ""
	return command.Spec{
		Use:   "parse ID FILE",
		Short: "Show what is read from a document",
		Long: `parse reads a file that a browser or curl saved, or one of the archive, by the definition of a source, and prints its rates.
"-" is standard input. It requests and stores nothing. The exit code is 66 when the document can't be read.`,
		Example: `  tasard sources parse bcrd-usd TASA_DOLAR_REFERENCIA_MC.xlsx
  tasard sources parse infodolar precio-euro.html --page eur
  tasard sources parse bhd-site data/archive/2026-11-24/bhd-site/160003.120Z-00-*.zst
  curl -s https://qik.do/tasadeldia/ | tasard sources parse qik-site -`,
		Args:     command.ExactArgs(2, "the id of a source and a file"),
		Settings: func(flags *pflag.FlagSet) { o.add(flags) },
		Flags: func(flags *pflag.FlagSet) {
			command.BoolFlag(flags, &o.json, "json", "answer as JSON")
			flags.Var(command.Line(&page, "NAME", admin.IDMax), "page", "the page of the source, if it has several")
		},
		Run: func(ctx context.Context, args []string) error {
			return parseDocument(ctx, p, o, args[0], args[1], page)
		},
		DataOptional: true,
	}.Command(p)
}

func parseDocument(ctx context.Context, p *process.Process, o *options, id, file, pageName string) error {
	reference, err := o.open()
	if err != nil {
		return err
	}
	d, err := FindDefinition(reference.Sources, id)
	if err != nil {
		return err
	}
	page, err := FindPage(d, pageName)
	if err != nil {
		return err
	}
	document, err := ReadDocument(ctx, p, file)
	if err != nil {
		return err
	}
	report := collectors.Report{SourceID: d.ID, Pages: []collectors.PageReport{{Name: d.Pages[page].Name, Digest: document.Digest()}}}
	result, err := d.Parse(page, document)
	if errors.As(err, &report.Failure) {
		_ = terminal.WriteAnswer(p.Stdout, o.json, node.DescribeRun(&report), func() {})
		return exit.Errorf(exit.NoInput, "%s is not a document of %s: %w", file, d.ID, err)
	}
	report.Observations, report.HistoryDays, report.Pages[0].Notes = result.Observations, len(result.History), result.Notes
	report.Refusals = make([]engine.Refusal, len(result.Observations)) // no sink has judged them
	run := node.DescribeRun(&report)
	return terminal.WriteAnswer(p.Stdout, o.json, run, func() { printRates(p.Stdout, &run, "", "read") })
}

// ReadDocument reads a file as a source's document, such as a page. It refuses files above documentBytesMax.
func ReadDocument(ctx context.Context, p *process.Process, name string) (document *source.Document, err error) {
	file, err := p.OpenInput(name)
	if err != nil {
		return nil, err
	}
	readCtx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		err = errors.Join(err, file.Close())
	}()
	body, err := io.ReadAll(io.LimitReader(file.Reader(readCtx), documentBytesMax+1))
	switch {
	case ctx.Err() != nil:
		return nil, exit.Errorf(exit.Interrupted, "%s: interrupted while reading", file.Name)
	case err != nil:
		return nil, exit.WrapUncoded(exit.IOError, err)
	case len(body) > documentBytesMax:
		return nil, exit.Errorf(exit.NoInput, "%s: larger than %s bytes, the maximum for a document of a source", file.Name, terminal.Thousands(documentBytesMax))
	}
	if body, err = archive.Unpack(body); err != nil {
		return nil, exit.Errorf(exit.NoInput, "%s: a damaged file of an archive: %w", file.Name, err)
	}
	return &source.Document{Body: body, FetchedAt: p.Clock()}, nil
}

func newRun(p *process.Process) *cobra.Command {
	o, asJSON, author := &command.Serve{}, false, admin.Author{}
	return command.Spec{
		Use:   "run ID",
		Short: "Let the running node read a source now",
		Long: `run asks a running node to fetch a source at once and to publish its rates, and prints what was read, accepted and refused,
and why. The node uses the definitions that it has read at its start. The next slot stays as it is. tasard sources check
reads a source without publishing it.

The exit code is 69 when a page failed or nothing could be published.`,
		Example: `  tasard sources run bhd-site --data ./data --by ana
  tasard sources run bhd-site --data ./data --json | jq .rates`,
		Args: command.ExactArgs(1, "the id of a source"),
		Settings: func(flags *pflag.FlagSet) {
			command.Add(flags, o, "data", "admin-socket")
		},
		Flags: func(flags *pflag.FlagSet) {
			command.BoolFlag(flags, &asJSON, "json", "answer as JSON")
			flags.Var(command.Line(&author.Name, "NAME", admin.ByMax), "by", "your name for the log, which also has the operating system's user")
		},
		Run: func(ctx context.Context, args []string) error {
			return runSource(ctx, p, &datadir.Options{Data: o.Config.Dir, Socket: o.Config.Admin.Socket, JSON: asJSON}, author, args[0])
		},
		DataOptional: true,
	}.Command(p)
}

func runSource(ctx context.Context, p *process.Process, connection *datadir.Options, author admin.Author, id string) error {
	running, err := connection.Node()
	if err != nil {
		return err
	}
	run, err := datadir.Call(ctx, running, admin.RunSource, author, id)
	if err != nil {
		return err
	}
	if err := terminal.WriteAnswer(p.Stdout, connection.JSON, run, func() { printRun(p.Stdout, &run) }); err != nil || run.Failure == nil {
		return err
	}
	return exit.Errorf(exit.Unavailable, "%s: %s: %s", id, run.Failure.Kind, run.Failure.Detail)
}

// printReport prints the result of a check.
func printReport(out io.Writer, s *sourceReport) {
	verdict := ""
	if problem := s.explanation(); problem != "" {
		verdict = fmt.Sprintf("%s: %s", s.Verdict, terminal.Sanitize(problem))
	}
	printRates(out, &s.SourceRun, verdict, "accepted")
}

func printRun(out io.Writer, run *admin.SourceRun) {
	accepted := 0
	for i := range run.Rates {
		if run.Rates[i].Reason == "" {
			accepted++
		}
	}
	printRates(out, run, fmt.Sprintf("%s read, %d accepted", terminal.Plural(len(run.Rates), "rate"), accepted), "accepted")
}

// printRates prints the rates and notes of a source. summary is in the first line; "" = the number of rates. good is
// the result of a rate that was not refused.
func printRates(out io.Writer, run *admin.SourceRun, summary, good string) {
	terminal.Fprintf(out, "%s: %s\n", run.Source, cmp.Or(summary, terminal.Plural(len(run.Rates), "rate")))
	if len(run.Rates) > 0 {
		const header = "  INSTITUTION\tCURRENCY\tCHANNEL\tKIND\tBUY\tSELL\tDATE\tRESULT\tNUMBER\tREASON"
		terminal.Table(out, header, run.Rates, func(r *admin.SourceRate) []any {
			result := cmp.Or(string(r.Reason), good)
			return []any{r.InstitutionID, r.Currency, r.Channel, r.Kind, r.Buy, r.Sell, r.EffectiveDate, result, r.Quarantined, r.Detail}
		})
	}
	if run.HistoryDays > 0 {
		terminal.Fprintf(out, "  and %s before\n", terminal.Plural(run.HistoryDays, "day"))
	}
	for i := range run.Pages {
		page := &run.Pages[i]
		if page.Failure != nil {
			terminal.Say(out, "  page %s: %s: %s\n", page.Name, page.Failure.Kind, page.Failure.Detail)
		}
		for _, note := range page.Notes {
			terminal.Say(out, "  note: %s\n", note)
		}
	}
}
