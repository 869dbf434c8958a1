package engine

import (
	"fmt"
	"slices"
)

// byMarket is Withdrawn.By of a rate withdrawn because the market contradicts it.
const byMarket = "market"

// withdrawContradicted withdraws and quarantines published rates that the market contradicts after the refresh.
// Otherwise a wrong rate could stay the best one until it expires. Such a rate was accepted when few other rates were
// known, or before the market moved. For rows of past days see withdrawPast.
func (v *validator) withdrawContradicted(decision *Decision) {
	for i := range v.candidates {
		v.withdrawPast(&v.candidates[i], decision)
	}
	if v.refresh.ObservedAt.IsZero() || !v.futureTime().IsZero() {
		return
	}
	market := v.store.marketAt(v.refresh.ObservedAt)
	found := map[*SourceQuote]string{}
	for _, name := range []Operation{Buy, Sell} {
		v.findContradicted(market, name, found)
	}
	if len(found) == 0 {
		return
	}
	quotes := make([]*SourceQuote, 0, len(found))
	for quote := range found {
		quotes = append(quotes, quote)
	}
	slices.SortFunc(quotes, func(a, b *SourceQuote) int { return a.Key.Compare(b.Key) })
	for _, quote := range quotes {
		v.withdraw(quote, found[quote], decision)
	}
}

// findContradicted checks the prices of one side, from the lowest and from the highest up to the first price near the
// middle. Prices near the middle are never contradicted.
func (v *validator) findContradicted(market *market, name Operation, found map[*SourceQuote]string) {
	prices := market.side(name)
	for i := range prices {
		if !v.checkContradicted(market, prices, prices[i], name, found) {
			break
		}
	}
	for i := len(prices) - 1; i >= 0; i-- {
		if !v.checkContradicted(market, prices, prices[i], name, found) {
			break
		}
	}
}

// checkContradicted adds the quote of a price to found if the price is contradicted. It returns false for a price near
// the middle.
func (v *validator) checkContradicted(market *market, prices []marketPrice, p marketPrice, name Operation, found map[*SourceQuote]string) bool {
	price, middle := decimalOf(p.units), prices[len(prices)/2]
	var side, reference bidAsk
	if side.buy = price; name == Sell {
		side = bidAsk{sell: price}
	}
	if market.reference != nil {
		reference = bidAsk{market.reference.Buy, market.reference.Sell}
	}
	offReference := offReference(side, reference, v.rules)
	if offReference == "" && within(price, decimalOf(middle.units), v.rules.MedianPermille) {
		return false
	}
	if quote := p.quote; !quote.Manual && !quote.Released {
		detail := offReference
		if detail == "" {
			detail = market.contradicted(measure{v.rules, quote.Key.Institution, quote.CollectedAt}, side)
		}
		if detail != "" {
			found[quote] = detail
		}
	}
	return true
}

func (v *validator) withdraw(quote *SourceQuote, detail string, decision *Decision) {
	at := v.refresh.ObservedAt
	since := min(DateOf(quote.CollectedAt), historyDate(quote.EffectiveDate, quote.CollectedAt))
	decision.add(v.store, &Withdrawn{Currency: v.currency, SourceID: quote.SourceID, Key: quote.Key, At: at, By: byMarket, HistorySince: since})
	observation := Observation{
		InstitutionID: quote.Key.Institution, Currency: v.currency, Channel: quote.Key.Channel, Kind: quote.Key.Kind,
		Buy: quote.Buy.String(), Sell: quote.Sell.String(), EffectiveDate: quote.EffectiveDate, PublishedAt: quote.PublishedAt, ExpiresAt: quote.ExpiresAt,
	}
	quarantined := Quarantined{
		ID: v.store.lastQuarantineID + 1, SourceID: quote.SourceID, ObservedAt: quote.LastCheckedAt, Observation: observation,
		Reason: Contradicted, Detail: detail + "; the published rate was withdrawn",
	}
	if _, known := v.store.quarantineID(&quarantined); !known {
		decision.add(v.store, &Refreshed{Currency: v.currency, SourceID: quote.SourceID, ObservedAt: at, Quarantined: []Quarantined{quarantined}})
	}
	decision.Receipt.Notices = append(decision.Receipt.Notices, Notice{quote.Key.ID(v.currency), quote.SourceID, "withdrawn: " + detail})
}

// withdrawPast removes the source's history row of a day if a refused backfill repeats its value: the market of that
// day contradicts the row too.
func (v *validator) withdrawPast(c *candidate, decision *Decision) {
	if !c.backfill || c.reason != OffMarket && c.reason != OutOfBand {
		return
	}
	date := historyDate(c.observation.EffectiveDate, v.refresh.ObservedAt)
	row := v.store.findRow(date, c.key)
	if row == nil || row.SourceID != v.refresh.SourceID || row.Precedence == precedenceWithdrawn || !row.Buy.Equal(c.buy) || !row.Sell.Equal(c.sell) {
		return
	}
	decision.add(v.store, &Withdrawn{
		Currency: v.currency, SourceID: v.source.ID, Key: c.key, At: v.refresh.ObservedAt, By: byMarket, HistorySince: date, HistoryOnly: true,
	})
	decision.Receipt.Notices = append(decision.Receipt.Notices, Notice{
		c.key.ID(v.currency), v.source.ID, fmt.Sprintf("removed from history of %s: %s", date, c.detail),
	})
}
