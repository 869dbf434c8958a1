package operator

import (
	"context"
	"io"
	"net/url"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

func (r *invocation) rates() *cobra.Command {
	return command.Spec{
		Use:   "rates",
		Short: "Set or withdraw rates by hand",
		Long: `rates publishes what an operator knows and no source says, or says wrongly. A manual rate wins over every collected one
until it expires or is withdrawn; then the collected one is published again.`,
		Example: `  tasard admin rates set vega-real USD --buy 58.10 --sell 59.30 --data ./data --by ana
  tasard admin rates withdraw vega-real USD --data ./data --by ana`,
		Subcommands: []*cobra.Command{r.setRate(), r.withdrawRate()},
	}.Command(r.Process)
}

func (r *invocation) setRate() *cobra.Command {
	body, span := admin.ManualRate{}, time.Duration(0)
	return r.newChangeCommand(command.Spec{
		Use:   "set INSTITUTION CURRENCY --buy RATE --sell RATE",
		Short: "Publish a rate by hand",
		Long: `set publishes a rate of an institution: --buy is what it pays (compra), --sell what it asks (venta), in pesos for one
unit of the currency; one of them may be left out. The rate lasts 24 hours, or as --for or --expires say. A value that the
rules would hold back from any other source, as one far off the market, is held back here too: the answer names its number,
and tasard admin quarantine release publishes it. Then the exit code is 65.`,
		Example: `  tasard admin rates set vega-real USD --buy 58.10 --sell 59.30 --data ./data --by ana
  tasard admin rates set popular EUR --sell 70.25 --for 6h --data ./data`,
		Args: checkQuoteArguments,
		Flags: func(flags *pflag.FlagSet) {
			addQuote(flags, &body.Quote)
			flags.Var(setting.Side(&body.Buy), "buy", "what the institution pays for one unit")
			flags.Var(setting.Side(&body.Sell), "sell", "what it asks for one unit")
			flags.Var(setting.Date(&body.EffectiveDate), "effective-date", "the day that the rate is of; by default unknown")
			flags.Var(setting.Instant(&body.ExpiresAt), "expires", "the `INSTANT` at which it expires, RFC 3339")
			flags.Var(setting.OptionalDuration(&span, time.Minute, admin.ManualLifeMax), "for", "how long it lasts, such as 6h; by default 24h")
		},
		Run: func(ctx context.Context, args []string) error {
			switch {
			case body.Buy == "" && body.Sell == "":
				return exit.Errorf(exit.Usage, "tasard admin rates set: no side; give --buy RATE, --sell RATE or both")
			case span != 0 && !body.ExpiresAt.IsZero():
				return exit.Errorf(exit.Usage, "tasard admin rates set: want one of --expires INSTANT and --for SPAN")
			case span != 0:
				body.For = span.String()
			}
			body.Institution, body.Currency, body.Author = args[0], args[1], r.author
			return r.publish(ctx, &body)
		},
	})
}

// publish sets a rate. A quarantined one is an error that says how to release it.
func (r *invocation) publish(ctx context.Context, body *admin.ManualRate) error {
	answer, err := call(ctx, r, admin.SetRate, *body, printRateSet)
	if err != nil || answer.Quarantined == nil {
		return err
	}
	return exit.Errorf(exit.Rejected, "%s is held back as %s: %s: %s; when it is right all the same: tasard admin quarantine release %s%s",
		answer.ID, answer.Quarantined.Number, answer.Quarantined.Reason, answer.Quarantined.Detail, answer.Quarantined.Number, r.NodeFlag())
}

func (r *invocation) withdrawRate() *cobra.Command {
	body := admin.Withdrawal{Source: admin.ManualSource}
	return r.newChangeCommand(command.Spec{
		Use:   "withdraw INSTITUTION CURRENCY",
		Short: "Take a rate back",
		Long: `withdraw ends what a source, by default the operator, says of a rate. What another source says of it is published again;
with no other one the rate is gone. A source that is collected says it again with its next answer.`,
		Example: `  tasard admin rates withdraw vega-real USD --data ./data --by ana
  tasard admin rates withdraw popular USD --source infodolar --data ./data`,
		Args: checkQuoteArguments,
		Flags: func(flags *pflag.FlagSet) {
			addQuote(flags, &body.Quote)
			flags.Var(setting.Line(&body.Source, "ID", admin.IDMax), "source", "whose word is taken back")
		},
		Run: func(ctx context.Context, args []string) error {
			body.Institution, body.Currency, body.Author = args[0], args[1], r.author
			_, err := call(ctx, r, admin.WithdrawRate, body, printRateWithdrawn)
			return err
		},
	})
}

// addQuote declares --channel and --kind.
func addQuote(flags *pflag.FlagSet, q *admin.Quote) {
	q.Channel, q.Kind = engine.Unspecified, engine.Commercial
	var channels, kinds []string
	for _, channel := range engine.Channels() {
		channels = append(channels, string(channel))
	}
	for _, kind := range engine.Kinds() {
		kinds = append(kinds, string(kind))
	}
	flags.Var(setting.Enum(&q.Channel, channels...), "channel", "the channel of the rate")
	flags.Var(setting.Enum(&q.Kind, kinds...), "kind", "the kind of the rate")
}

// checkQuoteArguments wants an institution and a currency.
func checkQuoteArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 2 && setting.CurrencyPattern().MatchString(args[1]) {
		return nil
	}
	return exit.Errorf(exit.Usage, "%s: want an institution and a currency, such as popular USD, found %q", cmd.CommandPath(), args)
}

