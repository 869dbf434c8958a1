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
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// documentBytesMax is more than any source publishes; a larger file is none of its documents.
const documentBytesMax = 16 << 20

// What tasard sources check and parse say of a document.
type (
	shownReading struct {
		Source       string               `json:"source"`
		Failure      *admin.SourceFailure `json:"failure,omitempty"`
		Millis       int64                `json:"millis,omitempty"`
		Digests      []string             `json:"digests,omitempty"`
		Observations []shownObservation   `json:"observations"`
		HistoryDays  int                  `json:"historyDays"`
		History      []shownObservation   `json:"history,omitempty"`
		Notes        []string             `json:"notes,omitempty"`
	}
	shownObservation struct {
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

func newSourcesParse(p *process.Process) *cobra.Command {
	o, page := &sourcesOptions{}, ""
	return command.Row{
		Use:   "parse ID FILE",
		Short: "Show what a document would give",
		Long: `parse reads a file, as a browser or curl saved it, by the definition of a source, and shows what it would give. It asks
nobody and stores nothing. "-" is standard input. With --json it shows every day of a workbook too. A document that can't
be read ends it with code 66 and says why.`,
		Example: `  tasard sources parse bcrd-usd TASA_DOLAR_REFERENCIA_MC.xlsx
  tasard sources parse infodolar precio-euro.html --page eur
  curl -s https://qik.do/tasadeldia/ | tasard sources parse qik-site -`,
		Args:     command.Want(2, "the id of a source and a file"),
		Settings: func(flags *pflag.FlagSet) { o.add(flags) },
		Flags: func(flags *pflag.FlagSet) {
			setting.PlainSwitch(flags, &o.json, "json", "answer as JSON")
			flags.Var(setting.Line(&page, "NAME", admin.IDMax), "page", "which page of the source the file is, when it has several")
		},
		Run: func(ctx context.Context, args []string) error {
			return parseDocument(ctx, p, o, args[0], args[1], page)
		},
		Alone: true,
	}.Command(p)
}

func parseDocument(ctx context.Context, p *process.Process, o *sourcesOptions, id, file, pageName string) error {
	reference, err := o.open()
	if err != nil {
		return err
	}
	d, err := Known(reference.Sources, id)
	if err != nil {
		return err
	}
	page, err := Page(d, pageName)
	if err != nil {
		return err
	}
	document, err := ReadDocument(ctx, p, file)
	if err != nil {
		return err
	}
	shown := shownReading{Source: d.ID, Digests: []string{document.Digest()}, Observations: []shownObservation{}}
	answer, parseErr := d.Parse(page, document)
	if parseErr == nil {
		shown.take(&answer)
	} else {
		shown.Failure = describeFailure(parseErr)
	}
	if err := terminal.Present(p.Stdout, o.json, shown, func() {
		if parseErr == nil { // else the last line says it
			printReading(p.Stdout, &shown)
		}
	}); err != nil || parseErr == nil {
		return err
	}
	return exit.Fail(exit.NoInput, "%s is no document of %s: %w", file, d.ID, parseErr)
}

// ReadDocument reads a file whole.
func ReadDocument(ctx context.Context, p *process.Process, name string) (document *source.Document, err error) {
	file, err := input.Open(name, p.Stdin)
	if err != nil {
		return nil, err
	}
	reading, leave := context.WithCancel(ctx)
	defer func() {
		leave()
		err = errors.Join(err, file.Close())
	}()
	body, err := io.ReadAll(io.LimitReader(file.Until(reading), documentBytesMax+1))
	switch {
	case ctx.Err() != nil:
		return nil, exit.Fail(exit.Interrupted, "%s: interrupted while it was read", file.Name)
	case err != nil:
		return nil, exit.WithCode(exit.Broken, err)
	case len(body) > documentBytesMax:
		return nil, exit.Fail(exit.NoInput, "%s: larger than %s bytes; no document of a source is", file.Name, terminal.Grouped(documentBytesMax))
	}
	return &source.Document{Body: body, FetchedAt: p.Clock()}, nil
}

// take takes over what a document says.
func (s *shownReading) take(answer *source.Answer) {
	s.Observations = append(s.Observations, describeObservations(answer.Observations)...)
	s.HistoryDays, s.Notes = len(answer.History), answer.Notes
	for i := range answer.History {
		s.History = append(s.History, describeObservations(answer.History[i].Observations)...)
	}
}

func describeObservations(observations []engine.Observation) []shownObservation {
	shown := make([]shownObservation, len(observations))
	for i := range observations {
		o := &observations[i]
		shown[i] = shownObservation{
			InstitutionID: o.InstitutionID, Currency: o.Currency, Channel: o.Channel, Kind: o.Kind, Buy: o.Buy, Sell: o.Sell,
		}
		if !o.EffectiveDate.IsZero() {
			shown[i].EffectiveDate = o.EffectiveDate.String()
		}
		if !o.PublishedAt.IsZero() {
			shown[i].PublishedAt = terminal.Instant(o.PublishedAt)
		}
	}
	return shown
}

// describeFailure is why a document gave nothing.
func describeFailure(err error) *admin.SourceFailure {
	var failure *source.Failure
	if errors.As(err, &failure) {
		return &admin.SourceFailure{Kind: string(failure.Kind), Page: failure.Page, Detail: failure.Detail}
	}
	return &admin.SourceFailure{Kind: string(source.Internal), Detail: err.Error()}
}

// printReading writes what was read of a source as a table.
func printReading(out io.Writer, s *shownReading) {
	if s.Failure != nil {
		terminal.Say(out, "%s: %s: %s\n", s.Source, s.Failure.Kind, terminal.Printable(s.Failure.Detail))
	} else {
		terminal.Say(out, "%s: %s\n", s.Source, terminal.Counted(len(s.Observations), "rate"))
	}
	if len(s.Observations) > 0 {
		table := terminal.Table(out, "  INSTITUTION\tCURRENCY\tCHANNEL\tKIND\tBUY\tSELL\tDATE\tPUBLISHED\n")
		for i := range s.Observations {
			o := &s.Observations[i]
			terminal.Say(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", terminal.Printable(o.InstitutionID), o.Currency, o.Channel, o.Kind,
				terminal.Printable(o.Buy), terminal.Printable(o.Sell), terminal.Printable(o.EffectiveDate), terminal.Printable(o.PublishedAt))
		}
		_ = table.Flush() // out remembers a failure
	}
	if s.HistoryDays > 0 {
		terminal.Say(out, "  and %s before", terminal.Counted(s.HistoryDays, "day"))
		if len(s.History) > 0 {
			terminal.Say(out, ", %s of them, from %s on", terminal.Counted(len(s.History), "rate"), s.History[0].EffectiveDate)
		}
		terminal.Say(out, "\n")
	}
	for _, note := range s.Notes {
		terminal.Say(out, "  note: %s\n", terminal.Printable(note))
	}
}
