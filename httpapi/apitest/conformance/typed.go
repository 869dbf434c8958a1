package conformance

import (
	"errors"
	"iter"

	"github.com/tasard/tasard/httpapi/client"
)

// operations are the two.
func operations() []client.Operation { return []client.Operation{client.Buy, client.Sell} }

// all are the items of a walk.
func all[T any](k *trial, walk iter.Seq2[T, error]) []T {
	var items []T
	for item, err := range walk {
		if err != nil {
			k.fatalf("%v", err)
		}
		items = append(items, item)
	}
	return items
}

// must is what an operation is answered with.
func must[T any](k *trial, value T, err error) T {
	if err != nil {
		k.fatalf("%v", err)
	}
	return value
}

// rates are the published rates of a filter.
func (k *trial) rates(filter client.Filter) []client.Rate {
	return all(k, k.data.AllRates(k.ctx, filter))
}

// best is a whole ranking.
func (k *trial) best(currency string, operation client.Operation) []client.Rate {
	return all(k, k.data.AllBest(k.ctx, client.BestQuery{Filter: client.Filter{Currency: currency}, Operation: operation}))
}

// conversions are all of an amount.
func (k *trial) conversions(currency string, operation client.Operation, amount client.Decimal, kind client.Kind) []client.Conversion {
	return all(k, k.data.AllConversions(k.ctx, client.ConvertQuery{Filter: client.Filter{Currency: currency, Kind: kind}, Operation: operation, Amount: amount}))
}

// institutions are all, or those of a currency.
func (k *trial) institutions(currency string) []client.Institution {
	return all(k, k.data.AllInstitutions(k.ctx, client.InstitutionsQuery{Currency: currency}))
}

// catalogue are all currencies.
func (k *trial) catalogue() []client.Currency {
	list, err := k.data.Currencies(k.ctx)
	return must(k, list, err)
}

// history are the rows of a range.
func (k *trial) history(from, to client.Date) []client.HistoryEntry {
	return all(k, k.data.AllHistory(k.ctx, client.HistoryQuery{From: from, To: to}))
}

// currencies are the codes for which something is published, at least one.
func (k *trial) currencies() []string {
	var codes []string
	last := ""
	for _, r := range k.rates(client.Filter{}) { // they come by currency (P4)
		if r.Currency != last {
			codes, last = append(codes, r.Currency), r.Currency
		}
	}
	if len(codes) == 0 {
		k.fatalf("the server publishes no rates; the contract can't be seen without any")
	}
	return codes
}

// done wants an account operation to have ended well, with a status.
func (k *trial) done(status int, err error) {
	if err != nil {
		k.fatalf("%v", err)
	}
	if got := k.last(); got.status != status {
		k.errorf("%s, want %d", got, status)
	}
}

// deny wants one to have been refused.
func (k *trial) deny(err error, status int, code string) {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != status || refused.Code != code {
		k.errorf("%s, want %d %s: %v", k.last(), status, code, err)
	}
}
