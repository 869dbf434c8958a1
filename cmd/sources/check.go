package sources

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/node"
)

func newCheck(p *process.Process) *cobra.Command {
	o, collect := &options{}, &node.Collect{}
	return command.Spec{
		Use:   "check [ID...]",
		Short: "Fetch and read sources once",
		Long: `check fetches sources from this machine and prints what it read and skipped, and why a source failed. It stores nothing and
needs no node. Without an ID it checks every source that is not disabled, which takes a minute or two. The exit code is 69
when a source failed, completely or in part.`,
		Example: `  tasard sources check bhd-site infodolar
  tasard sources check --sources ./definitions --json my-source`,
		Args: cobra.ArbitraryArgs,
		Settings: func(flags *pflag.FlagSet) {
			setting.AddContact(flags, collect)
			setting.AddSourceSecrets(flags, collect)
			o.add(flags)
		},
		Flags:        func(flags *pflag.FlagSet) { setting.BoolFlag(flags, &o.json, "json", "answer as JSON") },
		Run:          func(ctx context.Context, args []string) error { return checkSources(ctx, p, o, collect, args) },
		DataOptional: true,
	}.Command(p)
}

// selectDefinitions returns the definitions of the sources with the given IDs, or of all enabled sources if there are
// no IDs. A definition says which pages of a source to request and how to read them.
func selectDefinitions(set *source.Set, ids []string) ([]*source.Definition, error) {
	var selected []*source.Definition
	for _, id := range ids {
		d, err := FindDefinition(set, id)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(selected, d) {
			selected = append(selected, d)
		}
	}
	if len(ids) > 0 {
		return selected, nil
	}
	for _, d := range set.Definitions() {
		if d.Disabled == "" {
			selected = append(selected, d)
		}
	}
	return selected, nil
}

func checkSources(ctx context.Context, p *process.Process, o *options, collect *node.Collect, ids []string) error {
	reference, err := o.open()
	if err != nil {
		return err
	}
	config := p.CompleteConfig(node.Config{Definitions: o.directory, Collect: *collect}, nil)
	config.Collect.Dial, config.Collect.Roots = p.Dial, p.Roots
	secrets, err := config.ReadSourceSecrets(reference.Sources)
	if err != nil {
		return setting.Explain(err)
	}
	definitions, err := selectDefinitions(secrets.Apply(reference.Sources), ids)
	if err != nil {
		return err
	}
	client := config.NewClient(secrets)
	defer client.Close()
	collector := collectors.New(collectors.Config{Definitions: definitions, Fetcher: client, Clock: p.Clock, Random: rand.New(rand.NewPCG(p.Seed(), p.Seed()))})
	reports, err := checkAll(ctx, p, collector, definitions)
	if err != nil {
		return err
	}
	var failed []string
	for i := range reports {
		if reports[i].Failure != nil {
			failed = append(failed, reports[i].Source)
		}
	}
	if err := printReports(p, reports, o.json); err != nil || len(failed) == 0 {
		return err
	}
	return exit.Errorf(exit.Unavailable, "%d of %s failed, completely or in part: %s", len(failed), terminal.Plural(len(reports), "source"), strings.Join(failed, ", "))
}

// checkAll checks sources concurrently. The collector, which fetches their pages, limits how many run at once.
func checkAll(ctx context.Context, p *process.Process, collector *collectors.Collector, definitions []*source.Definition) ([]sourceReport, error) {
	reports := make([]sourceReport, len(definitions))
	errs := make([]error, len(definitions))
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for i, d := range definitions {
		wg.Go(func() {
			report, err := collector.Check(ctx, d.ID)
			reports[i], errs[i] = reportOf(&report), err
			if err != nil {
				return // ctx has ended
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			terminal.Fprintf(p.Stderr, "%d of %d: %s: %s\n", done, len(definitions), d.ID, summaryOf(&reports[i]))
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, exit.Errorf(exit.Interrupted, "interrupted when %d of %s were checked", done, terminal.Plural(len(definitions), "source"))
	}
	return reports, cmp.Or(errs...)
}

// summaryOf describes the report about a source in a few words, for the line that shows the progress.
func summaryOf(s *sourceReport) string {
	if s.Failure != nil {
		return s.Failure.Kind
	}
	return terminal.Plural(len(s.Observations), "rate")
}

func reportOf(report *collectors.Report) sourceReport {
	s := sourceReport{
		Source: report.SourceID, Millis: report.Duration.Milliseconds(), Observations: describeObservations(report.Observations),
		HistoryDays: report.HistoryDays, Notes: report.Notes,
	}
	for i := range report.Pages {
		if digest := report.Pages[i].Digest; digest != "" {
			s.Digests = append(s.Digests, digest)
		}
	}
	if report.Failure != nil {
		s.Failure = describeFailure(report.Failure)
	}
	return s
}

// printReports prints the report about each source as a table, or as a line of JSON.
func printReports(p *process.Process, reports []sourceReport, asJSON bool) error {
	for i := range reports {
		if !asJSON {
			printReport(p.Stdout, &reports[i])
			continue
		}
		if err := json.NewEncoder(p.Stdout).Encode(reports[i]); err != nil {
			return exit.Errorf(exit.IOError, "write the answer: %w", err)
		}
	}
	return nil
}
