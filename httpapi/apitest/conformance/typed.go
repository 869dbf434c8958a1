package conformance

import (
	"errors"
	"iter"

	"github.com/tasard/tasard/httpapi/client"
)

func operations() []client.Operation { return []client.Operation{client.Buy, client.Sell} }

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

// must returns the value. If err is not nil, it aborts the check of the rule.
func must[T any](k *ruleRun, value T, err error) T {
	if err != nil {
		k.fatalf("%v", err)
	}
	return value
}

// rates returns all rates that match a filter.
func (k *ruleRun) rates(filter client.Filter) []client.Rate {
	return collect(k, k.dataClient.AllRates(k.ctx, filter))
}

// best returns all rates of the ranking of a currency for an operation, from all pages.
func (k *ruleRun) best(currency string, operation client.Operation) []client.Rate {
	return collect(k, k.dataClient.AllBest(k.ctx, client.BestQuery{Filter: client.Filter{Currency: currency}, Operation: operation}))
}

func (k *ruleRun) conversions(currency string, operation client.Operation, amount client.Decimal, kind client.Kind) []client.Conversion {
	return collect(k, k.dataClient.AllConversions(k.ctx, client.ConvertQuery{Filter: client.Filter{Currency: currency, Kind: kind}, Operation: operation, Amount: amount}))
}

// institutions returns the institutions with rates of a currency. If currency is "", it returns all institutions.
func (k *ruleRun) institutions(currency string) []client.Institution {
	return collect(k, k.dataClient.AllInstitutions(k.ctx, client.InstitutionsQuery{Currency: currency}))
}

// catalogue returns all currencies that the server lists, also those without rates.
func (k *ruleRun) catalogue() []client.Currency {
	list, err := k.dataClient.Currencies(k.ctx)
	return must(k, list, err)
}

// history returns the rows from one date to another. A zero Date is left out of the request.
func (k *ruleRun) history(from, to client.Date) []client.HistoryEntry {
	return collect(k, k.dataClient.AllHistory(k.ctx, client.HistoryQuery{From: from, To: to}))
}

// currencies returns the codes of the currencies that have rates. It aborts the check of the rule if there are none.
func (k *ruleRun) currencies() []string {
	var codes []string
	previous := ""
	for _, r := range k.rates(client.Filter{}) { // sorted by currency
		if r.Currency != previous {
			codes, previous = append(codes, r.Currency), r.Currency
		}
	}
	if len(codes) == 0 {
		k.fatalf("the server publishes no rates, so the rules cannot be checked")
	}
	return codes
}

// wantStatus checks that the newest call of accountClient has succeeded with a status. It aborts the rule after an
// error.
func (k *ruleRun) wantStatus(status int, err error) {
	if err != nil {
		k.fatalf("%v", err)
	}
	if got := k.last(); got.status != status {
		k.errorf("%s, want %d", got, status)
	}
}

// wantRefusal checks that the newest call of accountClient has failed with a status and an error code.
func (k *ruleRun) wantRefusal(err error, status int, code string) {
	var apiErr *client.Error
	if !errors.As(err, &apiErr) || apiErr.Status != status || apiErr.Code != code {
		k.errorf("%s, want %d %s: %v", k.last(), status, code, err)
	}
}
