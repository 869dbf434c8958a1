package sources

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
)

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
