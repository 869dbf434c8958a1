package engine

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// checkPlausibility refuses values that are too far from what the source gave before or from the market.
func (v *validator) checkPlausibility() {
	market := v.consensus()
	for i := range v.candidates {
		v.yielder.step(1)
		c := &v.candidates[i]
		if c.reason != "" {
			continue
		}
		reason, detail := v.jump(c)
		if reason == "" {
			reason, detail = market.offMarket(c, v.rules)
		}
		if reason == "" {
			reason, detail = v.misplaced(c, market)
		}
		if reason != "" && !v.confirmed(c, market) {
			c.refuse(reason, detail)
		}
	}
}

// jump compares with the last good value.
func (v *validator) jump(c *candidate) (Reason, string) {
	good, when, known := v.lastGood(c)
	if !known {
		return "", ""
	}
	for _, side := range c.sides() {
		last, limit := good.of(side.name), c.plausible.JumpPermille
		if !last.IsNull() && !within(side.value, last, limit) {
			return Jump, fmt.Sprintf("%s %s is more than %s %% from %s, the last good value (%s)",
				side.name, side.value, percent(limit), last, when.UTC().Format(time.RFC3339))
		}
	}
	return "", ""
}

// misplaced refuses a single side that is nearer to the other side of the last good value than to its own: it may be
// the other side in the wrong place, which crossed sides would show if both were there. The median of the market
// replaces a side that the last good value does not have.
func (v *validator) misplaced(c *candidate, market *consensus) (Reason, string) {
	good, when, known := v.lastGood(c)
	sides := c.sides()
	if !known || len(sides) != 1 {
		return "", ""
	}
	name, value := sides[0].name, sides[0].value
	own, other, crossed := good.buy, good.sell, value.Compare(good.sell) >= 0
	if name == Sell {
		own, other, crossed = good.sell, good.buy, value.Compare(good.buy) <= 0
	}
	if own.IsNull() {
		own = market.median.of(name)
	}
	if other.IsNull() || !crossed && (own.IsNull() || distance(value, own) <= distance(value, other)) {
		return "", ""
	}
	return Jump, fmt.Sprintf("%s %s is the only side and may be the other one, which was %s in the last good value (%s)",
		name, value, other, when.UTC().Format(time.RFC3339))
}

func distance(a, b Decimal) int64 {
	if a.units < b.units {
		return b.units - a.units
	}
	return a.units - b.units
}

// lastGood returns the source's last value, or for a backfill the history row of its day or the newest before it. A
// value older than Rules.LastGoodAgeMax does not count.
func (v *validator) lastGood(c *candidate) (good bidAsk, when time.Time, known bool) {
	oldest := v.refresh.ObservedAt.Add(-v.rules.LastGoodAgeMax)
	if !c.backfill {
		if c.last == nil {
			return bidAsk{}, time.Time{}, false
		}
		return bidAsk{c.last.Buy, c.last.Sell}, c.last.LastCheckedAt, !c.last.LastCheckedAt.Before(oldest)
	}
	newest := c.observation.EffectiveDate
	if newest.IsZero() {
		newest = DateOf(v.refresh.ObservedAt)
	}
	for date := newest; date > newest.AddDays(-int(v.rules.LastGoodAgeMax/(24*time.Hour))); date-- {
		row, _, _ := v.store.findRow(date, c.key)
		if row != nil && !row.ObservedAt.After(v.refresh.ObservedAt) && v.store.retains(date, row.Kind) {
			return bidAsk{row.Buy, row.Sell}, row.ObservedAt, true
		}
	}
	return bidAsk{}, time.Time{}, false
}

// percent formats thousandths as per cent.
func percent(permille int64) string {
	if permille%10 == 0 {
		return fmt.Sprint(permille / 10)
	}
	return fmt.Sprintf("%d.%d", permille/10, permille%10)
}

// within reports |value − base| ≤ base × permille / 1000, exactly.
func within(value, base Decimal, permille int64) bool {
	farHigh, farLow := bits.Mul64(uint64(distance(value, base)), 1000)
	limitHigh, limitLow := bits.Mul64(uint64(base.units), uint64(permille))
	return farHigh < limitHigh || farHigh == limitHigh && farLow <= limitLow
}

// consensus is the market at the time of a refresh: all fresh quotes, with those of the refresh in place of the ones
// that they replace.
type consensus struct {
	quotes []marketQuote
	median bidAsk // of commercial quotes; a side is null when too few have it
}

