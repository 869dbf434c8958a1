package conformance

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/tasard/tasard/httpapi/client"
)

// eachRanking visits best of every currency and operation.
func (k *trial) eachRanking(visit func(currency string, operation client.Operation, ranked []client.Rate)) {
	for _, currency := range k.currencies() {
		for _, operation := range operations() {
			visit(currency, operation, k.best(currency, operation))
		}
	}
}

// eachConversion visits convert of every currency and operation.
func (k *trial) eachConversion(amount client.Decimal, kind client.Kind, visit func(currency string, operation client.Operation, items []client.Conversion)) {
	for _, currency := range k.currencies() {
		for _, operation := range operations() {
			visit(currency, operation, k.conversions(currency, operation, amount, kind))
		}
	}
}

func checkSides(k *trial) {
	k.eachConversion("1", "", func(currency string, operation client.Operation, items []client.Conversion) {
		for i := range items {
			if side := items[i].Quote.Side(operation); side == nil || *side != items[i].Rate {
				k.errorf("convert %s %s: %s applies %s, want %s", currency, operation, items[i].Quote.ID, items[i].Rate, text(side))
			}
		}
	})
}

func text(side *client.Decimal) client.Decimal {
	if side == nil {
		return "null"
	}
	return *side
}

// bySide is the order of S2.
func bySide(operation client.Operation, a, b *client.Rate) int {
	order := text(a.Side(operation)).Cmp(text(b.Side(operation)))
	if operation == client.Sell {
		return -order
	}
	return order
}

func checkOrder(k *trial) {
	pairs := 0
	k.eachRanking(func(currency string, operation client.Operation, ranked []client.Rate) {
		for i := 1; i < len(ranked); i++ {
			pairs++
			if ranked[i-1].Side(operation) == nil || ranked[i].Side(operation) == nil || bySide(operation, &ranked[i-1], &ranked[i]) > 0 {
				k.errorf("best %s %s: %s (%s) before %s (%s)", currency, operation, ranked[i-1].ID, text(ranked[i-1].Side(operation)),
					ranked[i].ID, text(ranked[i].Side(operation)))
			}
		}
	})
	if pairs == 0 {
		k.notef("no currency has two rates to compare")
	}
}

func checkTies(k *trial) {
	ties := 0
	k.eachRanking(func(currency string, operation client.Operation, ranked []client.Rate) {
		for i := 1; i < len(ranked); i++ {
			a, b := &ranked[i-1], &ranked[i]
			if a.Side(operation) == nil || b.Side(operation) == nil || bySide(operation, a, b) != 0 {
				continue
			}
			ties++
			if cmp.Or(cmp.Compare(a.Priority, b.Priority), b.CollectedAt.Compare(a.CollectedAt), cmp.Compare(a.InstitutionID, b.InstitutionID),
				cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.ID, b.ID)) >= 0 {
				k.errorf("best %s %s: %s before %s, which have the same side", currency, operation, a.ID, b.ID)
			}
		}
	})
	if ties == 0 {
		k.notef("no two rates have the same side")
	}
}

// eligible are the ids of the rates that a ranking must have.
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

func checkPopulation(k *trial) {
	published := k.rates(client.Filter{})
	k.eachRanking(func(currency string, operation client.Operation, ranked []client.Rate) {
		if got, want := idsOf(ranked), eligible(published, currency, operation, client.Commercial); !slices.Equal(got, want) {
			k.errorf("best %s %s has %q, want %q", currency, operation, got, want)
		}
	})
}

func checkBestReference(k *trial) {
	first := k.currencies()[0]
	for _, operation := range operations() {
		best, err := k.data.Best(k.ctx, client.BestQuery{Filter: client.Filter{Currency: first, Kind: client.Reference}, Operation: operation})
		if best = must(k, best, err); len(best.Data) > 0 || best.Meta.Total != 0 {
			k.errorf("best of reference rates: %d items, total %d", len(best.Data), best.Meta.Total)
		}
	}
}

func checkConvertPopulation(k *trial) {
	published := k.rates(client.Filter{})
	for _, kind := range []client.Kind{"", client.Commercial, client.Reference} {
		expected := cmp.Or(kind, client.Commercial)
		k.eachConversion("1", kind, func(currency string, operation client.Operation, items []client.Conversion) {
			var quotes []client.Rate
			for i := range items {
				quotes = append(quotes, items[i].Quote)
			}
			if got, want := idsOf(quotes), eligible(published, currency, operation, expected); !slices.Equal(got, want) {
				k.errorf("convert %s %s %s has %q, want %q", currency, operation, kind, got, want)
			}
			for i := 1; i < len(quotes); i++ {
				if bySide(operation, &quotes[i-1], &quotes[i]) > 0 {
					k.errorf("convert %s %s %s: %s before %s", currency, operation, kind, quotes[i-1].ID, quotes[i].ID)
				}
			}
		})
	}
}

// product is amount times rate, with two decimals, halves up.
func product(amount, rate client.Decimal) client.Decimal {
	cents := new(big.Rat).Mul(amount.Rat(), rate.Rat())
	cents.Mul(cents, big.NewRat(100, 1)).Add(cents, big.NewRat(1, 2))
	whole := new(big.Int).Quo(cents.Num(), cents.Denom())
	digits := fmt.Sprintf("%03s", whole.String())
	return client.Decimal(digits[:len(digits)-2] + "." + digits[len(digits)-2:])
}

func checkAmounts(k *trial) {
	for _, amount := range []client.Decimal{"0", "0.01", "0.25", "1", "1.15", "2.05", "100.00", "33.33", "999999999999.99"} {
		k.eachConversion(amount, "", func(currency string, operation client.Operation, items []client.Conversion) {
			for i := range items {
				if want := product(amount, items[i].Rate); items[i].AmountDOP != want {
					k.errorf("convert %s %s: %s at %s is %s, want %s", currency, operation, amount, items[i].Rate, items[i].AmountDOP, want)
				}
			}
		})
	}
}

func checkVerbatim(k *trial) {
	first := k.currencies()[0]
	for _, amount := range []client.Decimal{"0", "7", "7.0", "7.50", "000000000007.1"} {
		for _, operation := range operations() {
			for _, i := range k.conversions(first, operation, amount, "") {
				if side := i.Quote.Side(operation); i.ForeignAmount != amount || side == nil || i.Rate != *side || i.Operation != operation || i.Currency != i.Quote.Currency {
					k.errorf("convert %s: foreignAmount %q, rate %q of %s, operation %q, currency %q", amount, i.ForeignAmount, i.Rate, text(side), i.Operation, i.Currency)
				}
			}
		}
	}
	for _, operation := range operations() {
		best, err := k.data.Best(k.ctx, client.BestQuery{Filter: client.Filter{Currency: first}, Operation: operation})
		if got := must(k, best, err).Operation; got != operation {
			k.errorf("best %s %s: operation is %q", first, operation, got)
		}
	}
}

func checkFees(k *trial) {
	k.eachConversion("1", "", func(currency string, operation client.Operation, items []client.Conversion) {
		for _, i := range items {
			if i.FeesIncluded || i.FeeNotice == "" {
				k.errorf("convert %s %s: %s: feesIncluded %t, feeNotice %q", currency, operation, i.Quote.ID, i.FeesIncluded, i.FeeNotice)
			}
		}
	})
}
