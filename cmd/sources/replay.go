package sources

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
)

// These types are the JSON output of replay and diff. In replay, before is what was read when the document was fetched,
// and after what is read now; in diff, before is today's definition, and after the changed one.
type (
	comparison struct {
		Source    string             `json:"source"`
		Archive   string             `json:"archive"`
		Differing int                `json:"differing"` // documents with changes
		Documents []comparedDocument `json:"documents"`
		Damaged   []string           `json:"damaged,omitempty"` // documents that can't be read, and why
	}
	comparedDocument struct {
		FetchedAt time.Time `json:"fetchedAt"`
		Page      string    `json:"page,omitempty"`
		URL       string    `json:"url"`
		Digest    string    `json:"digest"`
		Published bool      `json:"published"` // its rates were published then
		Before    reading   `json:"before"`
		After     reading   `json:"after"`
		Changes   []change  `json:"changes"`
	}
)

func newReplay(p *process.Process) *cobra.Command {
	o, kept, since := &options{}, &archiveOptions{}, time.Time{}
	return command.Spec{
		Use:   "replay ID",
		Short: "Read the archived documents of a source again",
		Long: `replay reads the documents of a source that a node has archived again, with the definition of today, and shows what it
would publish in place of what was published then. A document that changed nothing since the one before was not kept.
It requests and stores nothing and needs no node. Without --since it reads all documents. A value that the rules refused
then is marked with the reason; whether they would accept it is not examined. Past days of workbooks are not compared.

The exit code is 66 when there is no document.`,
		Example: `  tasard sources replay bhd-site --data ./data
  tasard sources replay bhd-site --archive ./archive --since 2026-11-01 --sources ./definitions --json`,
		Args: command.ExactArgs(1, "the id of a source"),
		Settings: func(flags *pflag.FlagSet) {
			kept.add(flags)
			o.add(flags)
		},
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.Since(&since), "since", "only documents that were fetched on this `DATE` or at this instant or later")
			setting.BoolFlag(flags, &o.json, "json", "answer as JSON")
		},
		Run: func(ctx context.Context, args []string) error {
			return replay(ctx, p, o, kept, args[0], since)
		},
		DataOptional: true,
	}.Command(p)
}

func replay(ctx context.Context, p *process.Process, o *options, kept *archiveOptions, id string, since time.Time) error {
	dir, err := kept.existing()
	if err != nil {
		return err
	}
	reference, err := o.open()
	if err != nil {
		return err
	}
	d, err := FindDefinition(reference.Sources, id)
	if err != nil {
		return err
	}
	entries, problems := archive.Dir(dir).List(d.ID, since)
	c := newComparison(d.ID, dir, problems)
	for i := range entries {
		entry := &entries[i]
		if ctx.Err() != nil {
			return exit.Errorf(exit.Interrupted, "interrupted when %d of %s were read", i, terminal.Plural(len(entries), "document"))
		}
		before := reading{Failure: entry.Failure, Rates: entry.Rates}
		c.add(entry, func(document *source.Document) (reading, reading) { return before, read(d, entry, document) })
	}
	if err := c.print(p, o.json, "THEN", "NOW"); err != nil || len(entries) > 0 {
		return err
	}
	return exit.Errorf(exit.NoInput, "%s has no document of %s%s", dir, d.ID, sinceText(since))
}

func sinceText(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return " since " + terminal.FormatInstant(since)
}

func newComparison(id, dir string, problems []error) *comparison {
	c := &comparison{Source: id, Archive: dir, Documents: []comparedDocument{}}
	for _, problem := range problems {
		c.Damaged = append(c.Damaged, problem.Error())
	}
	return c
}

// add compares two readings of an archived document. If the document is damaged, it is only listed.
func (c *comparison) add(entry *archive.Entry, readings func(*source.Document) (before, after reading)) {
	document, err := archive.Dir(c.Archive).Document(entry)
	if err != nil {
		c.Damaged = append(c.Damaged, err.Error())
		return
	}
	compared := comparedDocument{FetchedAt: entry.FetchedAt, Page: entry.Page, URL: entry.URL, Digest: entry.Digest, Published: entry.Published}
	compared.Before, compared.After = readings(document)
	compared.Changes = compareRates(compared.Before.Rates, compared.After.Rates)
	if compared.differs() {
		c.Differing++
	}
	c.Documents = append(c.Documents, compared)
}

func (d *comparedDocument) differs() bool {
	return len(d.Changes) > 0 || (d.Before.Failure == "") != (d.After.Failure == "")
}

// print prints the documents that differ. before and after are headings.
func (c *comparison) print(p *process.Process, asJSON bool, before, after string) error {
	return terminal.WriteAnswer(p.Stdout, asJSON, c, func() { c.printTable(p.Stdout, before, after) })
}

func (c *comparison) printTable(out io.Writer, before, after string) {
	terminal.Fprintf(out, "%s: %s, %d with changes\n", c.Source, terminal.Plural(len(c.Documents), "document"), c.Differing)
	if c.Differing > 0 {
		table := terminal.NewTable(out, "  FETCHED\tPAGE\tDOCUMENT\tQUOTE\t"+before+"\t"+after+"\n")
		for i := range c.Documents {
			c.Documents[i].printRows(table)
		}
		_ = table.Flush() // out is an ErrWriter, which keeps errors
	}
	for _, damaged := range c.Damaged {
		terminal.Fprintf(out, "  damaged: %s\n", terminal.Sanitize(damaged))
	}
}

// digestShown is the number of digits of a digest that a table shows.
const digestShown = 12

func (d *comparedDocument) printRows(table io.Writer) {
	row := func(quote, before, after string) {
		terminal.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\n", terminal.FormatInstant(d.FetchedAt), terminal.Sanitize(d.Page), d.Digest[:digestShown],
			terminal.Sanitize(quote), terminal.Sanitize(before), terminal.Sanitize(after))
	}
	if d.differs() && d.Before.Failure != d.After.Failure {
		row("", elide(d.Before.Failure, reasonRunesShown), elide(d.After.Failure, reasonRunesShown))
	}
	for i := range d.Changes {
		c := &d.Changes[i]
		before := valueOf(c.Before)
		if c.Before != nil && c.Before.Refused != "" {
			before += " (" + string(c.Before.Refused) + ")"
		}
		row(c.quote(), before, valueOf(c.After))
	}
}
