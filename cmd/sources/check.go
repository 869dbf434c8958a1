package sources

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
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
	switch {
	case offline && !o.json: // all lines would be the same
	case len(ids) == 0 && !o.json:
		printTable(p.Stdout, reports)
	default:
		for i := range reports {
			if err := terminal.WriteAnswer(p.Stdout, o.json, reports[i], func() { printReport(p.Stdout, &reports[i]) }); err != nil {
				return err
			}
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
			s := sourceReport{SourceRun: node.DescribeRun(&report), Evidence: string(d.Evidence.Grade)}
			s.Verdict = verdictOf(report.Failure, len(s.accepted()), len(s.Rates))
			reports[i] = s
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

// verdict is the result of checking a source, by the operator's possible action.
type verdict string

// The verdicts, in the order of the table: first those that need a repaired definition.
const (
	changed     verdict = "changed"     // the document does not match the definition, or has another address
	partial     verdict = "partial"     // a page is missing, or a rate is refused
	noPrices    verdict = "empty"       // the document is as expected, without prices
	failed      verdict = "failed"      // a fault of this program
	unreachable verdict = "unreachable" // no document: network, TLS, or a status that is not 200
	blocked     verdict = "blocked"     // the site or its robots.txt forbids the request
	fine        verdict = "ok"
)

// cutRunes is the number of runes shown of an explanation.
const cutRunes = 200

// verdictOf returns the verdict on a source of whose rates some were accepted.
func verdictOf(failure *source.Failure, accepted, rates int) verdict {
	switch {
	case failure == nil && accepted == rates:
		return fine
	case accepted > 0:
		return partial
	}
	switch failure.Kind {
	case source.Layout, source.WrongContent, source.Value, source.Implausible:
		return changed
	case source.Empty:
		return noPrices
	case source.Blocked:
		return blocked
	case source.HTTPStatus:
		if failure.Status >= 300 && failure.Status < 400 || failure.Status == http.StatusNotFound || failure.Status == http.StatusGone {
			return changed // the page has another address now
		}
		return unreachable
	case source.Network, source.Timeout, source.TLS:
		return unreachable
	case source.Internal:
	}
	return failed
}

// judge is a collectors.Sink that publishes nothing: it tells what a node without earlier rates would refuse.
type judge struct {
	catalogue *engine.Catalogue
	clock     func() time.Time
}

// Observe implements collectors.Sink.
func (j judge) Observe(refreshes []engine.Refresh) (receipt engine.Receipt, err error) {
	byCurrency, refused := engine.SplitByCurrency(j.catalogue, refreshes)
	receipt.Refused = refused
	for code, parts := range byCurrency {
		for i := range parts {
			state := engine.NewCurrencyState(code, j.catalogue, engine.DefaultRules())
			decision, err := state.Decide(engine.Observe{Refreshes: []engine.Refresh{parts[i].Refresh}}, j.clock())
			if err != nil {
				return receipt, err
			}
			for _, refusal := range decision.Receipt.Refused {
				refusal.Refresh = parts[i].RefreshIndex
				receipt.Refused = append(receipt.Refused, refusal)
			}
		}
	}
	return receipt, nil
}

// accepted returns the rates that a node would publish.
func (s *sourceReport) accepted() []admin.SourceRate {
	return slices.DeleteFunc(slices.Clone(s.Rates), func(r admin.SourceRate) bool { return r.Reason != "" })
}

// isOffline reports whether a source was not reached at all. Its site may be well.
func (s *sourceReport) isOffline() bool {
	return s.Failure != nil && len(s.Rates) == 0 &&
		(s.Failure.Kind == string(source.Network) || s.Failure.Kind == string(source.Timeout))
}

// explanation describes the cause of the verdict.
func (s *sourceReport) explanation() string {
	var parts []string
	if s.Failure != nil && s.Failure.Kind != string(source.Implausible) { // the refusals say more
		text := s.Failure.Detail
		if _, cause, ok := strings.Cut(text, ": dial "); ok { // earlier requests do not matter then
			text = "dial " + cause
		}
		if s.Failure.Page != "" {
			text = "page " + s.Failure.Page + ": " + text
		}
		parts = append(parts, text)
	}
	more := -1
	for _, r := range s.Rates {
		if r.Reason == "" {
			continue
		}
		if more++; more == 0 {
			parts = append(parts, fmt.Sprintf("refused: %s %s: %s: %s", r.InstitutionID, r.Currency, r.Reason, r.Detail))
		}
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// printTable prints a line for each source, first those that need a repair: the reason for the failure, its rates
// meanwhile, and the next command.
func printTable(out io.Writer, reports []sourceReport) {
	order := []verdict{changed, partial, noPrices, failed, unreachable, blocked, fine}
	sorted := slices.SortedStableFunc(slices.Values(reports), func(a, b sourceReport) int {
		return cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict))
	})
	terminal.Table(out, "SOURCE\tVERDICT\tEVIDENCE\tRATES\tITS RATES MEANWHILE\tNEXT\tWHY", sorted, func(s *sourceReport) []any {
		return []any{s.Source, s.Verdict, s.Evidence, len(s.Rates), s.Meanwhile, s.Next, shortenMiddle(s.explanation(), cutRunes)}
	})
}

// advise sets two texts of each failing report: where the source's rates come from meanwhile, and the next command.
func advise(reports []sourceReport, definitions []*source.Definition) {
	for i := range reports {
		if s, d := &reports[i], definitions[i]; s.Verdict != fine {
			s.Meanwhile, s.Next = meanwhile(s, d, reports), s.next(d)
		}
	}
}

// meanwhile names another source for the institution's rates, or the time when its last rates become stale.
func meanwhile(s *sourceReport, d *source.Definition, reports []sourceReport) string {
	stale := fmt.Sprintf("stale %v after they were last read", strings.TrimSuffix(d.Expiry.AfterCheck.String(), "0m0s"))
	if d.Institution == "" {
		return "those that no other source gives are " + stale
	}
	var others []string
	for i := range reports {
		if other := &reports[i]; other.Source != s.Source && slices.ContainsFunc(other.Rates, func(o admin.SourceRate) bool {
			return o.InstitutionID == d.Institution && cmp.Or(o.Kind, "commercial") == cmp.Or(d.Kind, "commercial")
		}) {
			others = append(others, other.Source)
		}
	}
	if len(others) > 0 {
		return strings.Join(others, " and ") + " stands in"
	}
	return stale
}

// next returns the next command for a source that is not ok.
func (s *sourceReport) next(d *source.Definition) string {
	isSearched := (d.Institution != "" || d.Pages[0].Institution != "") && d.Pages[0].Extract.Method != source.XLSXRows
	switch s.Verdict {
	case changed, partial, noPrices:
		if isSearched {
			return "tasard sources suggest " + s.Source + " --data DIR"
		}
		return "tasard definitions show " + s.Source
	case blocked:
		return "save the page in a browser, then: tasard import --data DIR --source " + s.Source + " FILE"
	case unreachable:
		return "tasard sources check " + s.Source + ", and look at DNS and firewall"
	case failed:
		return "tasard sources check " + s.Source + " --json, and report it"
	case fine:
	}
	return ""
}
