package conformance

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/tasard/tasard/httpapi/client"
)

// eachRanking calls visit with the ranking of each currency for each operation.
func (k *ruleRun) eachRanking(visit func(name string, currency string, operation client.Operation, ranked []client.Rate)) {
	for _, currency := range k.currencies() {
		for _, operation := range operations() {
			visit(fmt.Sprintf("best %s %s", currency, operation), currency, operation, k.best(currency, operation))
		}
	}
}

// eachAdjacentPair calls visit with each pair of neighbours in each ranking. a comes directly before b.
func (k *ruleRun) eachAdjacentPair(visit func(name string, operation client.Operation, a, b *client.Rate)) {
	k.eachRanking(func(name, _ string, operation client.Operation, ranked []client.Rate) {
		for i := 1; i < len(ranked); i++ {
			visit(name, operation, &ranked[i-1], &ranked[i])
		}
	})
}

// eachConversion calls visit with each conversion of the amount, of all currencies and operations.
func (k *ruleRun) eachConversion(amount client.Decimal, visit func(name string, operation client.Operation, item *client.Conversion)) {
	for _, currency := range k.currencies() {
		for _, operation := range operations() {
			for _, item := range k.conversions(currency, operation, amount, "") {
				visit(fmt.Sprintf("convert %s %s", currency, operation), operation, &item)
			}
		}
	}
}

func checkSides(k *ruleRun) {
	k.eachConversion("1", func(name string, operation client.Operation, item *client.Conversion) {
		if side := item.Quote.Side(operation); side == nil || *side != item.Rate {
			k.errorf("%s: %s applies %s, want %s", name, item.Quote.ID, item.Rate, sideText(side))
		}
	})
}

func sideText(side *client.Decimal) client.Decimal {
	if side == nil {
		return "null"
	}
	return *side
}

// compareSides returns a negative number if, for a client that wants to buy or sell (operation), the rate a is better
// than b.
func compareSides(operation client.Operation, a, b *client.Rate) int {
	order := sideText(a.Side(operation)).Cmp(sideText(b.Side(operation)))
	if operation == client.Sell {
		return -order
	}
	return order
}

func checkOrder(k *ruleRun) {
	pairs := 0
	k.eachAdjacentPair(func(name string, operation client.Operation, a, b *client.Rate) {
		pairs++
		if a.Side(operation) == nil || b.Side(operation) == nil || compareSides(operation, a, b) > 0 {
			k.errorf("%s: %s (%s) before %s (%s)", name, a.ID, sideText(a.Side(operation)), b.ID, sideText(b.Side(operation)))
		}
	})
	if pairs == 0 {
		k.notef("no currency has two rates to compare")
	}
}

func checkTies(k *ruleRun) {
	ties := 0
	k.eachAdjacentPair(func(name string, operation client.Operation, a, b *client.Rate) {
		if a.Side(operation) == nil || b.Side(operation) == nil || compareSides(operation, a, b) != 0 {
			return
		}
		ties++
		if cmp.Or(cmp.Compare(a.Priority, b.Priority), b.CollectedAt.Compare(a.CollectedAt), cmp.Compare(a.InstitutionID, b.InstitutionID),
			cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.ID, b.ID)) >= 0 {
			k.errorf("%s: %s before %s, which have the same side", name, a.ID, b.ID)
		}
	})
	if ties == 0 {
		k.notef("no two rates have the same side")
	}
}

