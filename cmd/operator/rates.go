package operator

import (
	"context"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

func (r *invocation) rates() *cobra.Command {
	return command.Spec{
		Use:   "rates",
		Short: "Set or withdraw manual rates",
		Long: `rates publishes rates that no source publishes, or publishes wrongly. A manual rate wins over all collected ones until
it expires or is withdrawn; then the collected one is published again.`,
		Example: `  tasard admin rates set vega-real USD --buy 58.10 --sell 59.30 --data ./data --by ana
  tasard admin rates withdraw vega-real USD --data ./data --by ana`,
		Subcommands: []*cobra.Command{r.setRate(), r.withdrawRate()},
	}.Command(r.Process)
}

func (r *invocation) setRate() *cobra.Command {
	body, lifetime := admin.ManualRate{}, time.Duration(0)
	return r.newChangeCommand(command.Spec{
		Use:   "set INSTITUTION CURRENCY --buy RATE --sell RATE",
		Short: "Publish a manual rate",
		Long: `set publishes a rate of an institution: --buy is what it pays (compra), --sell what it asks (venta), in pesos for one
unit of the currency; one of them may be missing. The rate lasts 24 hours, or as --for or --expires say. An
implausible value is quarantined like that of a source: the answer names its number, with which tasard admin
quarantine release publishes it, and the exit code is 65.`,
		Example: `  tasard admin rates set vega-real USD --buy 58.10 --sell 59.30 --data ./data --by ana
  tasard admin rates set popular EUR --sell 70.25 --for 6h --data ./data`,
		Args: command.ExactArgs(2, "an institution and a currency, such as popular USD"),
		Flags: func(flags *pflag.FlagSet) {
			addQuote(flags, &body.Quote)
			flags.Var(command.Line(&body.Buy, "RATE", admin.IDMax), "buy", "pesos that the institution pays for one unit")
			flags.Var(command.Line(&body.Sell, "RATE", admin.IDMax), "sell", "pesos that it asks for one unit")
			flags.Var(command.Line(&body.EffectiveDate, "DATE", admin.IDMax), "effective-date", "effective date of the rate; default unknown")
			flags.Var(command.Instant(&body.ExpiresAt), "expires", "`INSTANT` of its expiry, RFC 3339")
			flags.Var(command.Duration(&lifetime, time.Minute, admin.ManualLifeMax), "for", "lifetime, such as 6h; default 24h")
		},
		Run: func(ctx context.Context, args []string) error {
			switch {
			case body.Buy == "" && body.Sell == "":
				return exit.Errorf(exit.Usage, "no rate; give --buy RATE, --sell RATE or both")
			case lifetime != 0 && !body.ExpiresAt.IsZero():
				return exit.Errorf(exit.Usage, "--expires and --for exclude each other; give one of them")
			case lifetime != 0:
				body.For = lifetime.String()
			}
			body.Institution, body.Currency, body.Author = args[0], args[1], r.author
			return r.publish(ctx, &body)
		},
	})
}

// publish asks the node to publish a rate. If the node quarantines the rate instead, the error explains how to release
// it.
func (r *invocation) publish(ctx context.Context, body *admin.ManualRate) error {
	answer, err := call(ctx, r, admin.SetRate, *body, printRateSet)
	if err != nil || answer.Quarantined == nil {
		return err
	}
	return exit.Errorf(exit.Rejected, "%s is quarantined as %s: %s: %s; if it is right, run: tasard admin quarantine release %s%s",
		answer.ID, answer.Quarantined.Number, answer.Quarantined.Reason, answer.Quarantined.Detail, answer.Quarantined.Number, r.NodeFlag())
}

func (r *invocation) withdrawRate() *cobra.Command {
	body := admin.Withdrawal{Source: admin.ManualSource}
	return r.newChangeCommand(command.Spec{
		Use:   "withdraw INSTITUTION CURRENCY",
		Short: "Withdraw a rate",
		Long: `withdraw ends the value of a source for a rate, by default that of the operator. The value of another source is
published again; without one the rate is gone. A collected source publishes its value again with its next answer.`,
		Example: `  tasard admin rates withdraw vega-real USD --data ./data --by ana
  tasard admin rates withdraw popular USD --source infodolar --data ./data`,
		Args: command.ExactArgs(2, "an institution and a currency, such as popular USD"),
		Flags: func(flags *pflag.FlagSet) {
			addQuote(flags, &body.Quote)
			flags.Var(command.Line(&body.Source, "ID", admin.IDMax), "source", "source whose value is withdrawn")
		},
		Run: func(ctx context.Context, args []string) error {
			body.Institution, body.Currency, body.Author = args[0], args[1], r.author
			_, err := call(ctx, r, admin.WithdrawRate, body, func(out io.Writer, change *admin.RateChange) {
				terminal.Say(out, "%s of %s is withdrawn by %s.\n", change.ID, change.SourceID, change.By)
				printPublished(out, change.Published)
			})
			return err
		},
	})
}

// addQuote declares the flags --channel and --kind. Together with institution and currency, they identify a rate.
func addQuote(flags *pflag.FlagSet, q *admin.Quote) {
	q.Channel, q.Kind = engine.Unspecified, engine.Commercial
	flags.Var(command.Enum(&q.Channel, engine.Channels()...), "channel", "channel of the rate")
	flags.Var(command.Enum(&q.Kind, engine.Kinds()...), "kind", "kind of the rate")
}

func (r *invocation) quarantine() *cobra.Command {
	return command.Spec{
		Use:   "quarantine",
		Short: "List, release or reject quarantined values",
		Long: `quarantine manages the values that the rules refuse to publish. They are kept with their reason. A value is named by
currency and number, such as USD/17.`,
		Example: `  tasard admin quarantine list --data ./data
  tasard admin quarantine release USD/17 --data ./data --by ana`,
		Subcommands: []*cobra.Command{r.listQuarantine(), r.release(), r.reject()},
	}.Command(r.Process)
}

func (r *invocation) listQuarantine() *cobra.Command {
	currency, source := "", ""
	return r.newCommand(command.Spec{
		Use:   "list",
		Short: "List quarantined values",
		Long: `list prints one line for each quarantined value, oldest first in each currency, with the beginning of the digest of
its document. With --json it prints one JSON object a line, with whole digests.`,
		Example: `  tasard admin quarantine list --data ./data --currency USD
  tasard admin quarantine list --data ./data --json | jq 'select(.reason == "jump")'`,
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(command.Currency(&currency), "currency", "only values of this currency")
			flags.Var(command.Line(&source, "ID", admin.IDMax), "source", "only values of this source")
		},
		Run: func(ctx context.Context, _ []string) error {
			return list(ctx, r, admin.ListQuarantine, printQuarantine, currency, source)
		},
	})
}

