package engine

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// checkPlausibility refuses candidates too far from the reference rate, from the source's last good value (lastGood) or
// from the market. In the last two cases a confirmed value is accepted. A released value is not checked again.
func (v *validator) checkPlausibility() {
	before := v.store.marketAt(v.refresh.ObservedAt)
	market := v.withCandidates(before)
	for i := range v.candidates {
		c := &v.candidates[i]
		if c.reason != "" || c.last != nil && c.last.Released && c.repeats(c.last) {
			continue
		}
		c.refuse(v.offReference(c, before))
		before, market := before, market
		if c.backfill {
			before = v.pastMarket(c)
			market = before
		}
		reason, detail := v.jump(c, before)
		if reason == "" {
			reason, detail = v.offMarket(c, market)
		}
		misplaced := v.misplaced(c, market)
		if reason == "" && misplaced != "" {
			reason, detail = Jump, misplaced
		}
		if reason != "" && !v.confirmed(c, before, reason, misplaced != "") {
			c.refuse(reason, detail)
		}
	}
}

// repeats reports whether the candidate's prices equal those of a quote.
func (c *candidate) repeats(quote *SourceQuote) bool {
	return c.buy.Equal(quote.Buy) && c.sell.Equal(quote.Sell)
}

// measure returns the measure of the candidate's prices: it compares them with those of other institutions.
func (v *validator) measure(c *candidate) measure {
	return measure{rules: v.rules, institution: c.key.Institution}
}

// jump refuses a price too far from the last good value. A commercial price is accepted if the market before the
// refresh supports it, or contradicts the last good value. A reference rate is accepted if institutions agree with it
// (agreed).
func (v *validator) jump(c *candidate, before *market) (Reason, string) {
	good, observedAt, ok := v.lastGood(c)
	if !ok {
		return "", ""
	}
	for _, side := range c.sides() {
		last, limit := good.of(side.name), c.plausible.JumpPermille
		switch {
		case last.IsNull() || within(side.value, last, limit):
		case c.key.Kind == Reference && v.agreed(c):
		case c.key.Kind == Commercial && (v.measure(c).supports(before.side(side.name), side.value) || before.contradicted(v.measure(c), good) != ""):
		default:
			return Jump, wrongSide(side.name, side.value, limit,
				fmt.Sprintf("%s, the last good value (%s)", last, observedAt.UTC().Format(time.RFC3339)))
		}
	}
	return "", ""
}

func wrongSide(name Operation, value Decimal, permille int64, from string) string {
	return fmt.Sprintf("%s %s is more than %s %% from %s", name, value, percent(permille), from)
}

// misplaced returns a text if a candidate with only one side may be the result of confusing buy and sell, or else "".
// (With both sides, defect detects the confusion: buy is above sell.) A lone buy price may be misplaced if it reaches
// the last good sell price, or is nearer to that than to the last good buy price. If there is no last good buy price,
// the market's median takes its place. For a lone sell price, exchange buy and sell in this rule.
func (v *validator) misplaced(c *candidate, market *market) string {
	good, observedAt, ok := v.lastGood(c)
	sides := c.sides()
	if !ok || len(sides) != 1 {
		return ""
	}
	name, value := sides[0].name, sides[0].value
	ownSide, otherSide, crossed := good.buy, good.sell, value.Compare(good.sell) >= 0
	if name == Sell {
		ownSide, otherSide, crossed = good.sell, good.buy, value.Compare(good.buy) <= 0
	}
	if ownSide.IsNull() {
		ownSide = market.median(name, misplacedQuotesMin)
	}
	if otherSide.IsNull() || !crossed && (ownSide.IsNull() || distance(value, ownSide) <= distance(value, otherSide)) {
		return ""
	}
	return fmt.Sprintf("%s %s is the only side and may be the other one, which was %s in the last good value (%s)",
		name, value, otherSide, observedAt.UTC().Format(time.RFC3339))
}

// misplacedQuotesMin is the minimum number of fresh quotes for a median that replaces a missing side of a last good
// value.
const misplacedQuotesMin = 5

func distance(a, b Decimal) int64 {
	if a.units < b.units {
		return b.units - a.units
	}
	return a.units - b.units
}

// lastGood returns the source's newest accepted value and the time of its observation. For a backfill (an observation
// older than the source's newest) it returns the newest history row of the candidate's day or earlier. ok is false if
// there is no value, or if it is older than Rules.LastGoodAgeMax.
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
		row := v.store.findRow(date, c.key)
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