type marketQuote struct {
	key       QuoteKey
	source    string
	buy, sell Decimal
}

// consensus leaves out candidates of quotes that another source publishes: a source with many institutions must not be
// compared with itself.
func (v *validator) consensus() *consensus {
	var builder consensusBuilder
	var own []*SourceQuote // of this source, published now
	v.store.eachQuote(func(q *quote) {
		fresh := q.freshAt(v.refresh.ObservedAt)
		switch {
		case fresh == nil:
		case fresh.SourceID == v.refresh.SourceID:
			own = append(own, fresh)
		default:
			if c := v.candidateOf(q.key); c != nil {
				c.inConsensus = true
			}
			builder.add(marketQuote{q.key, fresh.SourceID, fresh.Buy, fresh.Sell})
		}
	})
	for i := range v.candidates {
		c := &v.candidates[i]
		if first := &v.candidates[c.first]; c.reason == "" && !first.inConsensus {
			first.inConsensus = true
			if v.expiry(c).After(v.refresh.ObservedAt) {
				builder.add(marketQuote{c.key, v.refresh.SourceID, c.buy, c.sell})
			}
		}
	}
	for _, q := range own {
		if c := v.candidateOf(q.Key); c == nil || !c.inConsensus {
			builder.add(marketQuote{q.Key, q.SourceID, q.Buy, q.Sell})
		}
	}
	v.yielder.step(len(builder.quotes))
	return &consensus{builder.quotes, bidAsk{v.median(builder.buys), v.median(builder.sells)}}
}

type consensusBuilder struct {
	quotes      []marketQuote
	buys, sells []int64 // units of commercial quotes
}

func (b *consensusBuilder) add(q marketQuote) {
	b.quotes = append(b.quotes, q)
	if q.key.Kind == Commercial {
		b.buys, b.sells = appendUnits(b.buys, q.buy), appendUnits(b.sells, q.sell)
	}
}

// freshAt returns the source quote that was published at an instant and known by then, nil when there was none: a
// backfill must not be compared with what came later.
func (q *quote) freshAt(at time.Time) *SourceQuote {
	published := q.published(at)
	if published == nil || published.staleAt(at) || published.LastCheckedAt.After(at) {
		return nil
	}
	return published
}

func appendUnits(list []int64, d Decimal) []int64 {
	if d.IsNull() {
		return list
	}
	return append(list, d.units)
}

func (v *validator) median(units []int64) Decimal {
	if len(units) < v.rules.MedianQuotesMin {
		return Decimal{}
	}
	slices.Sort(units)
	return decimalOf(units[len(units)/2])
}

// offMarket compares a commercial value with the median of its side.
func (m *consensus) offMarket(c *candidate, rules Rules) (Reason, string) {
	if c.key.Kind != Commercial {
		return "", ""
	}
	for _, side := range c.sides() {
		median := m.median.of(side.name)
		if !median.IsNull() && !within(side.value, median, rules.MedianPermille) {
			return OffMarket, fmt.Sprintf("%s %s is more than %s %% from %s, the median of %d fresh quotes",
				side.name, side.value, percent(rules.MedianPermille), median, len(m.quotes))
		}
	}
	return "", ""
}

// confirmed reports that an implausible value is accepted: the source repeats it, and another institution has a similar
// value, fresh or itself pending (in a devaluation all move at once).
func (v *validator) confirmed(c *candidate, market *consensus) bool {
	before, pending := v.store.quote(c.key).pendingOf(v.refresh.SourceID)
	if !pending || c.backfill || !before.ObservedAt.Before(v.refresh.ObservedAt) ||
		before.ObservedAt.Before(v.refresh.ObservedAt.Add(-v.rules.LastGoodAgeMax)) {
		return false
	}
	same := v.rules.JumpPermille / 5
	if !near(before.Buy, c.buy, same) || !near(before.Sell, c.sell, same) {
		return false
	}
	v.yielder.step(1 + len(market.quotes)/quotesPerStep)
	return slices.ContainsFunc(market.quotes, func(q marketQuote) bool { return v.corroborates(q, c) }) || v.pendingElsewhere(c)
}

// near is also true when either side is absent.
func near(a, b Decimal, permille int64) bool {
	return a.IsNull() || b.IsNull() || within(a, b, permille)
}

