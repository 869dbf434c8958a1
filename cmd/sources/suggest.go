package sources

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/suggest"
	"github.com/tasard/tasard/engine"
)

type suggestOptions struct {
	options
	known []string // values of --known
	page  string
}

func newSuggest(p *process.Process) *cobra.Command {
	o := &suggestOptions{}
	return command.Spec{
		Use:   "suggest ID [FILE]",
		Short: "Find the rates in a page that has changed, and write a definition that reads them",
		Long: `suggest looks for the rates of an institution in a document that its definition no longer reads. It lists on standard
error what it has found and by which words, and prints a definition that reads exactly these rates: compare them with
the page, then put the file into the directory of --sources. Nothing is published, stored or requested.

FILE is a page that a browser or curl saved, or "-". Without FILE it is the newest document of the source in the archive of
--data, and the last prices that the present definition reads in the archive are the known ones. A price that is far from a known one is
refused, and a known price names the side of a price beside which no word says so. A price without clear words is
never guessed. The exit code is 61 when no rates are clear.`,
		Example: `  tasard sources suggest bhd-site --data ./data > ./definitions/bhd-site.json
  tasard sources suggest bdi-site inicio.html --known USD=58.10/59.60 --known EUR=66.10/70.05`,
		Args: cobra.RangeArgs(1, 2),
		Settings: func(flags *pflag.FlagSet) {
			o.add(flags)
			command.Add(flags, &o.Serve, "data")
		},
		Flags: func(flags *pflag.FlagSet) {
			flags.StringArrayVar(&o.known, "known", nil, "a price that is known, as `USD=58.10/59.60` (buy/sell; either may be missing)")
			flags.Var(command.Line(&o.page, "NAME", 80), "page", "the page of the source, if it has several")
		},
		Run:          func(ctx context.Context, args []string) error { return o.run(ctx, p, args) },
		DataOptional: true,
	}.Command(p)
}

func (o *suggestOptions) run(ctx context.Context, p *process.Process, args []string) error {
	reference, err := o.open()
	if err != nil {
		return err
	}
	d, err := FindDefinition(reference.Sources, args[0])
	if err != nil {
		return err
	}
	var known []engine.Observation
	for _, text := range o.known {
		k, err := parseKnown(text)
		if err != nil {
			return exit.Errorf(exit.Usage, "--known %s: %w", text, err)
		}
		known = append(known, k)
	}
	page, err := FindPage(d, o.page)
	if err != nil {
		return err
	}
	var document *source.Document
	if len(args) == 2 {
		document, err = ReadDocument(ctx, p, args[1])
	} else {
		document, page, known, err = o.fromArchive(ctx, p, d, known)
	}
	if err != nil {
		return err
	}
	suggested := suggest.Suggest(reference.Sources.File(d.ID), page, document, known, engine.DateOf(document.FetchedAt))
	for _, f := range suggested.Found {
		terminal.Fprintf(p.Stderr, "%s %s %s at %s: %s\n", f.Currency, f.Side, f.Price,
			terminal.Sanitize(f.Place), terminal.Sanitize(strings.Join(f.Reasons, ", ")))
	}
	for _, note := range suggested.Notes {
		terminal.Fprintf(p.Stderr, "note: %s\n", terminal.Sanitize(note))
	}
	if suggested.Definition == nil {
		return exit.Errorf(exit.NothingFound, "no definition of %s can be suggested from this document; give the prices that are known with --known", d.ID)
	}
	return printFile(p, suggested.Definition)
}

// parseKnown parses a value of --known, such as USD=58.10/59.60 or EUR=/70.05.
func parseKnown(text string) (known engine.Observation, err error) {
	currency, prices, _ := strings.Cut(text, "=")
	buy, sell, isPair := strings.Cut(prices, "/")
	for _, price := range []string{buy, sell} {
		if _, parseErr := engine.ParseDecimal(cmp.Or(price, "1")); parseErr != nil {
			err = parseErr
		}
	}
	if err != nil || !isPair || len(currency) != 3 || buy+sell == "" {
		return known, errors.New("want a currency and its prices, as USD=58.10/59.60")
	}
	return engine.Observation{Currency: currency, Buy: buy, Sell: sell}, nil
}

// earlierMax is the maximum number of documents searched for the last readable prices.
const earlierMax = 60

// fromArchive returns the newest document of a source, its page, and the known prices: those of the operator, and for
// other currencies the last ones that the definition reads.
func (o *suggestOptions) fromArchive(ctx context.Context, p *process.Process, d *source.Definition, known []engine.Observation) (*source.Document, int, []engine.Observation, error) {
	dir := command.ArchiveDir(o.Config.Dir)
	if o.Config.Dir == "" {
		return nil, 0, nil, exit.Errorf(exit.Usage, "name a FILE, or the data directory with --data, whose archive has the documents that were fetched")
	}
	documents, err := archive.Documents(dir, d.ID)
	if err != nil {
		return nil, 0, nil, exit.WrapUncoded(exit.NoInput, err)
	}
	if len(documents) == 0 {
		return nil, 0, nil, exit.Errorf(exit.NoInput, "%s has no document of %s; save the page and name the file", dir, d.ID)
	}
	newest := documents[0]
	document, err := ReadDocument(ctx, p, newest.Path)
	if err != nil {
		return nil, 0, nil, err
	}
	terminal.Fprintf(p.Stderr, "document: %s\n", newest.Path)
	for _, earlier := range documents[1:min(len(documents), earlierMax)] {
		if earlier.Page >= len(d.Pages) || earlier.Page != newest.Page {
			continue
		}
		last, err := ReadDocument(ctx, p, earlier.Path)
		if err != nil {
			return nil, 0, nil, err
		}
		if result, err := d.Parse(earlier.Page, last); err == nil {
			terminal.Fprintf(p.Stderr, "known prices: of %s\n", earlier.Path)
			return document, newest.Page, append(known, result.Observations...), nil
		}
	}
	if newest.Page >= len(d.Pages) {
		return nil, 0, nil, exit.Errorf(exit.NoInput, "%s is a page that the definition does not have", newest.Path)
	}
	return document, newest.Page, known, nil
}