// withCandidates returns the market in which the candidates replace the older quotes of their source. Quotes published
// from other sources stay. Otherwise the values of a source with many institutions would be compared only with each
// other.
func (v *validator) withCandidates(before *market) *market {
	if v.ofOneInstitution() {
		return before // the candidates are compared with the others only
	}
	merged := *before
	merged.buys, merged.sells = slices.Clone(before.buys), slices.Clone(before.sells)
	for i := range v.candidates {
		c := &v.candidates[i]
		first := &v.candidates[c.first]
		if c.reason != "" || c.key.Kind != Commercial || first.inMarket || !v.expiry(c).After(v.refresh.ObservedAt) {
			continue
		}
		fresh := v.store.quote(c.key).freshAt(v.refresh.ObservedAt)
		if fresh != nil && fresh.SourceID != v.refresh.SourceID {
			continue
		}
		first.inMarket = true
		if fresh != nil {
			merged.remove(fresh)
		}
		merged.add(&SourceQuote{Key: c.key, SourceID: v.refresh.SourceID, Buy: c.buy, Sell: c.sell, LastCheckedAt: v.refresh.ObservedAt})
	}
	return &merged
}

func (v *validator) ofOneInstitution() bool {
	for i := range v.candidates {
		if v.candidates[i].key.Institution != v.candidates[0].key.Institution {
			return false
		}
	}
	return true
}

// pastMarket returns the market on the day of a backfill, made from the history rows of that day.
func (v *validator) pastMarket(c *candidate) *market {
	date := historyDate(c.observation.EffectiveDate, v.refresh.ObservedAt)
	if v.past != nil && v.pastDate == date {
		return v.past
	}
	m := &market{}
	for _, row := range v.store.rowsOf(date) {
		if row.Kind == Commercial && row.Precedence != precedenceWithdrawn {
			m.add(&SourceQuote{Key: row.key(), SourceID: row.SourceID, Buy: row.Buy, Sell: row.Sell, LastCheckedAt: row.ObservedAt})
		}
	}
	v.past, v.pastDate = m, date
	return m
}

// freshAt returns the source quote published at a time, or nil if it is stale then. It also returns nil if the quote
// was checked after that time, because a backfill must not be compared with later values.
func (q *quote) freshAt(t time.Time) *SourceQuote {
	published := q.published(t)
	if published == nil || published.staleAt(t) || published.LastCheckedAt.After(t) {
		return nil
	}
	return published
}

// offMarket refuses a commercial price too far from the median of the other institutions. If the source repeats its
// current value, only quotes checked since that value appeared count: in a devaluation, the first institutions that
// move are right. For a reference rate see referenceOffMarket.
func (v *validator) offMarket(c *candidate, market *market) (Reason, string) {
	if c.key.Kind != Commercial {
		return v.referenceOffMarket(c, market)
	}
	u := v.measure(c)
	if !c.backfill && c.last != nil && c.repeats(c.last) {
		u.since = c.last.CollectedAt
	}
	if detail := market.contradicted(u, bidAsk{c.buy, c.sell}); detail != "" {
		return OffMarket, detail
	}
	return "", ""
}

// offReference refuses a commercial price too far from the currency's newest reference rate.
func (v *validator) offReference(c *candidate, market *market) (Reason, string) {
	var reference bidAsk
	switch {
	case c.key.Kind != Commercial:
		return "", ""
	case c.backfill:
		reference = v.pastReference(c)
	case market.reference != nil:
		reference = bidAsk{market.reference.Buy, market.reference.Sell}
	}
	if detail := offReference(bidAsk{c.buy, c.sell}, reference, v.rules); detail != "" {
		return OutOfBand, detail
	}
	return "", ""
}

// referenceOffMarket refuses a reference rate too far from the price on which the market agrees (market.consensus). If
// accepted, the rate would cause the withdrawal of all quotes near that price.
func (v *validator) referenceOffMarket(c *candidate, market *market) (Reason, string) {
	if v.rules.ReferencePermille == 0 {
		return "", ""
	}
	for _, side := range c.sides() {
		if median, ok := market.consensus(side.name, v.rules); ok && !within(side.value, median, v.rules.ReferencePermille) {
			return OffMarket, wrongSide(side.name, side.value, v.rules.ReferencePermille, median.String()+", on which the institutions agree")
		}
	}
	return "", ""
}

// agreed reports whether enough institutions (Rules.MedianQuotesMin) have a value similar to a new reference rate, each
// in a different source. Refused values count too: if the old reference rate is wrong, it has refused right values.
func (v *validator) agreed(c *candidate) bool {
	return v.similar(c) >= v.rules.MedianQuotesMin
}

func offReference(value, reference bidAsk, rules Rules) string {
	if rules.ReferencePermille == 0 {
		return ""
	}
	for _, name := range []Operation{Buy, Sell} {
		side, base := value.of(name), reference.of(name)
		if base.IsNull() { // then the other side is the reference rate
			base = bidAsk{reference.sell, reference.buy}.of(name)
		}
		if !side.IsNull() && !base.IsNull() && !within(side, base, rules.ReferencePermille) {
			return wrongSide(name, side, rules.ReferencePermille, base.String()+", the reference rate")
		}
	}
	return ""
}