func (r *invocation) release() *cobra.Command {
	return r.decide(command.Spec{
		Use:   "release NUMBER...",
		Short: "Publish a quarantined value",
		Long: `release publishes a quarantined value that is right although the rules refuse it. Values that are not rates
(unreadable, zero, without sides, or with a buy above the sell) can't be released. A value that is older than the
latest of its source only enters the history.`,
		Example: `  tasard admin quarantine release USD/17 --data ./data --by ana
  tasard admin quarantine release USD/17 USD/18 --data ./data`,
	}, admin.ReleaseQuarantined, "is released")
}

func (r *invocation) reject() *cobra.Command {
	return r.decide(command.Spec{
		Use:   "reject NUMBER...",
		Short: "Delete quarantined values",
		Long: `reject removes values from the quarantine without publishing them. The log keeps the values and the author of the
decision.`,
		Example: `  tasard admin quarantine reject USD/17 USD/18 EUR/3 --data ./data --by ana
  tasard admin quarantine reject USD/17 --data ./data --json`,
	}, admin.RejectQuarantined, "is rejected")
}

// decide returns a command that calls op for each number of a quarantined value, in order. It stops at the first error.
func (r *invocation) decide(spec command.Spec, op admin.Operation[admin.Author, admin.QuarantineResult], outcome string) *cobra.Command {
	spec.Args = checkQuarantineNumbers
	spec.Run = func(ctx context.Context, numbers []string) error {
		for _, number := range numbers {
			currency, digits, _ := strings.Cut(number, "/") // checkQuarantineNumbers has checked them
			table := func(out io.Writer, v *admin.QuarantineResult) { printQuarantineResult(out, v, outcome) }
			if _, err := call(ctx, r, op, r.author, table, currency, digits); err != nil {
				return err
			}
		}
		return nil
	}
	return r.newChangeCommand(spec)
}

// checkQuarantineNumbers checks that all arguments are numbers of quarantined values.
func checkQuarantineNumbers(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Errorf(exit.Usage, "no number of a quarantined value; give currency and number, such as USD/17")
	}
	pattern := regexp.MustCompile(`^[A-Z]{3}/[1-9][0-9]{0,18}$`)
	for _, arg := range args {
		if !pattern.MatchString(arg) {
			return exit.Errorf(exit.Usage, "%q: want the number of a quarantined value, currency and number, such as USD/17", arg)
		}
	}
	return nil
}
