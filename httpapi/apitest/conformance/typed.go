package conformance

import (
	"errors"
	"iter"

	"github.com/tasard/tasard/httpapi/client"
)

func operations() []client.Operation { return []client.Operation{client.Buy, client.Sell} }

// collect returns all items of an iterator.
func collect[T any](k *ruleRun, walk iter.Seq2[T, error]) []T {
	var items []T
	for item, err := range walk {
		if err != nil {
			k.fatalf("%v", err)
		}
		items = append(items, item)
	}
	return items
}

// must returns the value of a call that must succeed.
func must[T any](k *ruleRun, value T, err error) T {
	if err != nil {
		k.fatalf("%v", err)
	}
	return value
}

// rates returns all rates of a filter.
func (k *ruleRun) rates(filter client.Filter) []client.Rate {
	return collect(k, k.dataClient.AllRates(k.ctx, filter))
}

// best returns a whole ranking.
func (k *ruleRun) best(currency string, operation client.Operation) []client.Rate {
	return collect(k, k.dataClient.AllBest(k.ctx, client.BestQuery{Filter: client.Filter{Currency: currency}, Operation: operation}))
}

// conversions returns the conversions of an amount.
func (k *ruleRun) conversions(currency string, operation client.Operation, amount client.Decimal, kind client.Kind) []client.Conversion {
	return collect(k, k.dataClient.AllConversions(k.ctx, client.ConvertQuery{Filter: client.Filter{Currency: currency, Kind: kind}, Operation: operation, Amount: amount}))
}

// institutions returns all institutions, or those of a currency.
func (k *ruleRun) institutions(currency string) []client.Institution {
	return collect(k, k.dataClient.AllInstitutions(k.ctx, client.InstitutionsQuery{Currency: currency}))
}

// catalogue returns all currencies.
func (k *ruleRun) catalogue() []client.Currency {
	list, err := k.dataClient.Currencies(k.ctx)
	return must(k, list, err)
}

// history returns the rows of a range.
func (k *ruleRun) history(from, to client.Date) []client.HistoryEntry {
	return collect(k, k.dataClient.AllHistory(k.ctx, client.HistoryQuery{From: from, To: to}))
}

// currencies returns the codes of the currencies with published rates. It fails the rule if there are none.
func (k *ruleRun) currencies() []string {
	var codes []string
	previous := ""
	for _, r := range k.rates(client.Filter{}) { // rates come ordered by currency
		if r.Currency != previous {
			codes, previous = append(codes, r.Currency), r.Currency
		}
	}
	if len(codes) == 0 {
		k.fatalf("the server publishes no rates, so the rules cannot be checked")
	}
	return codes
}

// wantStatus checks that an account operation has succeeded with a status.
func (k *ruleRun) wantStatus(status int, err error) {
	if err != nil {
		k.fatalf("%v", err)
	}
	if got := k.last(); got.status != status {
		k.errorf("%s, want %d", got, status)
	}
}

// wantRefusal checks that an account operation has failed with a status and a code.
func (k *ruleRun) wantRefusal(err error, status int, code string) {
	var apiErr *client.Error
	if !errors.As(err, &apiErr) || apiErr.Status != status || apiErr.Code != code {
		k.errorf("%s, want %d %s: %v", k.last(), status, code, err)
	}
}