// referenceDays is the maximum age of the reference rate for a backfilled value, in days.
const referenceDays = 31

// pastReference returns the newest reference rate of a backfill's day or earlier, or null.
func (v *validator) pastReference(c *candidate) (reference bidAsk) {
	date := historyDate(c.observation.EffectiveDate, v.refresh.ObservedAt)
	for oldest := date - referenceDays; date > oldest && reference == (bidAsk{}); date-- {
		for _, row := range v.store.rowsOf(date) {
			if row.Kind == Reference && row.Precedence != precedenceWithdrawn {
				reference = bidAsk{row.Buy, row.Sell}
			}
		}
	}
	return reference
}

// A source confirms a value without the help of others if it publishes the value sightingsMin times over sightingsSpan.
const (
	sightingsMin  = 3
	sightingsSpan = 24 * time.Hour
	misplacedSpan = 12 * time.Hour // a side that may be misplaced is not confirmed earlier than this
)

// confirmed reports whether an implausible value is accepted after all. Usually the source must have repeated the
// value, and another institution must have a similar one. A refused value of the other institution counts too, because
// in a devaluation all rates move at once. If no other institution has a quote, repetition is enough: sightingsMin
// times over sightingsSpan. The repetitions may also follow later in the same file.
//
// A side that may be misplaced must be repeated for misplacedSpan. Similar values of others prove nothing there,
// because buy and sell prices are similar too. A price list that shows only one side for a weekend is accepted by this
// rule.
func (v *validator) confirmed(c *candidate, before *market, reason Reason, misplaced bool) bool {
	unopposed := v.unopposed(c, before)
	if reason == Jump && unopposed && v.confirmedByFollowing(c) {
		v.notice(c, "the observations that follow confirm it")
		return true
	}
	pending := v.store.quote(c.key).pending.of(v.refresh.SourceID)
	if pending.Sightings == 0 || c.backfill || !pending.ObservedAt.Before(v.refresh.ObservedAt) ||
		pending.ObservedAt.Before(v.refresh.ObservedAt.Add(-v.rules.LastGoodAgeMax)) || !c.near(pending.Buy, pending.Sell, v.repeatPermille()) {
		return false
	}
	if unopposed && pending.Sightings >= sightingsMin-1 && !pending.Since.After(v.refresh.ObservedAt.Add(-sightingsSpan)) {
		v.notice(c, fmt.Sprintf("the source has given it since %s, and no other institution has a quote", pending.Since.Format(time.RFC3339)))
		return true
	}
	if misplaced && pending.Since.After(v.refresh.ObservedAt.Add(-misplacedSpan)) {
		return false
	}
	u := v.measure(c)
	u.since = pending.Since // only quotes checked since the source first gave the value can contradict it
	if c.key.Kind == Commercial && before.contradicted(u, bidAsk{c.buy, c.sell}) != "" {
		return false
	}
	return v.similar(c) > 0
}

// near reports whether each side of a value differs from the candidate's by at most permille (thousandths).
func (c *candidate) near(buy, sell Decimal, permille int64) bool {
	return near(buy, c.buy, permille) && near(sell, c.sell, permille)
}

// repeatPermille is the maximum difference of a value that repeats a refused one.
func (v *validator) repeatPermille() int64 { return v.rules.JumpPermille / 5 }

// unopposed reports whether no other institution has a fresh quote of the candidate's kind. Commercial quotes in the
// day's history count too: when a file is read again, the market contains only later values.
func (v *validator) unopposed(c *candidate, before *market) bool {
	if c.key.Kind == Commercial {
		other := func(p marketPrice) bool { return p.quote.Key.Institution != c.key.Institution }
		for _, m := range []*market{before, v.pastMarket(c)} {
			if slices.ContainsFunc(m.buys, other) || slices.ContainsFunc(m.sells, other) {
				return false
			}
		}
		return true
	}
	return !slices.ContainsFunc(v.store.quotes, func(q *quote) bool {
		return q.key.Kind == c.key.Kind && q.key.Institution != c.key.Institution && q.freshAt(v.refresh.ObservedAt) != nil
	})
}

