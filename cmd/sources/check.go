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

func newSourcesCheck(p *process.Process) *cobra.Command {
	o, collect := &sourcesOptions{}, &node.Collect{}
	return command.Row{
		Use:   "check [ID...]",
		Short: "Fetch and read sources once, from here",
		Long: `check fetches what sources publish now, from this machine, and shows what it read, what it left out, and why a source gave
nothing. It stores nothing and needs no node. Without an ID it asks every source that is not disabled; that takes a minute
or two. It ends with code 69 when a source gave nothing.`,
		Example: `  tasard sources check bhd-site infodolar
  tasard sources check --sources ./definitions --json my-source`,
		Args: cobra.ArbitraryArgs,
		Settings: func(flags *pflag.FlagSet) {
			setting.AddContact(flags, collect)
			o.add(flags)
		},
		Flags: func(flags *pflag.FlagSet) { setting.PlainSwitch(flags, &o.json, "json", "answer as JSON") },
		Run:   func(ctx context.Context, args []string) error { return checkSources(ctx, p, o, collect, args) },
		Alone: true,
	}.Command(p)
}

// chosen are the definitions of the ids, or of all sources that are collected.
func chosen(set *source.Set, ids []string) ([]*source.Definition, error) {
	var all []*source.Definition
	for _, id := range ids {
		d, err := Known(set, id)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	if len(ids) > 0 {
		return all, nil
	}
	for _, d := range set.Definitions() {
		if d.Disabled == "" {
			all = append(all, d)
		}
	}
	return all, nil
}

func checkSources(ctx context.Context, p *process.Process, o *sourcesOptions, collect *node.Collect, ids []string) error {
	reference, err := o.open()
	if err != nil {
		return err
	}
	definitions, err := chosen(reference.Sources, ids)
	if err != nil {
		return err
	}
	config := p.Within(node.Config{Definitions: o.directory, Collect: *collect}, nil)
	config.Collect.Dial, config.Collect.Roots = p.Dial, p.Roots
	client := config.NewClient()
	defer client.Close()
	collector := collectors.New(collectors.Config{Definitions: definitions, Fetcher: client, Clock: p.Clock, Random: rand.New(rand.NewPCG(p.Seed(), p.Seed()))})
	readings, err := checkAll(ctx, p, collector, definitions)
	if err != nil {
		return err
	}
	var failed []string
	for i := range readings {
		if readings[i].Failure != nil {
			failed = append(failed, readings[i].Source)
		}
	}
	if err := showReadings(p, readings, o.json); err != nil || len(failed) == 0 {
		return err
	}
	return exit.Fail(exit.Unavailable, "%d of %s gave nothing, or not all: %s", len(failed), terminal.Counted(len(readings), "source"), strings.Join(failed, ", "))
}

// checkAll checks sources side by side, as many at once as a collector does.
func checkAll(ctx context.Context, p *process.Process, collector *collectors.Collector, definitions []*source.Definition) ([]shownReading, error) {
	readings := make([]shownReading, len(definitions))
	errs := make([]error, len(definitions))
	var all sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for i, d := range definitions {
		all.Go(func() {
			report, err := collector.Check(ctx, d.ID)
			readings[i], errs[i] = readingOf(&report), err
			if err != nil {
				return // interrupted
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			terminal.Say(p.Stderr, "%d of %d: %s: %s\n", done, len(definitions), d.ID, inShort(&readings[i]))
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, exit.Fail(exit.Interrupted, "interrupted when %d of %s were checked", done, terminal.Counted(len(definitions), "source"))
	}
	return readings, cmp.Or(errs...)
}

// inShort is what came of a source, for the line of progress.
func inShort(s *shownReading) string {
	if s.Failure != nil {
		return s.Failure.Kind
	}
	return terminal.Counted(len(s.Observations), "rate")
}

func readingOf(report *collectors.Report) shownReading {
	shown := shownReading{
		Source: report.SourceID, Millis: report.Duration.Milliseconds(), Observations: describeObservations(report.Observations),
		HistoryDays: report.HistoryDays, Notes: report.Notes,
	}
	for i := range report.Pages {
		if digest := report.Pages[i].Digest; digest != "" {
			shown.Digests = append(shown.Digests, digest)
		}
	}
	if report.Failure != nil {
		shown.Failure = describeFailure(report.Failure)
	}
	return shown
}

// showReadings prints one table for each source, or one JSON object a line.
func showReadings(p *process.Process, readings []shownReading, asJSON bool) error {
	for i := range readings {
		if !asJSON {
			printReading(p.Stdout, &readings[i])
			continue
		}
		if err := json.NewEncoder(p.Stdout).Encode(readings[i]); err != nil {
			return exit.Fail(exit.Broken, "write the answer: %w", err)
		}
	}
	return nil
}
