package engine

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// checkPlausibility refuses values that differ too much from the source's last good value (the value last accepted from
// it) or from the market. A value that is confirmed is not refused.
func (v *validator) checkPlausibility() {
	market := v.consensus()
	for i := range v.candidates {
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

func (v *validator) jump(c *candidate) (Reason, string) {
	good, observedAt, ok := v.lastGood(c)
	if !ok {
		return "", ""
	}
	for _, side := range c.sides() {
		last, limit := good.of(side.name), c.plausible.JumpPermille
		if !last.IsNull() && !within(side.value, last, limit) {
			return Jump, fmt.Sprintf("%s %s is more than %s %% from %s, the last good value (%s)",
				side.name, side.value, percent(limit), last, observedAt.UTC().Format(time.RFC3339))
		}
	}
	return "", ""
}

// misplaced refuses a candidate (an observation that is being checked) with only one side, if the source may have
// confused buy and sell. (If both sides are present, the reason Crossed detects that.) A buy value must be below the
// sell side of the last good value, and must not be nearer to that sell side than to the buy side. If the last good
// value lacks the buy side, the median of the market replaces the missing side. A sell value is checked in the same
// way.
func (v *validator) misplaced(c *candidate, market *consensus) (Reason, string) {
	good, observedAt, ok := v.lastGood(c)
	sides := c.sides()
	if !ok || len(sides) != 1 {
		return "", ""
	}
	name, value := sides[0].name, sides[0].value
	ownSide, otherSide, crossed := good.buy, good.sell, value.Compare(good.sell) >= 0
	if name == Sell {
		ownSide, otherSide, crossed = good.sell, good.buy, value.Compare(good.buy) <= 0
	}
	if ownSide.IsNull() {
		ownSide = market.median.of(name)
	}
	if otherSide.IsNull() || !crossed && (ownSide.IsNull() || distance(value, ownSide) <= distance(value, otherSide)) {
		return "", ""
	}
	return Jump, fmt.Sprintf("%s %s is the only side and may be the other one, which was %s in the last good value (%s)",
		name, value, otherSide, observedAt.UTC().Format(time.RFC3339))
}

func distance(a, b Decimal) int64 {
	if a.units < b.units {
		return b.units - a.units
	}
	return a.units - b.units
}

// lastGood returns the value that was last accepted from the source and the time of its observation. For a backfill (an
// observation older than the source's newest) it returns the newest history row up to the candidate's day. It returns
// false if the value is older than Rules.LastGoodAgeMax or missing.
func (v *validator) lastGood(c *candidate) (good bidAsk, observedAt time.Time, ok bool) {
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

// percent formats thousandths as a percentage.
func percent(permille int64) string {
	if permille%10 == 0 {
		return fmt.Sprint(permille / 10)
	}
	return fmt.Sprintf("%d.%d", permille/10, permille%10)
}

// within reports whether |value − base| ≤ base × permille / 1000, without rounding.
func within(value, base Decimal, permille int64) bool {
	distanceHigh, distanceLow := bits.Mul64(uint64(distance(value, base)), 1000)
	limitHigh, limitLow := bits.Mul64(uint64(base.units), uint64(permille))
	return distanceHigh < limitHigh || distanceHigh == limitHigh && distanceLow <= limitLow
}

// consensus has the quotes of the market that have not expired at the time of a refresh. A quote of the refresh
// replaces the older quote of the same source.
type consensus struct {
	quotes      []marketQuote
	buys, sells []int64 // prices of commercial quotes (Decimal.Units)
	median      bidAsk  // median of each side of the commercial quotes; null if too few quotes have the side
}

type marketQuote struct {
	key       QuoteKey
	source    string
	buy, sell Decimal
}

// consensus returns the quotes of the market. If the published quote is from another source, the market has that quote
// instead of the candidate. Otherwise the values of a source with many institutions would be compared with each other.
func (v *validator) consensus() *consensus {
	m := v.store.market
	m.quotes, m.buys, m.sells = m.quotes[:0], m.buys[:0], m.sells[:0]
	var ownQuotes []*SourceQuote // published quotes of this source
	v.store.eachQuote(func(q *quote) {
		fresh := q.freshAt(v.refresh.ObservedAt)
		switch {
		case fresh == nil:
		case fresh.SourceID == v.refresh.SourceID:
			ownQuotes = append(ownQuotes, fresh)
		default:
			if c := v.candidateOf(q.key); c != nil {
				c.inConsensus = true
			}
			m.add(marketQuote{q.key, fresh.SourceID, fresh.Buy, fresh.Sell})
		}
	})
	for i := range v.candidates {
		c := &v.candidates[i]
		if first := &v.candidates[c.first]; c.reason == "" && !first.inConsensus {
			first.inConsensus = true
			if v.expiry(c).After(v.refresh.ObservedAt) {
				m.add(marketQuote{c.key, v.refresh.SourceID, c.buy, c.sell})
			}
		}
	}
	for _, q := range ownQuotes {
		if c := v.candidateOf(q.Key); c == nil || !c.inConsensus {
			m.add(marketQuote{q.Key, q.SourceID, q.Buy, q.Sell})
		}
	}
	m.median = bidAsk{v.median(m.buys), v.median(m.sells)}
	return m
}

func (m *consensus) add(q marketQuote) {
	m.quotes = append(m.quotes, q)
	if q.key.Kind == Commercial {
		m.buys, m.sells = appendUnits(m.buys, q.buy), appendUnits(m.sells, q.sell)
	}
}

// freshAt returns the source quote that is published and not stale at a time, or nil. It also returns nil if the quote
// was checked after that time, because a backfill must not be compared with later values.
func (q *quote) freshAt(t time.Time) *SourceQuote {
	published := q.published(t)
	if published == nil || published.staleAt(t) || published.LastCheckedAt.After(t) {
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

// offMarket refuses a side of a commercial quote that is too far from the median of that side.
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

// confirmed reports whether an implausible value is accepted after all. The source must have repeated it, and another
// institution must have a similar value. The similar value may also be one that was refused and waits for confirmation,
// because in a devaluation all rates move at once.
func (v *validator) confirmed(c *candidate, market *consensus) bool {
	pending, ok := v.store.quote(c.key).pendingOf(v.refresh.SourceID)
	if !ok || c.backfill || !pending.ObservedAt.Before(v.refresh.ObservedAt) ||
		pending.ObservedAt.Before(v.refresh.ObservedAt.Add(-v.rules.LastGoodAgeMax)) {
		return false
	}
	repeatPermille := v.rules.JumpPermille / 5
	if !near(pending.Buy, c.buy, repeatPermille) || !near(pending.Sell, c.sell, repeatPermille) {
		return false
	}
	return slices.ContainsFunc(market.quotes, func(q marketQuote) bool { return v.corroborates(q, c) }) || v.pendingElsewhere(c)
}

// near reports whether two sides differ by at most permille (thousandths). A null side is near every other side.
func near(a, b Decimal, permille int64) bool {
	return a.IsNull() || b.IsNull() || within(a, b, permille)
}

// corroborates reports whether a market quote supports the value of a candidate. The quote must be of another
// institution, and of another source, because one page can be wrong about two institutions. At least one side must be
// present in both.
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

// event returns the event with the accepted and quarantined observations. It leaves out observations that change
// nothing.
func (v *validator) event() *Refreshed {
	event := &Refreshed{
		Currency: v.currency, SourceID: v.source.ID, ObservedAt: v.refresh.ObservedAt, Priority: v.source.Priority,
		Manual: v.source.Manual, UpstreamSource: v.source.UpstreamSource, By: v.refresh.By,
	}
	if v.futureTime().IsZero() {
		event.setSlot(&v.refresh)
	}
	for i := range v.candidates {
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
	if id, found := v.store.quarantineID(quarantined.key()); found {
		c.quarantineID = id
		return
	}
	quarantined.ID = v.store.lastQuarantineID + uint64(len(event.Quarantined)) + 1
	c.quarantineID = quarantined.ID
	event.Quarantined = append(event.Quarantined, quarantined)
}

// truncated returns the observation with its texts cut to sideTextMax, and with the default channel and kind if they
// are missing.
func (o Observation) truncated() Observation {
	o.Buy, o.Sell, o.Document = truncateText(o.Buy), truncateText(o.Sell), truncateText(o.Document)
	key := o.Key()
	o.Channel, o.Kind = key.Channel, key.Kind
	return o
}

func truncateText(text string) string { return text[:min(len(text), sideTextMax)] }

// expiry returns the expiry that the observation states, or else the time of the observation plus Source.Lifetime. An
// expiry in the past is allowed; the quote is then published as stale.
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

// changesValue reports whether the quote changes the source's current value or, for a backfill, the history row.
func (v *validator) changesValue(event *Refreshed, last *SourceQuote, quote *AcceptedQuote) bool {
	if !quote.Backfill {
		return last == nil || !last.sameValue(quote)
	}
	row := historyRow(event, quote)
	old, _, _ := v.store.findRow(row.Date, quote.Key)
	return v.store.retains(row.Date, row.Kind) && (old == nil || row.replaces(old))
}

// rechecks reports whether the quote confirms the last value at a later time or with another expiry.
func (v *validator) rechecks(last *SourceQuote, quote *AcceptedQuote) bool {
	return last != nil && !quote.Backfill &&
		(v.refresh.ObservedAt.After(last.LastCheckedAt) || !last.ExpiresAt.Equal(quote.ExpiresAt))
}