// confirmedByFollowing reports whether the source's next observations in the same command repeat the value. Together
// with the candidate they must be sightingsMin observations over sightingsSpan.
func (v *validator) confirmedByFollowing(c *candidate) bool {
	sightings := 1
	for i := range v.following {
		refresh := &v.following[i]
		if refresh.SourceID != v.refresh.SourceID {
			continue
		}
		for j := range refresh.Observations {
			o := &refresh.Observations[j]
			if o.Key() != c.key {
				continue
			}
			buy, buyErr := parseSide(o.Buy)
			sell, sellErr := parseSide(o.Sell)
			if buyErr != nil || sellErr != nil || !c.near(buy, sell, v.repeatPermille()) {
				return false
			}
			sightings++
			if sightings >= sightingsMin && !refresh.ObservedAt.Before(v.refresh.ObservedAt.Add(sightingsSpan)) {
				return true
			}
		}
	}
	return false
}

// similar counts the witnesses for the candidate's value: institutions with a quote in the market, or with a value
// waiting for confirmation, that supports it. Such a value is of another institution and from another source, because
// one page can be wrong about two institutions. At least one side is in both.
func (v *validator) similar(c *candidate) int {
	var by witnesses
	oldest := v.refresh.ObservedAt.Add(-v.rules.LastGoodAgeMax)
	check := func(key QuoteKey, source string, value bidAsk) {
		inBoth := !value.buy.IsNull() && !c.buy.IsNull() || !value.sell.IsNull() && !c.sell.IsNull()
		if inBoth && key.Institution != c.key.Institution && source != v.refresh.SourceID &&
			c.near(value.buy, value.sell, v.rules.JumpPermille) {
			by.add(key.Institution, source)
		}
	}
	for _, q := range v.store.quotes {
		if fresh := q.freshAt(v.refresh.ObservedAt); fresh != nil {
			check(q.key, fresh.SourceID, bidAsk{fresh.Buy, fresh.Sell})
		}
		for _, p := range q.pending {
			if !p.ObservedAt.Before(oldest) {
				check(q.key, p.SourceID, bidAsk{p.Buy, p.Sell})
			}
		}
	}
	return by.count()
}

// near reports whether two sides differ by at most permille (thousandths). A null side is near every other side.
func near(a, b Decimal, permille int64) bool {
	return a.IsNull() || b.IsNull() || within(a, b, permille)
}

// event returns the event with the accepted and quarantined observations. It omits observations that change nothing.
func (v *validator) event() *Refreshed {
	event := &Refreshed{Origin: v.origin(), By: v.refresh.By}
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
			if c.changed = v.changesValue(&event.Origin, c.last, &quote); c.changed || v.rechecks(c.last, &quote) {
				if event.Quotes == nil {
					event.Quotes = make([]AcceptedQuote, 0, len(v.candidates)-i)
				}
				event.Quotes = append(event.Quotes, quote)
			}
		}
	}
	return event
}

func (v *validator) origin() Origin {
	return Origin{
		Currency: v.currency, SourceID: v.source.ID, ObservedAt: v.refresh.ObservedAt, Priority: v.source.Priority,
		Manual: v.source.Manual, UpstreamSource: v.source.UpstreamSource,
	}
}

func (v *validator) quarantine(c *candidate, event *Refreshed) {
	o := c.observation
	o.Buy, o.Sell, o.Document = truncateText(o.Buy), truncateText(o.Sell), truncateText(o.Document)
	o.Channel, o.Kind = c.key.Channel, c.key.Kind
	quarantined := Quarantined{
		SourceID: v.source.ID, ObservedAt: v.refresh.ObservedAt, Observation: o, Reason: c.reason, Detail: c.detail,
	}
	if id, found := v.store.quarantineID(&quarantined); found {
		c.quarantineID = id
		return
	}
	quarantined.ID = v.store.lastQuarantineID + uint64(len(event.Quarantined)) + 1
	c.quarantineID = quarantined.ID
	event.Quarantined = append(event.Quarantined, quarantined)
}

func truncateText(text string) string { return text[:min(len(text), sideTextMax)] }

// expiry returns the expiry that the observation states, or else the time of the refresh plus Source.Lifetime. A stated
// expiry may be in the past; the quote is then published as stale.
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
func (v *validator) changesValue(from *Origin, last *SourceQuote, quote *AcceptedQuote) bool {
	if !quote.Backfill {
		return last == nil || !last.sameValue(quote)
	}
	row := historyRow(from, quote)
	old := v.store.findRow(row.Date, quote.Key)
	return v.store.retains(row.Date, row.Kind) && (old == nil || row.replaces(old))
}

// rechecks reports whether the quote confirms the last value at a later time or with another expiry.
func (v *validator) rechecks(last *SourceQuote, quote *AcceptedQuote) bool {
	return last != nil && !quote.Backfill &&
		(v.refresh.ObservedAt.After(last.LastCheckedAt) || !last.ExpiresAt.Equal(quote.ExpiresAt))
}

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
		decision.add(v.store, &Refreshed{Origin: Origin{Currency: v.currency, SourceID: quote.SourceID, ObservedAt: at}, Quarantined: []Quarantined{quarantined}})
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
