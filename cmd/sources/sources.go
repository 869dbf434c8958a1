package sources

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

// reasonRunesShown is the maximum number of runes shown of a state's reason. --json shows the whole reason.
const reasonRunesShown = 100

// New returns the command tasard sources.
func New(p *process.Process) *cobra.Command {
	return command.Spec{
		Use:   "sources",
		Short: "List, check and try sources of rates",
		Long: `sources works with the definitions of sources, which say for each institution what to request and how to read it. The
program has one for every institution that publishes rates. With --sources DIR, definitions of your own are added,
replace some, or turn some off.`,
		Example: `  tasard sources list --data ./data
  tasard sources check bhd-site
  tasard sources parse bcrd-usd TASA_DOLAR_REFERENCIA_MC.xlsx
  tasard sources suggest bhd-site --data ./data > ./definitions/bhd-site.json`,
		Subcommands: []*cobra.Command{newList(p), newCheck(p), newRun(p), newParse(p), newSuggest(p)},
	}.Command(p)
}

// options are the settings and flags of most commands.
type options struct {
	command.Serve
	json bool
}

func (o *options) open() (node.ReferenceData, error) {
	return node.LoadReferenceData(o.Config.Catalogue, o.Config.Definitions)
}

// add declares the flags --sources and --catalogue.
func (o *options) add(flags *pflag.FlagSet) {
	command.Add(flags, &o.Serve, "sources", "catalogue")
}

func newList(p *process.Process) *cobra.Command {
	o := &options{}
	return command.Spec{
		Use:   "list",
		Short: "List sources and their state",
		Long: `list prints one line for each source. With --data or --admin-socket it asks the running node for their state: when a
source was last read, and why it failed since. Without a node it lists the definitions.

Evidence for a definition: confirmed (a real answer of the last 12 months parses); reported (public programs agree on
it); old (not seen since 2024: disabled, unless a definition of your own enables it); read here (this node has published
its rates). Alerts and conditions count sources that are confirmed or read here.

States: ok; degraded (a side of a rate is missing that the source gave before); partial (a page
failed, or some values were quarantined); quarantined (all values were); failing; never (not
since the start); disabled; off (the node collects nothing).`,
		Example: `  tasard sources list --data ./data
  tasard sources list --sources ./definitions --json | jq -r '.sources[].id'`,
		Settings: func(flags *pflag.FlagSet) {
			command.Add(flags, &o.Serve, "data", "admin-socket", "source-secrets", "sources", "catalogue")
		},
		Flags:        func(flags *pflag.FlagSet) { command.BoolFlag(flags, &o.json, "json", "answer as JSON") },
		Run:          func(ctx context.Context, _ []string) error { return listSources(ctx, p, o) },
		DataOptional: true,
	}.Command(p)
}

func listSources(ctx context.Context, p *process.Process, o *options) error {
	connection := datadir.Options{Data: o.Config.Dir, Socket: o.Config.Admin.Socket}
	if running := connection.Running(ctx); running != nil {
		answer, err := datadir.Call(ctx, running, admin.ListSources, admin.NoBody{})
		if err != nil {
			return err
		}
		return terminal.WriteAnswer(p.Stdout, o.json, answer, func() { printSources(p.Stdout, &answer, "") })
	}
	reference, err := o.open()
	if err != nil {
		return err
	}
	secrets, err := p.CompleteConfig(node.Config{Collect: o.Config.Collect}, nil).ReadSourceSecrets(reference.Sources)
	if err != nil {
		return command.Explain(err)
	}
	answer := node.DescribeSources(secrets.Apply(reference.Sources))
	hint := ""
	if connection.Data != "" && datadir.RequireDir(connection.Data) != nil {
		hint = " (" + connection.Data + " is not a data directory)"
	}
	return terminal.WriteAnswer(p.Stdout, o.json, answer, func() {
		printSources(p.Stdout, &answer, "No node is running"+hint+"; these are the definitions.\n\n")
	})
}

func printSources(out io.Writer, sources *admin.Sources, heading string) {
	terminal.Fprintf(out, "%s", heading)
	const header = "SOURCE\tINSTITUTION\tEVIDENCE\tPRIORITY\tMETHOD\tHOST\tSTATE\tLAST SUCCESS\tRATES\tQUARANTINED\tREASON"
	terminal.Table(out, header, sources.Sources, func(s *admin.Source) []any {
		var success, rates, quarantined any = "", "", ""
		if h := s.Health; h != nil && h.Runs > 0 {
			success, rates, quarantined = h.LastSuccess, h.Accepted+h.Repeated, h.Quarantined
		}
		reason := shortenMiddle(reasonOf(s), reasonRunesShown)
		return []any{s.ID, s.Institution, evidenceOf(s), s.Priority, strings.Join(s.Methods, ", "), s.Host, s.State, success, rates, quarantined, reason}
	})
}

// evidenceOf returns the grade of a source's definition in a word.
func evidenceOf(s *admin.Source) string {
	switch {
	case s.Evidence != nil && (s.Health == nil || !s.Health.Confirmed || s.Evidence.Grade == string(source.Confirmed)):
		return s.Evidence.Grade
	case s.Health != nil && s.Health.Confirmed:
		return "read here"
	}
	return ""
}

