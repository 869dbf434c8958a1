package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// clockSkewMax is how far in the future an observation may be, because the clocks of machines differ.
const clockSkewMax = 5 * time.Minute

// validator checks one refresh (all observations of one source at one time). The result does not depend on the order of
// the observations.
type validator struct {
	currency     string
	defaultRange PlausibleRange // plausible values according to the currency and the rules
	rules        Rules
	store        *quoteStore
	source       Source
	refresh      Refresh
	now          time.Time

	following    []Refresh // later refreshes of the same command
	notices      []Notice
	past         *market // cached result of pastMarket for pastDate; nil at first
	pastDate     Date
	candidates   []candidate
	firstOfQuote map[QuoteKey]int // index of each quote's first candidate
}

// candidate is an observation being checked.
type candidate struct {
	observation  Observation
	key          QuoteKey
	first        int          // index of the first candidate with the same key
	last         *SourceQuote // the source's newest accepted quote with this key, or nil
	buy, sell    Decimal
	plausible    *PlausibleRange
	unreadable   error  // parse error of either side
	backfill     bool   // observed before last, so only for the history
	reason       Reason // "" unless refused
	detail       string
	quarantineID uint64
	changed      bool // accepted, and differs from the current value or history row

	// The fields below describe all candidates with the same key. They are set only in the first such candidate.
	contradictory bool // the candidates have different values
	accepted      bool // at least one candidate is accepted
	inMarket      bool // the market (withCandidates) contains one of the candidates
	inEvent       bool // the event of the refresh contains a quote with the key
}

func newValidator(c *CurrencyState, refresh *Refresh, now time.Time) *validator {
	count := len(refresh.Observations)
	v := &validator{
		currency: c.currency, rules: c.rules, store: c.store, refresh: *refresh, now: now, source: c.catalogue.Source(refresh.SourceID),
		candidates: make([]candidate, count), firstOfQuote: make(map[QuoteKey]int, count),
	}
	v.defaultRange.JumpPermille = c.rules.JumpPermille
	if currency, known := c.catalogue.Currency(c.currency); known {
		v.defaultRange.Lowest, v.defaultRange.Highest = currency.Lowest, currency.Highest
	}
	v.refresh.ObservedAt = PlainUTC(v.observedAt(refresh))
	for i := range refresh.Observations {
		v.read(i, &refresh.Observations[i])
	}
	return v
}

// observedAt returns the time of a refresh. For an operator's refresh it is never before the operator's previous one:
// a new manual rate must replace the old one even if the clock was set back, or runs behind another node's clock.
func (v *validator) observedAt(refresh *Refresh) time.Time {
	at := refresh.ObservedAt
	if refresh.By == "" {
		return at
	}
	for i := range refresh.Observations {
		last := v.store.quote(refresh.Observations[i].Key()).sourceQuotes.of(refresh.SourceID)
		if last != nil && at.Before(last.LastCheckedAt) {
			at = last.LastCheckedAt
		}
	}
	return at
}

func (v *validator) read(i int, observation *Observation) {
	c := &v.candidates[i]
	c.observation, c.key, c.plausible = *observation, observation.Key(), v.plausibleRange(observation.EffectiveDate)
	c.observation.PublishedAt, c.observation.ExpiresAt = PlainUTC(observation.PublishedAt), PlainUTC(observation.ExpiresAt)
	var buyErr, sellErr error
	c.buy, buyErr = parseSide(observation.Buy)
	c.sell, sellErr = parseSide(observation.Sell)
	c.unreadable = errors.Join(buyErr, sellErr)
	first, repeated := v.firstOfQuote[c.key]
	if !repeated {
		first = i
		v.firstOfQuote[c.key] = i
	}
	c.first, c.last = first, v.store.quote(c.key).sourceQuotes.of(v.refresh.SourceID)
	c.backfill = c.last != nil && v.refresh.ObservedAt.Before(c.last.LastCheckedAt)
}

// PlainUTC removes the location and the monotonic clock reading, so that equal times are equal values after a replay.
func PlainUTC(t time.Time) time.Time { return t.Round(0).UTC() }

// parseSide parses a source's text for a side. An empty text is null. A leading zero, as in 057.5, is an error, because
// the source has probably lost a digit.
func parseSide(text string) (Decimal, error) {
	switch {
	case text == "":
		return Decimal{}, nil
	case len(text) > 1 && text[0] == '0' && text[1] != '.':
		return Decimal{}, fmt.Errorf("%w: %.*q begins with a zero", ErrDecimal, sideTextMax, text)
	}
	return ReadDecimal(text)
}

