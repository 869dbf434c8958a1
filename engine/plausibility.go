package engine

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// checkPlausibility holds back values that are too far from what the source said before, or from what everybody says.
func (j *validator) checkPlausibility() {
	market := j.consensus()
	for i := range j.candidates {
		j.yielder.step(1)
		c := &j.candidates[i]
		if c.reason != "" {
			continue
		}
		reason, detail := j.jump(c)
		if reason == "" {
			reason, detail = market.offMarket(c, j.rules)
		}
		if reason == "" {
			reason, detail = j.misplaced(c, market)
		}
		if reason != "" && !j.confirmed(c, market) {
			c.refuse(reason, detail)
		}
	}
}

// jump measures against the last good value: the source's own, or for a backfill the day's or the days' before.
func (j *validator) jump(c *candidate) (Reason, string) {
	good, when, known := j.lastGood(c)
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

// misplaced holds back a lone side that stands nearer to the other side of the source's last good value than to its own: it may
// well be that side, shown in the wrong place, and there are no crossed sides to know it by (X18). Where the source had no such
// side before, the market's median stands in.
func (j *validator) misplaced(c *candidate, market *consensus) (Reason, string) {
	good, when, known := j.lastGood(c)
	alone := c.sides()
	if !known || len(alone) != 1 {
		return "", ""
	}
	name, value := alone[0].name, alone[0].value
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
	return Jump, fmt.Sprintf("%s %s comes alone and may be the other side, which was %s in the last good value (%s)",
		name, value, other, when.UTC().Format(time.RFC3339))
}

func distance(a, b Decimal) int64 {
	if a.units < b.units {
		return b.units - a.units
	}
	return a.units - b.units
}

func (j *validator) lastGood(c *candidate) (good bidAsk, when time.Time, known bool) {
	oldest := j.refresh.ObservedAt.Add(-j.rules.LastGoodAgeMax)
	if !c.backfill {
		if c.last == nil {
			return bidAsk{}, time.Time{}, false
		}
		return bidAsk{c.last.Buy, c.last.Sell}, c.last.LastCheckedAt, !c.last.LastCheckedAt.Before(oldest)
	}
	newest := historyRow(j.currency, provenance{observedAt: j.refresh.ObservedAt}, &AcceptedQuote{EffectiveDate: c.observation.EffectiveDate}).Date
	for date := newest; date > newest.AddDays(-int(j.rules.LastGoodAgeMax/(24*time.Hour))); date-- {
		if row, _, _ := j.state.findRow(date, c.key); row != nil && !row.ObservedAt.After(j.refresh.ObservedAt) && j.state.retains(date, row.Kind) {
			return bidAsk{row.Buy, row.Sell}, row.ObservedAt, true
		}
	}
	return bidAsk{}, time.Time{}, false
}

// percent writes thousandths as per cent.
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

// consensus is what the market says at the moment of a refresh: every fresh commercial quote, those of the refresh in place of
// the ones that they replace, and what other sources are suspected for.
type consensus struct {
	quotes []marketQuote
	median bidAsk // a side is null when too few quotes have it
}

type marketQuote struct {
	key       QuoteKey
	source    string
	buy, sell Decimal
}

func (j *validator) consensus() *consensus {
	var census consensusBuilder
	var own []*SourceQuote // of this source, published now
	j.state.eachQuote(func(q *quote) {
		offer := q.freshAt(j.refresh.ObservedAt)
		switch {
		case offer == nil:
		case offer.SourceID == j.refresh.SourceID:
			own = append(own, offer)
		default: // by somebody else: a source that speaks for all institutions is not its own measure
			if c := j.candidateOf(q.key); c != nil {
				c.inConsensus = true
			}
			census.add(marketQuote{q.key, offer.SourceID, offer.Buy, offer.Sell})
		}
	})
	for i := range j.candidates {
		c := &j.candidates[i]
		if first := &j.candidates[c.first]; c.reason == "" && !first.inConsensus {
			first.inConsensus = true
			if j.expiry(c).After(j.refresh.ObservedAt) { // one that is stale already is no measure for others
				census.add(marketQuote{c.key, j.refresh.SourceID, c.buy, c.sell})
			}
		}
	}
	for _, offer := range own {
		if c := j.candidateOf(offer.Key); c == nil || !c.inConsensus {
			census.add(marketQuote{offer.Key, offer.SourceID, offer.Buy, offer.Sell})
		}
	}
	j.yielder.step(len(census.quotes))
	return &consensus{census.quotes, bidAsk{j.median(census.buys), j.median(census.sells)}}
}

// consensusBuilder gathers a consensus.
type consensusBuilder struct {
	quotes      []marketQuote
	buys, sells []int64 // of commercial quotes
}

func (c *consensusBuilder) add(w marketQuote) {
	c.quotes = append(c.quotes, w)
	if w.key.Kind == Commercial {
		c.buys, c.sells = appendUnits(c.buys, w.buy), appendUnits(c.sells, w.sell)
	}
}

// freshAt is the offer published at an instant if it was known then and had not expired: a backfill must not be measured
// against its future. Nil when there is none.
func (q *quote) freshAt(at time.Time) *SourceQuote {
	offer := q.published(at)
	if offer == nil || offer.staleAt(at) || offer.LastCheckedAt.After(at) {
		return nil
	}
	return offer
}

func appendUnits(list []int64, d Decimal) []int64 {
	if d.IsNull() {
		return list
	}
	return append(list, d.units)
}

func (j *validator) median(units []int64) Decimal {
	if len(units) < j.rules.MedianQuotesMin {
		return Decimal{}
	}
	slices.Sort(units)
	return decimalOf(units[len(units)/2])
}

// offMarket measures a commercial value against the median of its side.
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

// confirmed reports that an implausible value is true after all: the source's answer before said the same and one more
// institution stands near it, be it with a fresh quote or with a value that is suspected as well (a devaluation moves all at once).
func (j *validator) confirmed(c *candidate, market *consensus) bool {
	before, suspected := j.state.quote(c.key).pendingOf(j.refresh.SourceID)
	if !suspected || c.backfill || !before.ObservedAt.Before(j.refresh.ObservedAt) ||
		before.ObservedAt.Before(j.refresh.ObservedAt.Add(-j.rules.LastGoodAgeMax)) {
		return false
	}
	same := j.rules.JumpPermille / 5
	if !near(before.Buy, c.buy, same) || !near(before.Sell, c.sell, same) {
		return false
	}
	j.yielder.step(1 + len(market.quotes)/quotesPerStep)
	return slices.ContainsFunc(market.quotes, func(w marketQuote) bool { return j.corroborates(w, c) }) || j.pendingElsewhere(c)
}

// near is true as well when either side is absent.
func near(a, b Decimal, permille int64) bool {
	return a.IsNull() || b.IsNull() || within(a, b, permille)
}

// corroborates wants another institution by another source: what one page says of two banks is one error as easily as two truths.
func (j *validator) corroborates(w marketQuote, c *candidate) bool {
	return w.key.Institution != c.key.Institution && w.source != j.refresh.SourceID && near(w.buy, c.buy, j.rules.JumpPermille) &&
		near(w.sell, c.sell, j.rules.JumpPermille) && (!w.buy.IsNull() && !c.buy.IsNull() || !w.sell.IsNull() && !c.sell.IsNull())
}

func (j *validator) pendingElsewhere(c *candidate) bool {
	found := false
	oldest := j.refresh.ObservedAt.Add(-j.rules.LastGoodAgeMax)
	j.state.eachQuote(func(q *quote) {
		for _, s := range q.pending {
			found = found || !s.ObservedAt.Before(oldest) && j.corroborates(marketQuote{q.key, s.SourceID, s.Buy, s.Sell}, c)
		}
	})
	return found
}

// event gathers what stands and what is held, leaving out what would change nothing.
func (j *validator) event() *Refreshed {
	event := &Refreshed{
		Currency: j.currency, SourceID: j.source.ID, ObservedAt: j.refresh.ObservedAt, Priority: j.source.Priority,
		Manual: j.source.Manual, UpstreamSource: j.source.UpstreamSource, By: j.refresh.By,
	}
	if j.futureInstant().IsZero() {
		event.setSlot(&j.refresh)
	}
	for i := range j.candidates {
		j.yielder.step(1)
		c := &j.candidates[i]
		first := &j.candidates[c.first]
		switch {
		case c.reason != "":
			j.quarantine(c, event)
		case !first.inEvent:
			first.inEvent = true
			quoted := j.acceptedQuote(c)
			if c.changed = j.changesValue(event, c.last, &quoted); c.changed || j.rechecks(c.last, &quoted) {
				if event.Quotes == nil {
					event.Quotes = make([]AcceptedQuote, 0, len(j.candidates)-i)
				}
				event.Quotes = append(event.Quotes, quoted)
			}
		}
	}
	return event
}

func (j *validator) quarantine(c *candidate, event *Refreshed) {
	held := Quarantined{
		SourceID: j.source.ID, ObservedAt: j.refresh.ObservedAt, Observation: c.observation.truncated(), Reason: c.reason, Detail: c.detail,
	}
	if id, already := j.state.quarantineID(held.key()); already {
		c.quarantineID = id
		return
	}
	held.ID = j.state.lastQuarantineID + uint64(len(event.Quarantined)) + 1
	c.quarantineID = held.ID
	event.Quarantined = append(event.Quarantined, held)
}

// truncated is the observation as quarantine keeps it: texts that are no number are cut, they may be a whole page.
func (o Observation) truncated() Observation {
	o.Buy, o.Sell, o.Document = truncateText(o.Buy), truncateText(o.Sell), truncateText(o.Document)
	key := o.Key()
	o.Channel, o.Kind = key.Channel, key.Kind
	return o
}

func truncateText(text string) string { return text[:min(len(text), sideTextMax)] }

// expiry is what the observation states, else the source's span (T3). It may have passed before anybody saw it: such a quote is
// published as stale.
func (j *validator) expiry(c *candidate) time.Time {
	if c.observation.ExpiresAt.IsZero() {
		return j.refresh.ObservedAt.Add(j.source.Lifetime)
	}
	return c.observation.ExpiresAt
}

func (j *validator) acceptedQuote(c *candidate) AcceptedQuote {
	return AcceptedQuote{
		Key: c.key, Buy: c.buy, Sell: c.sell, EffectiveDate: c.observation.EffectiveDate,
		PublishedAt: c.observation.PublishedAt, ExpiresAt: j.expiry(c), Backfill: c.backfill,
	}
}

// changesValue reports a new value: of the offer, or for a backfill of the day's row.
func (j *validator) changesValue(event *Refreshed, last *SourceQuote, quoted *AcceptedQuote) bool {
	if !quoted.Backfill {
		return last == nil || !last.sameValue(quoted)
	}
	row := historyRow(j.currency, provenance{event.SourceID, event.UpstreamSource, event.ObservedAt, event.Priority, event.Manual}, quoted)
	old, _, _ := j.state.findRow(row.Date, quoted.Key)
	return j.state.retains(row.Date, row.Kind) && (old == nil || row.replaces(old))
}

// rechecks reports that the source was heard again: a later check of the same value.
func (j *validator) rechecks(last *SourceQuote, quoted *AcceptedQuote) bool {
	return last != nil && !quoted.Backfill &&
		(j.refresh.ObservedAt.After(last.LastCheckedAt) || !last.ExpiresAt.Equal(quoted.ExpiresAt))
}
