package cmd

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

func (p *process) newAdminRates() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rates",
		Short: "Set or withdraw rates by hand",
		Long: `rates publishes what an operator knows and no source says, or says wrongly. A manual rate wins over every collected one
until it expires or is withdrawn; then the collected one is published again.`,
		Example: `  tasard admin rates set vega-real USD --buy 58.10 --sell 59.30 --data ./data --by ana
  tasard admin rates withdraw vega-real USD --data ./data --by ana`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.newRatesSet(), p.newRatesWithdraw())
	return cmd
}

func (p *process) newRatesSet() *cobra.Command {
	o, body, span := &adminOptions{}, admin.ManualRate{}, time.Duration(0)
	cmd := p.adminCommand(&cobra.Command{
		Use:   "set INSTITUTION CURRENCY --buy RATE --sell RATE",
		Short: "Publish a rate by hand",
		Long: `set publishes a rate of an institution: --buy is what it pays (compra), --sell what it asks (venta), in pesos for one
unit of the currency; one of them may be left out. The rate lasts 24 hours, or as --for or --expires say. A value that the
rules would hold back from any other source, as one far off the market, is held back here too: the answer names its number,
and tasard admin quarantine release publishes it. Then the exit code is 65.`,
		Example: `  tasard admin rates set vega-real USD --buy 58.10 --sell 59.30 --data ./data --by ana
  tasard admin rates set popular EUR --sell 70.25 --for 6h --data ./data`,
		Args: oneQuote,
	}, o, func(ctx context.Context, node *remote, args []string) error {
		if body.Buy == "" && body.Sell == "" {
			return fail(exitUsage, "tasard admin rates set: no side; give --buy RATE, --sell RATE or both")
		}
		if span != 0 {
			body.For = span.String()
		}
		if span != 0 && !body.ExpiresAt.IsZero() {
			return fail(exitUsage, "tasard admin rates set: want one of --expires INSTANT and --for SPAN")
		}
		body.Institution, body.Currency, body.By = args[0], args[1], o.by
		return p.setRate(ctx, o, node, &body)
	})
	flags := cmd.Flags()
	addQuote(cmd, &body.Quote)
	flags.Var(sideValue(&body.Buy), "buy", "what the institution pays for one unit")
	flags.Var(sideValue(&body.Sell), "sell", "what it asks for one unit")
	flags.Var(dateValue(&body.EffectiveDate), "effective-date", "the day that the rate is of; by default unknown")
	flags.Var(instantValue(&body.ExpiresAt), "expires", "the `INSTANT` at which it expires, RFC 3339")
	flags.Var(optionalSpan(&span, time.Minute, admin.ManualLifeMax), "for", "how long it lasts, such as 6h; by default 24h")
	addBy(cmd, o)
	return cmd
}

func (p *process) setRate(ctx context.Context, o *adminOptions, node *remote, body *admin.ManualRate) error {
	answer, err := ask(ctx, node, admin.SetRate, *body)
	if err != nil {
		return err
	}
	err = present(p.stdout, o.json, answer, func() {
		if answer.Held == nil {
			say(p.stdout, "%s is set by %s.\n", answer.ID, printable(answer.By))
		}
		printOffering(p.stdout, answer.Published)
	})
	if err != nil || answer.Held == nil {
		return err
	}
	return fail(exitBadLines, "%s is held back as %s: %s: %s; when it is right all the same: tasard admin quarantine release %s%s",
		answer.ID, answer.Held.Number, answer.Held.Reason, answer.Held.Detail, answer.Held.Number, o.place())
}

func (p *process) newRatesWithdraw() *cobra.Command {
	o, body := &adminOptions{}, admin.Withdrawal{Source: admin.ManualSource}
	cmd := p.adminCommand(&cobra.Command{
		Use:   "withdraw INSTITUTION CURRENCY",
		Short: "Take a rate back",
		Long: `withdraw ends what a source, by default the operator, says of a rate. What another source says of it is published again;
with no other one the rate is gone. A source that is collected says it again with its next answer.`,
		Example: `  tasard admin rates withdraw vega-real USD --data ./data --by ana
  tasard admin rates withdraw popular USD --source infodolar --data ./data`,
		Args: oneQuote,
	}, o, func(ctx context.Context, node *remote, args []string) error {
		body.Institution, body.Currency, body.By = args[0], args[1], o.by
		answer, err := ask(ctx, node, admin.WithdrawRate, body)
		if err != nil {
			return err
		}
		return present(p.stdout, o.json, answer, func() {
			say(p.stdout, "%s of %s is withdrawn by %s.\n", answer.ID, printable(answer.SourceID), printable(answer.By))
			printOffering(p.stdout, answer.Published)
		})
	})
	addQuote(cmd, &body.Quote)
	cmd.Flags().Var(lineValue(&body.Source, "ID", admin.IDMax), "source", "whose word is taken back")
	addBy(cmd, o)
	return cmd
}

// addQuote declares the flags that tell the quotes of one institution and currency apart.
func addQuote(cmd *cobra.Command, q *admin.Quote) {
	q.Channel, q.Kind = engine.Unspecified, engine.Commercial
	var channels, kinds []string
	for _, channel := range engine.Channels() {
		channels = append(channels, string(channel))
	}
	for _, kind := range engine.Kinds() {
		kinds = append(kinds, string(kind))
	}
	cmd.Flags().Var(wordValue(&q.Channel, channels...), "channel", "the channel of the rate")
	cmd.Flags().Var(wordValue(&q.Kind, kinds...), "kind", "the kind of the rate")
}

// oneQuote wants the institution and the currency of a rate.
func oneQuote(cmd *cobra.Command, args []string) error {
	if len(args) == 2 && currencyPattern().MatchString(args[1]) {
		return nil
	}
	return fail(exitUsage, "%s: want an institution and a currency, such as popular USD, found %q", cmd.CommandPath(), args)
}

// printOffering says what is published.
func printOffering(out io.Writer, o *admin.Offer) {
	if o == nil {
		say(out, "Nothing is published for it now.\n")
		return
	}
	until := "until " + instant(o.ExpiresAt)
	if o.Stale {
		until = "stale since " + instant(o.ExpiresAt)
	}
	say(out, "Published now: %s / %s of %s, %s.\n", printable(o.Buy), printable(o.Sell), printable(o.SourceID), until)
}