func (v *validator) validate() *Refreshed {
	for i := range v.candidates {
		c := &v.candidates[i]
		c.refuse(c.defect())
		c.refuse(v.outOfRange(c))
		if !v.rules.EqualSides {
			c.refuse(c.sameSides())
		}
		c.refuse(v.inFuture(c))
		c.refuse(v.outdated(c))
	}
	v.checkAgreement()
	v.checkCompleteness()
	v.checkPlausibility()
	return v.event()
}

// refuse refuses the candidate, unless the reason is "" or the candidate is already refused.
func (c *candidate) refuse(reason Reason, detail string) {
	if c.reason == "" {
		c.reason, c.detail = reason, detail
	}
}

// defect refuses values that can't be a rate on any market.
func (c *candidate) defect() (Reason, string) {
	buy, sell := truncateText(c.observation.Buy), truncateText(c.observation.Sell)
	switch {
	case strings.HasPrefix(buy, "-") && len(buy) > 1 || strings.HasPrefix(sell, "-") && len(sell) > 1:
		return Negative, fmt.Sprintf("a side is negative: buy %q, sell %q", buy, sell)
	case c.unreadable != nil:
		return Unparsable, strings.ReplaceAll(c.unreadable.Error(), "\n", "; ")
	case c.buy.IsNull() && c.sell.IsNull():
		return NoSide, "neither buy nor sell is given"
	case c.buy.IsZero() || c.sell.IsZero():
		return Zero, fmt.Sprintf("a side is zero: buy %q, sell %q", buy, sell)
	case !c.buy.IsNull() && !c.sell.IsNull() && c.buy.Compare(c.sell) > 0:
		return Crossed, fmt.Sprintf("buy %s is above sell %s", c.buy, c.sell)
	}
	return "", ""
}

// sameSides refuses equal buy and sell prices of a commercial quote, because institutions trade with a margin. The
// prices of a reference rate may be equal, unless the source always publishes different ones (SidesDiffer).
func (c *candidate) sameSides() (Reason, string) {
	if (c.key.Kind == Commercial || c.plausible.SidesDiffer) && !c.buy.IsNull() && !c.sell.IsNull() && c.buy.Compare(c.sell) == 0 {
		return SameSides, fmt.Sprintf("buy and sell are both %s: one of them was read twice", c.buy)
	}
	return "", ""
}

func (v *validator) outOfRange(c *candidate) (Reason, string) {
	lowest, highest := c.plausible.Lowest, c.plausible.Highest
	for _, side := range c.sides() {
		low := !lowest.IsNull() && side.value.Compare(lowest) < 0
		high := !highest.IsNull() && side.value.Compare(highest) > 0
		if low || high {
			return OutOfBand, fmt.Sprintf("%s %s is outside the band of %s, %s to %s", side.name, side.value, v.currency, lowest, highest)
		}
	}
	return "", ""
}

// side is one side of a quote: the price at which the institution buys, or the price at which it sells.
type side struct {
	name  Operation
	value Decimal
}

// bidAsk is both sides of a quote. Either may be null.
type bidAsk struct{ buy, sell Decimal }

func (b bidAsk) of(name Operation) Decimal {
	if name == Sell {
		return b.sell
	}
	return b.buy
}

// sides returns the sides that are not null.
func (c *candidate) sides() []side {
	all := [...]side{{Buy, c.buy}, {Sell, c.sell}}
	return slices.DeleteFunc(all[:], func(s side) bool { return s.value.IsNull() })
}

func (v *validator) inFuture(c *candidate) (Reason, string) {
	if future := v.futureTime(); !future.IsZero() {
		return FutureDate, fmt.Sprintf("observed or scheduled at %s, but it is only %s",
			future.UTC().Format(time.RFC3339), v.now.UTC().Format(time.RFC3339))
	}
	if latest := DateOf(v.refresh.ObservedAt).AddDays(v.rules.FutureDaysMax); c.observation.EffectiveDate > latest {
		return FutureDate, fmt.Sprintf("effective on %s, more than %d days after it was observed",
			c.observation.EffectiveDate, v.rules.FutureDaysMax)
	}
	return "", ""
}

// outdated refuses an effective date earlier than the one in the source's newest quote, for example from yesterday's
// file. Exception: a source may correct an effective date that is still in the future.
func (v *validator) outdated(c *candidate) (Reason, string) {
	date, today := c.observation.EffectiveDate, DateOf(v.refresh.ObservedAt)
	if c.last == nil || c.backfill || date.IsZero() || date >= c.last.EffectiveDate || c.last.EffectiveDate > today {
		return "", ""
	}
	return Outdated, fmt.Sprintf("effective on %s, but the source gave %s before", date, c.last.EffectiveDate)
}

