package operator

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/remote"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

func newAdminRates(p *process.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rates",
		Short: "Set or withdraw rates by hand",
		Long: `rates publishes what an operator knows and no source says, or says wrongly. A manual rate wins over every collected one
until it expires or is withdrawn; then the collected one is published again.`,
		Example: `  tasard admin rates set vega-real USD --buy 58.10 --sell 59.30 --data ./data --by ana
  tasard admin rates withdraw vega-real USD --data ./data --by ana`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRatesSet(p), newRatesWithdraw(p))
	return cmd
}

func newRatesSet(p *process.Process) *cobra.Command {
	o, body, span := &remote.Options{}, admin.ManualRate{}, time.Duration(0)
	cmd := adminCommand(p, &cobra.Command{
		Use:   "set INSTITUTION CURRENCY --buy RATE --sell RATE",
		Short: "Publish a rate by hand",
		Long: `set publishes a rate of an institution: --buy is what it pays (compra), --sell what it asks (venta), in pesos for one
unit of the currency; one of them may be left out. The rate lasts 24 hours, or as --for or --expires say. A value that the
rules would hold back from any other source, as one far off the market, is held back here too: the answer names its number,
and tasard admin quarantine release publishes it. Then the exit code is 65.`,
		Example: `  tasard admin rates set vega-real USD --buy 58.10 --sell 59.30 --data ./data --by ana
  tasard admin rates set popular EUR --sell 70.25 --for 6h --data ./data`,
		Args: oneQuote,
	}, o, func(ctx context.Context, node *remote.Node, args []string) error {
		if body.Buy == "" && body.Sell == "" {
			return exit.Fail(exit.Usage, "tasard admin rates set: no side; give --buy RATE, --sell RATE or both")
		}
		if span != 0 {
			body.For = span.String()
		}
		if span != 0 && !body.ExpiresAt.IsZero() {
			return exit.Fail(exit.Usage, "tasard admin rates set: want one of --expires INSTANT and --for SPAN")
		}
		body.Institution, body.Currency, body.By = args[0], args[1], o.By
		return setRate(p, ctx, o, node, &body)
	})
	flags := cmd.Flags()
	addQuote(cmd, &body.Quote)
	flags.Var(setting.Side(&body.Buy), "buy", "what the institution pays for one unit")
	flags.Var(setting.Side(&body.Sell), "sell", "what it asks for one unit")
	flags.Var(setting.Date(&body.EffectiveDate), "effective-date", "the day that the rate is of; by default unknown")
	flags.Var(setting.Instant(&body.ExpiresAt), "expires", "the `INSTANT` at which it expires, RFC 3339")
	flags.Var(setting.OptionalSpan(&span, time.Minute, admin.ManualLifeMax), "for", "how long it lasts, such as 6h; by default 24h")
	remote.AddBy(cmd, o)
	return cmd
}

func setRate(p *process.Process, ctx context.Context, o *remote.Options, node *remote.Node, body *admin.ManualRate) error {
	answer, err := remote.Ask(ctx, node, admin.SetRate, *body)
	if err != nil {
		return err
	}
	err = terminal.Present(p.Stdout, o.JSON, answer, func() {
		if answer.Held == nil {
			terminal.Say(p.Stdout, "%s is set by %s.\n", answer.ID, terminal.Printable(answer.By))
		}
		printOffering(p.Stdout, answer.Published)
	})
	if err != nil || answer.Held == nil {
		return err
	}
	return exit.Fail(exit.BadLines, "%s is held back as %s: %s: %s; when it is right all the same: tasard admin quarantine release %s%s",
		answer.ID, answer.Held.Number, answer.Held.Reason, answer.Held.Detail, answer.Held.Number, o.Place())
}

func newRatesWithdraw(p *process.Process) *cobra.Command {
	o, body := &remote.Options{}, admin.Withdrawal{Source: admin.ManualSource}
	cmd := adminCommand(p, &cobra.Command{
		Use:   "withdraw INSTITUTION CURRENCY",
		Short: "Take a rate back",
		Long: `withdraw ends what a source, by default the operator, says of a rate. What another source says of it is published again;
with no other one the rate is gone. A source that is collected says it again with its next answer.`,
		Example: `  tasard admin rates withdraw vega-real USD --data ./data --by ana
  tasard admin rates withdraw popular USD --source infodolar --data ./data`,
		Args: oneQuote,
	}, o, func(ctx context.Context, node *remote.Node, args []string) error {
		body.Institution, body.Currency, body.By = args[0], args[1], o.By
		answer, err := remote.Ask(ctx, node, admin.WithdrawRate, body)
		if err != nil {
			return err
		}
		return terminal.Present(p.Stdout, o.JSON, answer, func() {
			terminal.Say(p.Stdout, "%s of %s is withdrawn by %s.\n", answer.ID, terminal.Printable(answer.SourceID), terminal.Printable(answer.By))
			printOffering(p.Stdout, answer.Published)
		})
	})
	addQuote(cmd, &body.Quote)
	cmd.Flags().Var(setting.Line(&body.Source, "ID", admin.IDMax), "source", "whose word is taken back")
	remote.AddBy(cmd, o)
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
	cmd.Flags().Var(setting.Word(&q.Channel, channels...), "channel", "the channel of the rate")
	cmd.Flags().Var(setting.Word(&q.Kind, kinds...), "kind", "the kind of the rate")
}

// oneQuote wants the institution and the currency of a rate.
func oneQuote(cmd *cobra.Command, args []string) error {
	if len(args) == 2 && setting.CurrencyPattern().MatchString(args[1]) {
		return nil
	}
	return exit.Fail(exit.Usage, "%s: want an institution and a currency, such as popular USD, found %q", cmd.CommandPath(), args)
}

// printOffering says what is published.
func printOffering(out io.Writer, o *admin.Offer) {
	if o == nil {
		terminal.Say(out, "Nothing is published for it now.\n")
		return
	}
	until := "until " + terminal.Instant(o.ExpiresAt)
	if o.Stale {
		until = "stale since " + terminal.Instant(o.ExpiresAt)
	}
	terminal.Say(out, "Published now: %s / %s of %s, %s.\n", terminal.Printable(o.Buy), terminal.Printable(o.Sell), terminal.Printable(o.SourceID), until)
}