// eligible returns the sorted ids of the rates that must be in the ranking of a currency for an operation.
func eligible(rates []client.Rate, currency string, operation client.Operation, kind client.Kind) []string {
	var ids []string
	for i := range rates {
		r := &rates[i]
		if r.Currency == currency && r.Kind == kind && !r.Stale && r.Side(operation) != nil {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func idsOf(rates []client.Rate) []string {
	var ids []string
	for i := range rates {
		ids = append(ids, rates[i].ID)
	}
	slices.Sort(ids)
	return ids
}

func checkPopulation(k *ruleRun) {
	published := k.rates(client.Filter{})
	k.eachRanking(func(name, currency string, operation client.Operation, ranked []client.Rate) {
		if got, want := idsOf(ranked), eligible(published, currency, operation, client.Commercial); !slices.Equal(got, want) {
			k.errorf("%s has %q, want %q", name, got, want)
		}
	})
}

func checkBestReference(k *ruleRun) {
	currency := k.currencies()[0]
	for _, operation := range operations() {
		best, err := k.dataClient.Best(k.ctx, client.BestQuery{Filter: client.Filter{Currency: currency, Kind: client.Reference}, Operation: operation})
		if best = must(k, best, err); len(best.Data) > 0 || best.Meta.Total != 0 {
			k.errorf("best of reference rates: %d items, total %d", len(best.Data), best.Meta.Total)
		}
	}
}

func checkConvertPopulation(k *ruleRun) {
	published := k.rates(client.Filter{})
	for _, kind := range []client.Kind{"", client.Commercial, client.Reference} {
		for _, currency := range k.currencies() {
			for _, operation := range operations() {
				var quotes []client.Rate
				for _, item := range k.conversions(currency, operation, "1", kind) {
					quotes = append(quotes, item.Quote)
				}
				if got, want := idsOf(quotes), eligible(published, currency, operation, cmp.Or(kind, client.Commercial)); !slices.Equal(got, want) {
					k.errorf("convert %s %s %s has %q, want %q", currency, operation, kind, got, want)
				}
				for i := 1; i < len(quotes); i++ {
					if compareSides(operation, &quotes[i-1], &quotes[i]) > 0 {
						k.errorf("convert %s %s %s: %s before %s", currency, operation, kind, quotes[i-1].ID, quotes[i].ID)
					}
				}
			}
		}
	}
}

// expectedAmount returns amount times rate, rounded half up to two decimals.
func expectedAmount(amount, rate client.Decimal) client.Decimal {
	cents := new(big.Rat).Mul(amount.Rat(), rate.Rat())
	cents.Mul(cents, big.NewRat(100, 1)).Add(cents, big.NewRat(1, 2))
	rounded := new(big.Int).Quo(cents.Num(), cents.Denom())
	digits := fmt.Sprintf("%03s", rounded.String())
	return client.Decimal(digits[:len(digits)-2] + "." + digits[len(digits)-2:])
}

func checkAmounts(k *ruleRun) {
	for _, amount := range []client.Decimal{"0", "0.01", "0.25", "1", "1.15", "2.05", "100.00", "33.33", "999999999999.99"} {
		k.eachConversion(amount, func(name string, _ client.Operation, item *client.Conversion) {
			if want := expectedAmount(amount, item.Rate); item.AmountDOP != want {
				k.errorf("%s: %s at %s is %s, want %s", name, amount, item.Rate, item.AmountDOP, want)
			}
		})
	}
}

func checkVerbatim(k *ruleRun) {
	currency := k.currencies()[0]
	for _, amount := range []client.Decimal{"0", "7", "7.0", "7.50", "000000000007.1"} {
		for _, operation := range operations() {
			for _, i := range k.conversions(currency, operation, amount, "") {
				if side := i.Quote.Side(operation); i.ForeignAmount != amount || side == nil || i.Rate != *side || i.Operation != operation || i.Currency != i.Quote.Currency {
					k.errorf("convert %s: foreignAmount %q, rate %q of %s, operation %q, currency %q", amount, i.ForeignAmount, i.Rate, sideText(side), i.Operation, i.Currency)
				}
			}
		}
	}
	for _, operation := range operations() {
		best, err := k.dataClient.Best(k.ctx, client.BestQuery{Filter: client.Filter{Currency: currency}, Operation: operation})
		if got := must(k, best, err).Operation; got != operation {
			k.errorf("best %s %s: operation is %q", currency, operation, got)
		}
	}
}

func checkFees(k *ruleRun) {
	k.eachConversion("1", func(name string, _ client.Operation, item *client.Conversion) {
		if item.FeesIncluded || item.FeeNotice == "" {
			k.errorf("%s: %s: feesIncluded %t, feeNotice %q", name, item.Quote.ID, item.FeesIncluded, item.FeeNotice)
		}
	})
}
