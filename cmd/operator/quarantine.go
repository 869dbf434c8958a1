package operator

import (
	"context"
	"io"
	"net/url"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/remote"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
)

// digestShown is how many digits of a document's digest tell it from the others in a table.
const digestShown = 12

func (r *request) quarantine() *cobra.Command {
	return command.Row{
		Use:   "quarantine",
		Short: "List, release or reject the values that the rules hold back",
		Long: `quarantine looks after the values that the rules hold back: they are kept with their reason and never served. A held
value is named by its currency and number, as USD/17.`,
		Example: `  tasard admin quarantine list --data ./data
  tasard admin quarantine release USD/17 --data ./data --by ana`,
		Below: []*cobra.Command{r.listHeld(), r.release(), r.reject()},
	}.Command(r.Process)
}

func (r *request) listHeld() *cobra.Command {
	currency, source := "", ""
	return r.row(command.Row{
		Use:   "list",
		Short: "List what is held back, and why",
		Long: `list prints one line for each value that is held back, oldest first in each currency, with the first digits of the digest of
the document that it was read from. With --json it prints one JSON object a line, digests whole.`,
		Example: `  tasard admin quarantine list --data ./data --currency USD
  tasard admin quarantine list --data ./data --json | jq 'select(.reason == "jump")'`,
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.Currency(&currency), "currency", "only values of this currency")
			flags.Var(setting.Line(&source, "ID", admin.IDMax), "source", "only values of this source")
		},
		Run: func(ctx context.Context, _ []string) error {
			query := url.Values{}
			for name, text := range map[string]string{"currency": currency, "source": source} {
				if text != "" {
					query.Set(name, text)
				}
			}
			return remote.List(ctx, r.Stdout, r.JSON, r.node, admin.ListHeld, query, printHeld)
		},
	})
}

func printHeld(out io.Writer, held []admin.Held) error {
	if len(held) == 0 {
		terminal.Say(out, "Nothing is held back.\n")
		return nil
	}
	table := terminal.Table(out, "NUMBER\tWHEN\tSOURCE\tINSTITUTION\tCHANNEL\tKIND\tBUY\tSELL\tDATE\tREASON\tDOCUMENT\tDETAIL\n")
	for i := range held {
		h := &held[i]
		terminal.Say(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Number, terminal.Instant(h.ObservedAt), terminal.Printable(h.SourceID),
			terminal.Printable(h.InstitutionID), h.Channel, h.Kind, terminal.Printable(h.Buy), terminal.Printable(h.Sell), terminal.Printable(h.EffectiveDate), h.Reason,
			terminal.Printable(h.Document[:min(digestShown, len(h.Document))]), terminal.Printable(h.Detail))
	}
	if err := table.Flush(); err != nil {
		return exit.Fail(exit.Broken, "write the list: %w", err)
	}
	return nil
}

func (r *request) release() *cobra.Command {
	return r.change(command.Row{
		Use:   "release NUMBER...",
		Short: "Publish a held value after all",
		Long: `release publishes a held value: it has been looked at, and the rules are wrong this once. What is no rate at all, an
unreadable, zero or missing side or a buy above the sell, can't be released. A value that is older than what its source
has said since goes into history only.`,
		Example: "  tasard admin quarantine release USD/17 --data ./data --by ana",
		Args:    someNumbers,
		Run: func(ctx context.Context, args []string) error {
			return r.judge(ctx, args, admin.ReleaseHeld, "is released")
		},
	})
}

func (r *request) reject() *cobra.Command {
	return r.change(command.Row{
		Use:     "reject NUMBER...",
		Short:   "Drop held values for good",
		Long:    "reject takes values out of the quarantine without publishing them. The log keeps what they were and who did it.",
		Example: "  tasard admin quarantine reject USD/17 USD/18 EUR/3 --data ./data --by ana",
		Args:    someNumbers,
		Run: func(ctx context.Context, args []string) error {
			return r.judge(ctx, args, admin.RejectHeld, "is rejected")
		},
	})
}

// judge decides about one value after the other; the first that can't be decided ends it.
func (r *request) judge(ctx context.Context, numbers []string, of admin.Operation[admin.By, admin.Verdict], outcome string) error {
	for _, number := range numbers {
		named := heldPattern().FindStringSubmatch(number)
		table := func(out io.Writer, v *admin.Verdict) { printVerdict(out, v, outcome) }
		if _, err := ask(ctx, r, of, admin.By{By: r.by}, table, named[1], named[2]); err != nil {
			return err
		}
	}
	return nil
}

func printVerdict(out io.Writer, v *admin.Verdict, outcome string) {
	h := &v.Held
	terminal.Say(out, "%s %s by %s: %s:%s:%s:%s, %s / %s, of %s.\n", h.Number, outcome, terminal.Printable(v.By),
		terminal.Printable(h.InstitutionID), h.Currency, h.Channel, h.Kind, terminal.Printable(h.Buy), terminal.Printable(h.Sell), terminal.Printable(h.SourceID))
	printOffering(out, v.Published)
}

// heldPattern is how a held value is named: currency and number.
func heldPattern() *regexp.Regexp { return regexp.MustCompile(`^([A-Z]{3})/([1-9][0-9]{0,18})$`) }

// someNumbers wants the held values that a command is about.
func someNumbers(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Fail(exit.Usage, "%s: no number; name a held value by currency and number, such as USD/17", cmd.CommandPath())
	}
	for _, arg := range args {
		if !heldPattern().MatchString(arg) {
			return exit.Fail(exit.Usage, "%s: %q names no held value; want currency and number, such as USD/17", cmd.CommandPath(), arg)
		}
	}
	return nil
}