// corroborates requires another institution and another source: one page may be wrong about two institutions.
func (v *validator) corroborates(q marketQuote, c *candidate) bool {
	return q.key.Institution != c.key.Institution && q.source != v.refresh.SourceID && near(q.buy, c.buy, v.rules.JumpPermille) &&
		near(q.sell, c.sell, v.rules.JumpPermille) && (!q.buy.IsNull() && !c.buy.IsNull() || !q.sell.IsNull() && !c.sell.IsNull())
}

func (v *validator) pendingElsewhere(c *candidate) bool {
	found := false
	oldest := v.refresh.ObservedAt.Add(-v.rules.LastGoodAgeMax)
	v.store.eachQuote(func(q *quote) {
		for _, p := range q.pending {
			found = found || !p.ObservedAt.Before(oldest) && v.corroborates(marketQuote{q.key, p.SourceID, p.Buy, p.Sell}, c)
		}
	})
	return found
}

// event collects what is accepted and quarantined, without what would change nothing.
func (v *validator) event() *Refreshed {
	event := &Refreshed{
		Currency: v.currency, SourceID: v.source.ID, ObservedAt: v.refresh.ObservedAt, Priority: v.source.Priority,
		Manual: v.source.Manual, UpstreamSource: v.source.UpstreamSource, By: v.refresh.By,
	}
	if v.futureInstant().IsZero() {
		event.setSlot(&v.refresh)
	}
	for i := range v.candidates {
		v.yielder.step(1)
		c := &v.candidates[i]
		first := &v.candidates[c.first]
		switch {
		case c.reason != "":
			v.quarantine(c, event)
		case !first.inEvent:
			first.inEvent = true
			quote := v.acceptedQuote(c)
			if c.changed = v.changesValue(event, c.last, &quote); c.changed || v.rechecks(c.last, &quote) {
				if event.Quotes == nil {
					event.Quotes = make([]AcceptedQuote, 0, len(v.candidates)-i)
				}
				event.Quotes = append(event.Quotes, quote)
			}
		}
	}
	return event
}

func (v *validator) quarantine(c *candidate, event *Refreshed) {
	quarantined := Quarantined{
		SourceID: v.source.ID, ObservedAt: v.refresh.ObservedAt, Observation: c.observation.truncated(),
		Reason: c.reason, Detail: c.detail,
	}
	if id, already := v.store.quarantineID(quarantined.key()); already {
		c.quarantineID = id
		return
	}
	quarantined.ID = v.store.lastQuarantineID + uint64(len(event.Quarantined)) + 1
	c.quarantineID = quarantined.ID
	event.Quarantined = append(event.Quarantined, quarantined)
}

// truncated returns the observation with short texts, and with channel and kind filled in.
func (o Observation) truncated() Observation {
	o.Buy, o.Sell, o.Document = truncateText(o.Buy), truncateText(o.Sell), truncateText(o.Document)
	key := o.Key()
	o.Channel, o.Kind = key.Channel, key.Kind
	return o
}

func truncateText(text string) string { return text[:min(len(text), sideTextMax)] }

// expiry returns the stated expiry, else the end of the source's lifetime. It may have passed: then the quote is
// published as stale.
func (v *validator) expiry(c *candidate) time.Time {
	if c.observation.ExpiresAt.IsZero() {
		return v.refresh.ObservedAt.Add(v.source.Lifetime)
	}
	return c.observation.ExpiresAt
}

func (v *validator) acceptedQuote(c *candidate) AcceptedQuote {
	return AcceptedQuote{
		Key: c.key, Buy: c.buy, Sell: c.sell, EffectiveDate: c.observation.EffectiveDate,
		PublishedAt: c.observation.PublishedAt, ExpiresAt: v.expiry(c), Backfill: c.backfill,
	}
}

// changesValue reports that the source quote has a new value, or for a backfill that the history row does.
func (v *validator) changesValue(event *Refreshed, last *SourceQuote, quote *AcceptedQuote) bool {
	if !quote.Backfill {
		return last == nil || !last.sameValue(quote)
	}
	row := historyRow(event, quote)
	old, _, _ := v.store.findRow(row.Date, quote.Key)
	return v.store.retains(row.Date, row.Kind) && (old == nil || row.replaces(old))
}

// rechecks reports a later check of the same value.
func (v *validator) rechecks(last *SourceQuote, quote *AcceptedQuote) bool {
	return last != nil && !quote.Backfill &&
		(v.refresh.ObservedAt.After(last.LastCheckedAt) || !last.ExpiresAt.Equal(quote.ExpiresAt))
}