func (r *invocation) quarantine() *cobra.Command {
	return command.Spec{
		Use:   "quarantine",
		Short: "List, release or reject the values that the rules hold back",
		Long: `quarantine looks after the values that the rules hold back: they are kept with their reason and never served. A held
value is named by its currency and number, as USD/17.`,
		Example: `  tasard admin quarantine list --data ./data
  tasard admin quarantine release USD/17 --data ./data --by ana`,
		Subcommands: []*cobra.Command{r.listQuarantine(), r.release(), r.reject()},
	}.Command(r.Process)
}

func (r *invocation) listQuarantine() *cobra.Command {
	currency, source := "", ""
	return r.newCommand(command.Spec{
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
			return list(ctx, r, admin.ListQuarantine, query, printQuarantine)
		},
	})
}

func (r *invocation) release() *cobra.Command {
	return r.newChangeCommand(command.Spec{
		Use:   "release NUMBER...",
		Short: "Publish a held value after all",
		Long: `release publishes a held value: it has been looked at, and the rules are wrong this once. What is no rate at all, an
unreadable, zero or missing side or a buy above the sell, can't be released. A value that is older than what its source
has said since goes into history only.`,
		Example: "  tasard admin quarantine release USD/17 --data ./data --by ana",
		Args:    checkQuarantineNumbers,
		Run: func(ctx context.Context, args []string) error {
			return r.resolve(ctx, args, admin.ReleaseQuarantined, "is released")
		},
	})
}

func (r *invocation) reject() *cobra.Command {
	return r.newChangeCommand(command.Spec{
		Use:     "reject NUMBER...",
		Short:   "Drop held values for good",
		Long:    "reject takes values out of the quarantine without publishing them. The log keeps what they were and who did it.",
		Example: "  tasard admin quarantine reject USD/17 USD/18 EUR/3 --data ./data --by ana",
		Args:    checkQuarantineNumbers,
		Run: func(ctx context.Context, args []string) error {
			return r.resolve(ctx, args, admin.RejectQuarantined, "is rejected")
		},
	})
}

// resolve releases or rejects values one by one, and stops at the first error.
func (r *invocation) resolve(ctx context.Context, numbers []string, of admin.Operation[admin.Author, admin.QuarantineResult], outcome string) error {
	for _, number := range numbers {
		named := quarantineNumberPattern().FindStringSubmatch(number)
		table := func(out io.Writer, v *admin.QuarantineResult) { printQuarantineResult(out, v, outcome) }
		if _, err := call(ctx, r, of, r.author, table, named[1], named[2]); err != nil {
			return err
		}
	}
	return nil
}

// quarantineNumberPattern matches the number of a quarantined value, such as USD/17.
func quarantineNumberPattern() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Z]{3})/([1-9][0-9]{0,18})$`)
}

// checkQuarantineNumbers wants numbers of quarantined values.
func checkQuarantineNumbers(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Errorf(exit.Usage, "%s: no number; name a held value by currency and number, such as USD/17", cmd.CommandPath())
	}
	for _, arg := range args {
		if !quarantineNumberPattern().MatchString(arg) {
			return exit.Errorf(exit.Usage, "%s: %q names no held value; want currency and number, such as USD/17", cmd.CommandPath(), arg)
		}
	}
	return nil
}