// reasonOf returns the reason for a source's state, or "".
func reasonOf(s *admin.Source) string {
	h := s.Health
	switch {
	case h == nil || s.Disabled != "":
		return s.Disabled
	case h.Runs == 0 && !h.Running.IsZero():
		return "is being read since " + terminal.FormatInstant(h.Running)
	case s.State == string(collectors.Degraded) || h.Runs == 0 && len(h.Missing) > 0:
		return summarize(h.Missing)
	case h.Runs == 0 && !h.LastSlot.IsZero():
		return "read before the start, for the slot of " + terminal.FormatInstant(h.LastSlot)
	case s.State != string(collectors.OK) && h.Failure != nil && (!h.Running.IsZero() || !h.Failure.At.Before(h.LastTry)): // the newest try has failed
		return fmt.Sprintf("%s: %s", h.Failure.Kind, h.Failure.Detail)
	case h.Quarantined > 0:
		return fmt.Sprintf("%d of %d quarantined: tasard admin quarantine list --source %s", h.Quarantined, h.Read, s.ID)
	case h.Frozen:
		return fmt.Sprintf("unchanged since %s; the limit is %d days", terminal.FormatInstant(h.UnchangedSince), h.UnchangedLimitHours/24)
	}
	return ""
}

// summarize returns the first sentence about missing sides, and the number of the others.
func summarize(missing []string) string {
	if len(missing) < 2 {
		return strings.Join(missing, "")
	}
	return fmt.Sprintf("%s (and %d more)", missing[0], len(missing)-1)
}

// shortenMiddle shortens a long reason in the middle: the beginning names the failed step, and the end the cause.
func shortenMiddle(text string, runesMax int) string {
	runes := []rune(text)
	if len(runes) <= runesMax {
		return text
	}
	tailRunes := runesMax / 2
	return string(runes[:runesMax-tailRunes-1]) + "…" + string(runes[len(runes)-tailRunes:])
}

// FindDefinition returns the definition of the source with an ID. For an unknown ID the error suggests similar ones.
func FindDefinition(set *source.Set, id string) (*source.Definition, error) {
	if d, known := set.Find(id); known {
		return d, nil
	}
	var ids, institutionIDs []string
	lower := strings.ToLower(id)
	for _, d := range set.Definitions() {
		ids = append(ids, d.ID)
		if d.Institution == lower {
			institutionIDs = append(institutionIDs, d.ID)
		}
	}
	hint := command.DidYouMean(lower, ids)
	if len(institutionIDs) > 0 {
		hint = fmt.Sprintf(" (%s has %s)", lower, strings.Join(institutionIDs, ", "))
	}
	return nil, exit.Errorf(exit.Usage, "there is no source %q%s; tasard sources list lists them", id, hint)
}

// FindPage returns the index of a page in d.Pages by name. "" means the source's only page, not counting substitutes
// (pages read only in place of another).
func FindPage(d *source.Definition, name string) (int, error) {
	var names []string
	single := 0 // pages that are not substitutes
	for i := range d.Pages {
		if d.Pages[i].Name == name {
			return i, nil
		}
		if d.Pages[i].InsteadOf == "" {
			single++
		}
		names = append(names, d.Pages[i].Name)
	}
	slices.Sort(names)
	switch all := strings.Join(names, ", "); {
	case single == 1 && name == "":
		return 0, nil
	case len(d.Pages) == 1:
		return 0, exit.Errorf(exit.Usage, "the source %s has one page only; leave --page %s out", d.ID, name)
	case name == "":
		return 0, exit.Errorf(exit.Usage, "the source %s has several pages; name one of %s with --page", d.ID, all)
	default:
		return 0, exit.Errorf(exit.Usage, "the source %s has no page %q%s; name one of %s with --page", d.ID, name,
			command.DidYouMean(strings.ToLower(name), names), all)
	}
}

// NewDefinitions returns the command tasard definitions.
func NewDefinitions(p *process.Process) *cobra.Command {
	return command.Spec{
		Use:   "definitions",
		Short: "Print the built-in definitions of sources, and their JSON Schema",
		Long: `definitions prints what an author of definitions starts from. A definition says how a source of rates is fetched and
read; tasard serve --sources DIR uses the files of a directory in addition to the built-in ones.`,
		Example: `  tasard definitions show bhd-site > ./definitions/bhd-site.json
  tasard definitions schema > ./definitions/definition.schema`,
		Subcommands: []*cobra.Command{newShow(p), newSchema(p)},
	}.Command(p)
}

func newShow(p *process.Process) *cobra.Command {
	return command.Spec{
		Use:   "show ID",
		Short: "Print the built-in definition of a source",
		Long: `show prints the file with the built-in definition of a source, as a start for one of your own. A file with the same id
in the directory of --sources replaces it.`,
		Example: `  tasard definitions show bhd-site > ./definitions/bhd-site.json
  tasard definitions show infodolar | jq '.pages[].requests'`,
		Args: command.ExactArgs(1, "the id of a source"),
		Run: func(_ context.Context, args []string) error {
			d, err := FindDefinition(source.DefaultSet(), args[0])
			if err != nil {
				return err
			}
			return printFile(p, source.DefaultSet().File(d.ID))
		},
	}.Command(p)
}

func newSchema(p *process.Process) *cobra.Command {
	return command.Spec{
		Use:   "schema",
		Short: "Print the JSON Schema of definition files",
		Long: `schema prints a JSON Schema (draft 2020-12) of definition files, with which an editor checks and completes them: name it in
the key $schema of a file, or in the settings of the editor. Its name must not end in .json if it lies in the directory
of --sources. The node checks more, such as selectors and patterns; tasard sources list --sources DIR shows that.`,
		Example: `  tasard definitions schema > ./definitions/definition.schema
  tasard definitions schema | jq '."$defs".page.properties | keys'`,
		Run: func(context.Context, []string) error { return printFile(p, source.Schema()) },
	}.Command(p)
}

func printFile(p *process.Process, text []byte) error {
	if _, err := p.Stdout.Write(text); err != nil {
		return exit.Errorf(exit.IOError, "write the answer: %w", err)
	}
	return nil
}
