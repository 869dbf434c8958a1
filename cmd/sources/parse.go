package sources

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/input"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// documentBytesMax is the maximum size of a document, such as a source's page. No source has a larger one.
const documentBytesMax = 16 << 20

// These types are the JSON output of the commands check and parse.
type (
	sourceReport struct {
		Source       string                `json:"source"`
		Verdict      verdict               `json:"verdict,omitempty"`   // of check
		Evidence     string                `json:"evidence,omitempty"`  // grade of the definition
		Refused      []string              `json:"refused,omitempty"`   // rates refused by the node's rules, and why
		Meanwhile    string                `json:"meanwhile,omitempty"` // of check: the source's rates while it fails
		Next         string                `json:"next,omitempty"`      // of check: the next command
		Failure      *admin.SourceFailure  `json:"failure,omitempty"`
		Millis       int64                 `json:"millis,omitempty"`
		Digests      []string              `json:"digests,omitempty"`
		Observations []reportedObservation `json:"observations"`
		HistoryDays  int                   `json:"historyDays"`
		History      []reportedObservation `json:"history,omitempty"`
		Notes        []string              `json:"notes,omitempty"`
	}
	reportedObservation struct {
		InstitutionID string         `json:"institutionId"`
		Currency      string         `json:"currency"`
		Channel       engine.Channel `json:"channel"`
		Kind          engine.Kind    `json:"kind"`
		Buy           string         `json:"buy"`
		Sell          string         `json:"sell"`
		EffectiveDate string         `json:"effectiveDate,omitempty"`
		PublishedAt   string         `json:"publishedAt,omitempty"`
	}
)

func newParse(p *process.Process) *cobra.Command {
	o, page := &options{}, ""
	return command.Spec{
		Use:   "parse ID FILE",
		Short: "Show what is read from a document",
		Long: `parse reads a file that a browser or curl saved, or one of the archive, by the definition of a source, and prints its rates.
"-" is standard input. It requests and stores nothing. With --json it prints every day of a workbook too. The exit code is 66 when the document
can't be read.`,
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
	report := sourceReport{Source: d.ID, Digests: []string{document.Digest()}, Observations: []reportedObservation{}}
	result, parseErr := d.Parse(page, document)
	if parseErr == nil {
		report.add(&result)
	} else {
		report.Failure = describeFailure(parseErr)
	}
	if err := terminal.WriteAnswer(p.Stdout, o.json, report, func() {
		if parseErr == nil { // the error returned below reports a failure
			printReport(p.Stdout, &report)
		}
	}); err != nil || parseErr == nil {
		return err
	}
	return exit.Errorf(exit.NoInput, "%s is not a document of %s: %w", file, d.ID, parseErr)
}

// ReadDocument reads a file as a source's document, such as a page. It refuses files above documentBytesMax.
func ReadDocument(ctx context.Context, p *process.Process, name string) (document *source.Document, err error) {
	file, err := input.Open(name, p.Stdin)
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

func (s *sourceReport) add(result *source.Result) {
	s.Observations = append(s.Observations, describeObservations(result.Observations)...)
	s.HistoryDays, s.Notes = len(result.History), result.Notes
	for i := range result.History {
		s.History = append(s.History, describeObservations(result.History[i].Observations)...)
	}
}

func describeObservations(observations []engine.Observation) []reportedObservation {
	reported := make([]reportedObservation, len(observations))
	for i := range observations {
		o := &observations[i]
		reported[i] = reportedObservation{
			InstitutionID: o.InstitutionID, Currency: o.Currency, Channel: o.Channel, Kind: o.Kind, Buy: o.Buy, Sell: o.Sell,
		}
		if !o.EffectiveDate.IsZero() {
			reported[i].EffectiveDate = o.EffectiveDate.String()
		}
		if !o.PublishedAt.IsZero() {
			reported[i].PublishedAt = terminal.FormatInstant(o.PublishedAt)
		}
	}
	return reported
}

func describeFailure(err error) *admin.SourceFailure {
	var failure *source.Failure
	if errors.As(err, &failure) {
		return &admin.SourceFailure{Kind: string(failure.Kind), Page: failure.Page, Detail: failure.Detail}
	}
	return &admin.SourceFailure{Kind: string(source.Internal), Detail: err.Error()}
}

func printReport(out io.Writer, s *sourceReport) {
	if problem := s.explanation(); problem != "" {
		terminal.Fprintf(out, "%s: %s: %s\n", s.Source, s.Verdict, terminal.Sanitize(problem))
	} else {
		terminal.Fprintf(out, "%s: %s\n", s.Source, terminal.Plural(len(s.Observations), "rate"))
	}
	if len(s.Observations) > 0 {
		const header = "  INSTITUTION\tCURRENCY\tCHANNEL\tKIND\tBUY\tSELL\tDATE\tPUBLISHED"
		terminal.Table(out, header, s.Observations, func(o *reportedObservation) []any {
			return []any{o.InstitutionID, o.Currency, o.Channel, o.Kind, o.Buy, o.Sell, o.EffectiveDate, o.PublishedAt}
		})
	}
	if s.HistoryDays > 0 {
		terminal.Fprintf(out, "  and %s before", terminal.Plural(s.HistoryDays, "day"))
		if len(s.History) > 0 {
			terminal.Fprintf(out, ", %s of them, from %s on", terminal.Plural(len(s.History), "rate"), s.History[0].EffectiveDate)
		}
		terminal.Fprintf(out, "\n")
	}
	for _, note := range s.Notes {
		terminal.Fprintf(out, "  note: %s\n", terminal.Sanitize(note))
	}
}
