package conformance

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
)

// item is an item of convert.
type item struct {
	Quote                                                          rate
	Operation, ForeignAmount, Currency, AmountDop, Rate, FeeNotice string
	FeesIncluded                                                   *bool
}

// eachRanking visits best of every currency and operation.
func (k *trial) eachRanking(visit func(currency, operation string, ranked []rate)) {
	for _, currency := range k.currencies() {
		for _, operation := range operations() {
			visit(currency, operation, walk[rate](k, fmt.Sprintf("/v1/rates/best?currency=%s&operation=%s", currency, operation), 200))
		}
	}
}

// eachConversion visits convert of every currency and operation.
func (k *trial) eachConversion(amount, more string, visit func(currency, operation string, items []item)) {
	for _, currency := range k.currencies() {
		for _, operation := range operations() {
			target := fmt.Sprintf("/v1/convert?currency=%s&operation=%s&amount=%s%s", currency, operation, amount, more)
			visit(currency, operation, walk[item](k, target, 200))
		}
	}
}

// number is a decimal text.
func (k *trial) number(text string) *big.Rat {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		k.fatalf("%q is no decimal", text)
	}
	return n
}

func checkSides(k *trial) {
	k.eachConversion("1", "", func(currency, operation string, items []item) {
		for i := range items {
			if side := items[i].Quote.side(operation); side == nil || *side != items[i].Rate {
				k.errorf("convert %s %s: %s applies %s, want %s", currency, operation, items[i].Quote.ID, items[i].Rate, text(side))
			}
		}
	})
}

func text(side *string) string {
	if side == nil {
		return "null"
	}
	return *side
}

// bySide is the order of S2.
func (k *trial) bySide(operation string, a, b *rate) int {
	order := k.number(text(a.side(operation))).Cmp(k.number(text(b.side(operation))))
	if operation == selling {
		return -order
	}
	return order
}

func checkOrder(k *trial) {
	pairs := 0
	k.eachRanking(func(currency, operation string, ranked []rate) {
		for i := 1; i < len(ranked); i++ {
			pairs++
			if ranked[i-1].side(operation) == nil || ranked[i].side(operation) == nil || k.bySide(operation, &ranked[i-1], &ranked[i]) > 0 {
				k.errorf("best %s %s: %s (%s) before %s (%s)", currency, operation, ranked[i-1].ID, text(ranked[i-1].side(operation)),
					ranked[i].ID, text(ranked[i].side(operation)))
			}
		}
	})
	if pairs == 0 {
		k.notef("no currency has two rates to compare")
	}
}

func checkTies(k *trial) {
	ties := 0
	k.eachRanking(func(currency, operation string, ranked []rate) {
		for i := 1; i < len(ranked); i++ {
			a, b := &ranked[i-1], &ranked[i]
			if a.side(operation) == nil || b.side(operation) == nil || k.bySide(operation, a, b) != 0 {
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
func eligible(rates []rate, currency, operation, kind string) []string {
	var ids []string
	for i := range rates {
		r := &rates[i]
		if r.Currency == currency && r.Kind == kind && !r.Stale && r.side(operation) != nil {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func idsOf(rates []rate) []string {
	var ids []string
	for i := range rates {
		ids = append(ids, rates[i].ID)
	}
	slices.Sort(ids)
	return ids
}

func checkPopulation(k *trial) {
	all := k.rates("")
	k.eachRanking(func(currency, operation string, ranked []rate) {
		if got, want := idsOf(ranked), eligible(all, currency, operation, "commercial"); !slices.Equal(got, want) {
			k.errorf("best %s %s has %q, want %q", currency, operation, got, want)
		}
	})
}

func checkBestReference(k *trial) {
	for _, operation := range operations() {
		best := listOf[rate](k, fmt.Sprintf("/v1/rates/best?currency=%s&operation=%s&kind=reference", k.currencies()[0], operation))
		if len(best.Data) > 0 || best.Meta.Total != 0 {
			k.errorf("best of reference rates: %d items, total %d", len(best.Data), best.Meta.Total)
		}
	}
}

func checkConvertPopulation(k *trial) {
	all := k.rates("")
	for _, kind := range []string{"", "commercial", "reference"} {
		more, expected := "", "commercial"
		if kind != "" {
			more, expected = "&kind="+kind, kind
		}
		k.eachConversion("1", more, func(currency, operation string, items []item) {
			var quotes []rate
			for i := range items {
				quotes = append(quotes, items[i].Quote)
			}
			if got, want := idsOf(quotes), eligible(all, currency, operation, expected); !slices.Equal(got, want) {
				k.errorf("convert %s %s %s has %q, want %q", currency, operation, kind, got, want)
			}
			for i := 1; i < len(quotes); i++ {
				if k.bySide(operation, &quotes[i-1], &quotes[i]) > 0 {
					k.errorf("convert %s %s %s: %s before %s", currency, operation, kind, quotes[i-1].ID, quotes[i].ID)
				}
			}
		})
	}
}

// product is amount times rate, with two decimals, halves up.
func (k *trial) product(amount, rate string) string {
	cents := new(big.Rat).Mul(k.number(amount), k.number(rate))
	cents.Mul(cents, big.NewRat(100, 1)).Add(cents, big.NewRat(1, 2))
	whole := new(big.Int).Quo(cents.Num(), cents.Denom())
	digits := fmt.Sprintf("%03s", whole.String())
	return digits[:len(digits)-2] + "." + digits[len(digits)-2:]
}

func checkAmounts(k *trial) {
	for _, amount := range []string{"0", "0.01", "0.25", "1", "1.15", "2.05", "100.00", "33.33", "999999999999.99"} {
		k.eachConversion(amount, "", func(currency, operation string, items []item) {
			for i := range items {
				if want := k.product(amount, items[i].Rate); items[i].AmountDop != want {
					k.errorf("convert %s %s: %s at %s is %s, want %s", currency, operation, amount, items[i].Rate, items[i].AmountDop, want)
				}
			}
		})
	}
}

func checkVerbatim(k *trial) {
	for _, amount := range []string{"0", "7", "7.0", "7.50", "000000000007.1"} {
		for _, operation := range operations() {
			for _, i := range walk[item](k, fmt.Sprintf("/v1/convert?currency=%s&operation=%s&amount=%s", k.currencies()[0], operation, amount), 200) {
				if side := i.Quote.side(operation); i.ForeignAmount != amount || side == nil || i.Rate != *side || i.Operation != operation || i.Currency != i.Quote.Currency {
					k.errorf("convert %s: foreignAmount %q, rate %q of %s, operation %q, currency %q", amount, i.ForeignAmount, i.Rate, text(side), i.Operation, i.Currency)
				}
			}
		}
	}
	for _, operation := range operations() {
		target := fmt.Sprintf("/v1/rates/best?currency=%s&operation=%s", k.currencies()[0], operation)
		if got := listOf[rate](k, target).Operation; got != operation {
			k.errorf("GET %s: operation is %q", target, got)
		}
	}
}

func checkFees(k *trial) {
	k.eachConversion("1", "", func(currency, operation string, items []item) {
		for _, i := range items {
			if i.FeesIncluded == nil || *i.FeesIncluded || i.FeeNotice == "" {
				k.errorf("convert %s %s: %s: feesIncluded %v, feeNotice %q", currency, operation, i.Quote.ID, i.FeesIncluded, i.FeeNotice)
			}
		}
	})
}