// futureTime returns the later of the refresh's ObservedAt and Slot (scheduled time) if it is in the future, else zero.
// If a future Slot got into the log, the source's scheduled refreshes would be ignored until that time.
func (v *validator) futureTime() time.Time {
	latest := v.refresh.ObservedAt
	if v.refresh.Slot.After(latest) {
		latest = v.refresh.Slot
	}
	if latest.After(v.now.Add(clockSkewMax)) {
		return latest
	}
	return time.Time{}
}

// checkAgreement refuses all candidates with the same key if their values or dates differ.
func (v *validator) checkAgreement() {
	readable := make([]*candidate, len(v.candidates)) // first readable candidate of each quote
	for i := range v.candidates {
		c := &v.candidates[i]
		if c.unreadable != nil {
			continue
		}
		other := readable[c.first]
		if other == nil {
			readable[c.first] = c
			continue
		}
		if !other.buy.Equal(c.buy) || !other.sell.Equal(c.sell) || other.observation.EffectiveDate != c.observation.EffectiveDate {
			v.candidates[c.first].contradictory = true
		}
	}
	for i := range v.candidates {
		if c := &v.candidates[i]; v.candidates[c.first].contradictory {
			c.refuse(Disagreement, "the refresh has different values for "+c.key.ID(v.currency))
		}
	}
}

// checkCompleteness refuses all candidates of a Complete refresh that lacks over half of the source's current quotes.
func (v *validator) checkCompleteness() {
	if !v.refresh.Complete {
		return
	}
	for i := range v.candidates {
		if c := &v.candidates[i]; c.reason == "" {
			v.candidates[c.first].accepted = true
		}
	}
	current, lost := 0, 0
	for _, q := range v.store.quotes {
		last := q.sourceQuotes.of(v.refresh.SourceID)
		if last == nil || last.staleAt(v.refresh.ObservedAt) {
			continue
		}
		current++
		if first, found := v.firstOfQuote[q.key]; !found || !v.candidates[first].accepted {
			lost++
		}
	}
	if lost*2 <= current {
		return
	}
	for i := range v.candidates {
		v.candidates[i].refuse(ThinRefresh, fmt.Sprintf("the refresh lacks %d of the source's %d current quotes", lost, current))
	}
}

// report adds the refused candidates to a receipt, and counts the accepted ones. refresh is the index of the refresh.
func (v *validator) report(receipt *Receipt, refresh int) {
	receipt.Notices = append(receipt.Notices, v.notices...)
	for i := range v.candidates {
		c := &v.candidates[i]
		if c.reason != "" {
			receipt.Refused = append(receipt.Refused, Refusal{
				Refresh: refresh, Index: i, Observation: c.observation, Reason: c.reason, Detail: c.detail, QuarantineID: c.quarantineID,
			})
			continue
		}
		receipt.Accepted++
		if c.changed {
			receipt.Changed++
		}
	}
}

// notice tells the operator that an implausible value was accepted.
func (v *validator) notice(c *candidate, why string) {
	v.notices = append(v.notices, Notice{
		RateID: c.key.ID(v.currency), SourceID: v.source.ID, Text: fmt.Sprintf("accepted buy %s, sell %s after a step: %s", c.buy, c.sell, why),
	})
}

// plausibleRange returns the range of plausible values for an effective date. For a zero date it takes the day of the
// refresh. Of the source's ranges that end on or after the date, it chooses the one that ends first. Limits missing in
// that range come from the default range (the limits in Currency and Rules).
func (v *validator) plausibleRange(effective Date) *PlausibleRange {
	if len(v.source.PlausibleRanges) == 0 {
		return &v.defaultRange
	}
	if effective.IsZero() {
		effective = DateOf(v.refresh.ObservedAt)
	}
	var chosen *PlausibleRange
	for i := range v.source.PlausibleRanges {
		r := &v.source.PlausibleRanges[i]
		if r.Currency == v.currency && r.lastDate() >= effective && (chosen == nil || r.lastDate() < chosen.lastDate()) {
			chosen = r
		}
	}
	if chosen == nil {
		return &v.defaultRange
	}
	return chosen.withDefaults(&v.defaultRange)
}

func (r *PlausibleRange) lastDate() Date { return cmp.Or(r.Until, dateMax) }

func (r *PlausibleRange) withDefaults(defaults *PlausibleRange) *PlausibleRange {
	result := *r
	if result.Lowest.IsNull() {
		result.Lowest = defaults.Lowest
	}
	if result.Highest.IsNull() {
		result.Highest = defaults.Highest
	}
	result.JumpPermille = cmp.Or(result.JumpPermille, defaults.JumpPermille)
	return &result
}
