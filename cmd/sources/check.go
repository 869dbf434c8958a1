package sources

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

func newCheck(p *process.Process) *cobra.Command {
	o := &options{}
	return command.Spec{
		Use:   "check [ID...]",
		Short: "Fetch and read sources once",
		Long: `check fetches sources from this machine, all at once, and says for each what an operator can do. It needs no node, and
stores nothing. Without an ID it checks every source that is not disabled, in less than a minute, and prints a table;
with IDs it prints the rates too. Progress is on standard error.

Verdicts: ok; partial (a page could not be read, or a rate is refused, as outside the plausible range); changed (the
page is not as the definition says, or it has another address); empty (no prices yet); blocked (by a bot protection or robots.txt: nothing to
repair; or an API key is missing or refused); unreachable (network, certificate or HTTP status); failed (a fault of this
program). A check does not know earlier answers: only a running node says degraded (tasard sources list).

The exit code is the number of sources that are not ok, at most 60. Of a check without IDs only confirmed sources count:
those of which a real answer is known to parse (tasard sources list). The code is 69 if no source can be reached at all.`,
		Example: `  tasard sources check
  tasard sources check bhd-site infodolar
  tasard sources check --json | jq -r 'select(.verdict == "changed") | .source'
  tasard sources check --sources ./definitions my-source`,
		Args: cobra.ArbitraryArgs,
		Settings: func(flags *pflag.FlagSet) {
			command.Add(flags, &o.Serve, "collect-contact", "source-secrets", "sources", "catalogue")
		},
		Flags: func(flags *pflag.FlagSet) {
			command.BoolFlag(flags, &o.json, "json", "answer as JSON")
		},
		Run:          func(ctx context.Context, args []string) error { return checkSources(ctx, p, o, args) },
		DataOptional: true,
	}.Command(p)
}

// selectDefinitions returns the definitions of the sources with the given IDs, or of all enabled sources without IDs. A
// definition describes how to request and read a source's pages.
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

func checkSources(ctx context.Context, p *process.Process, o *options, ids []string) (err error) {
	reference, err := o.open()
	if err != nil {
		return err
	}
	config := p.CompleteConfig(node.Config{Definitions: o.Config.Definitions, Collect: o.Config.Collect}, nil)
	config.Collect.Dial, config.Collect.Roots = p.Dial, p.Roots
	secrets, err := config.ReadSourceSecrets(reference.Sources)
	if err != nil {
		return command.Explain(err)
	}
	definitions, err := selectDefinitions(secrets.Apply(reference.Sources), ids)
	if err != nil {
		return err
	}
	collection := collectors.Config{Definitions: definitions, Fetcher: config.NewClient(secrets), Clock: p.Clock, Concurrency: len(definitions), HistoryDays: 1, Sink: judge{reference.Catalogue, p.Clock}}
	collector := collectors.New(collection)
	reports, err := checkAll(ctx, p, collector, definitions)
	if err != nil {
		return err
	}
	advise(reports, definitions)
	offline := !slices.ContainsFunc(reports, func(s sourceReport) bool { return !s.isOffline() })
	if !offline || o.json { // otherwise all lines would be the same
		if err := printReports(p, reports, o.json, len(ids) == 0); err != nil {
			return err
		}
	}
	if offline && len(reports) > 0 {
		return exit.Errorf(exit.Unavailable, "no source can be reached from this machine (%d tried), which says nothing about their sites; "+
			"check its network, DNS and firewall. %s: %s", len(reports), reports[0].Source, terminal.Sanitize(reports[0].explanation()))
	}
	return conclusion(reports, len(ids) == 0)
}

// conclusion returns nil if all sources are ok. Otherwise the exit code of the error is the number of the others. With
// onlyConfirmed, sources without confirmed evidence do not count.
func conclusion(reports []sourceReport, onlyConfirmed bool) error {
	var counted, others []string
	for i := range reports {
		switch s := &reports[i]; {
		case s.Verdict == fine:
		case onlyConfirmed && s.Evidence != string(source.Confirmed):
			others = append(others, s.Source)
		default:
			counted = append(counted, s.Source)
		}
	}
	if len(counted) == 0 {
		return nil
	}
	text := fmt.Sprintf("%d of %s not ok: %s", len(counted), terminal.Plural(len(reports), "source"), strings.Join(counted, ", "))
	if len(others) > 0 {
		text += fmt.Sprintf("; not counted, because not confirmed: %s", strings.Join(others, ", "))
	}
	return exit.Errorf(min(len(counted), exit.SourcesMax), "%s", text)
}

// checkAll checks all sources at once; the collector limits the time for each.
func checkAll(ctx context.Context, p *process.Process, collector *collectors.Collector, definitions []*source.Definition) ([]sourceReport, error) {
	reports := make([]sourceReport, len(definitions))
	errs := make([]error, len(definitions))
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for i, d := range definitions {
		wg.Go(func() {
			report, err := collector.Check(ctx, d.ID)
			if errs[i] = err; err != nil {
				return // ctx has ended
			}
			reports[i] = reportOf(&report, d)
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

// summaryOf describes a source's report in a few words, for the progress line.
func summaryOf(s *sourceReport) string {
	text := string(s.Verdict)
	if s.Failure != nil {
		text += ", " + s.Failure.Kind
	}
	return text + ", " + terminal.Plural(len(s.Rates), "rate")
}

// sourceReport is the JSON output of check for a source.
type sourceReport struct {
	admin.SourceRun
	Verdict   verdict `json:"verdict"`
	Evidence  string  `json:"evidence,omitempty"`  // grade of the definition
	Meanwhile string  `json:"meanwhile,omitempty"` // the source's rates while it fails
	Next      string  `json:"next,omitempty"`      // the next command
}

func reportOf(report *collectors.Report, d *source.Definition) sourceReport {
	s := sourceReport{SourceRun: node.DescribeRun(report), Evidence: string(d.Evidence.Grade)}
	s.Verdict = verdictOf(report.Failure, len(s.accepted()), len(s.Rates))
	return s
}

// printReports prints the reports: as one table, as the rates of each source, or as a line of JSON for each.
func printReports(p *process.Process, reports []sourceReport, asJSON, asTable bool) error {
	if asTable && !asJSON {
		printTable(p.Stdout, reports)
		return nil
	}
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
