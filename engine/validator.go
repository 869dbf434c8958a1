package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// clockSkewMax is how far in the future an observation may lie, for machines whose clocks differ.
const clockSkewMax = 5 * time.Minute

// validator decides one refresh of one source (I3). Its verdict does not depend on the order of the observations in it.
type validator struct {
	currency     string
	defaultRange PlausibleRange // the currency's band and the jump limit of the rules
	rules        Rules
	state        *quoteStore
	source       Source
	refresh      Refresh
	now          time.Time
	yielder      *yielder

	candidates   []candidate
	firstOfQuote map[QuoteKey]int // the first candidate of each quote
}

// candidate is one observation on trial.
type candidate struct {
	observation  Observation
	key          QuoteKey
	first        int          // the first candidate of the same quote
	last         *SourceQuote // what the source said of the quote before, nil when nothing
	buy, sell    Decimal
	plausible    *PlausibleRange // what is believed of it; complete
	unreadable   error           // of either side
	backfill     bool
	reason       Reason // "" while it stands
	detail       string
	quarantineID uint64
	changed      bool

	// Of the quote, kept at its first candidate.
	contradictory bool // the source gives different answers
	accepted      bool // one of its candidates stands
	inConsensus   bool // the market has it
	inEvent       bool // the event has it
}

func newValidator(b *CurrencyState, s *quoteStore, refresh *Refresh, now time.Time) *validator {
	said := len(refresh.Observations)
	j := &validator{
		currency: b.currency, rules: b.rules, state: s, refresh: *refresh, now: now, source: b.catalogue.Source(refresh.SourceID),
		yielder: s.yielder, candidates: make([]candidate, said), firstOfQuote: make(map[QuoteKey]int, said),
	}
	j.defaultRange.JumpPermille = b.rules.JumpPermille
	if band, known := b.catalogue.Currency(b.currency); known {
		j.defaultRange.Lowest, j.defaultRange.Highest = band.Lowest, band.Highest
	}
	j.refresh.ObservedAt = plainUTC(refresh.ObservedAt)
	for i := range refresh.Observations {
		j.yielder.step(1)
		j.read(i, &refresh.Observations[i])
	}
	return j
}

// read makes a candidate of an observation.
func (j *validator) read(i int, observation *Observation) {
	c := &j.candidates[i]
	c.observation, c.key, c.plausible = *observation, observation.Key(), j.plausibleRange(observation.EffectiveDate)
	c.observation.PublishedAt, c.observation.ExpiresAt = plainUTC(observation.PublishedAt), plainUTC(observation.ExpiresAt)
	var buyErr, sellErr error
	c.buy, buyErr = readSide(observation.Buy)
	c.sell, sellErr = readSide(observation.Sell)
	c.unreadable = errors.Join(buyErr, sellErr)
	first, repeated := j.firstOfQuote[c.key]
	if !repeated {
		first = i
		j.firstOfQuote[c.key] = i
	}
	c.first, c.last = first, j.state.quote(c.key).sourceQuote(j.refresh.SourceID)
	c.backfill = c.last != nil && j.refresh.ObservedAt.Before(c.last.LastCheckedAt)
}

// candidateOf is the first candidate of a quote, nil when the refresh does not speak of it.
func (j *validator) candidateOf(key QuoteKey) *candidate {
	if i, told := j.firstOfQuote[key]; told {
		return &j.candidates[i]
	}
	return nil
}

// plainUTC is the instant without zone and monotonic reading, so that equal instants are equal values, also after a replay.
func plainUTC(t time.Time) time.Time { return t.Round(0).UTC() }

// Key is the quote that the observation speaks of, with the defaults of channel and kind.
func (o *Observation) Key() QuoteKey {
	key := QuoteKey{o.InstitutionID, o.Channel, o.Kind}
	if key.Channel == "" {
		key.Channel = Unspecified
	}
	if key.Kind == "" {
		key.Kind = Commercial
	}
	return key
}

// readSide reads a side as a source wrote it; an empty one is null. Nobody writes a price as 057.5: a digit before it is lost (X13).
func readSide(text string) (Decimal, error) {
	switch {
	case text == "":
		return Decimal{}, nil
	case len(text) > 1 && text[0] == '0' && text[1] != '.':
		return Decimal{}, fmt.Errorf("%w: %.*q begins with a zero", ErrDecimal, sideTextMax, text)
	}
	return ReadDecimal(text)
}

// validate is the event that the refresh amounts to; without quotes and held observations nothing would change.
func (j *validator) validate() *Refreshed {
	for i := range j.candidates {
		j.yielder.step(1)
		c := &j.candidates[i]
		c.refuse(c.defect())
		c.refuse(j.outOfBand(c))
		c.refuse(c.sameSides())
		c.refuse(j.inFuture(c))
		c.refuse(j.outdated(c))
	}
	j.checkAgreement()
	j.checkCompleteness()
	j.checkPlausibility()
	return j.event()
}

// refuse keeps the first reason.
func (c *candidate) refuse(reason Reason, detail string) {
	if c.reason == "" {
		c.reason, c.detail = reason, detail
	}
}

// defect is what makes an observation no rate at all, whatever the market does.
func (c *candidate) defect() (Reason, string) {
	buy, sell := truncateText(c.observation.Buy), truncateText(c.observation.Sell) // they may be a page
	switch {
	case strings.HasPrefix(buy, "-") && len(buy) > 1 || strings.HasPrefix(sell, "-") && len(sell) > 1:
		return Negative, fmt.Sprintf("a side is negative: buy %q, sell %q", buy, sell)
	case c.unreadable != nil:
		return Unparsable, strings.ReplaceAll(c.unreadable.Error(), "\n", "; ")
	case c.buy.IsNull() && c.sell.IsNull():
		return NoSide, "neither buy nor sell is given"
	case c.buy.IsZero() || c.sell.IsZero():
		return Zero, fmt.Sprintf("a side is zero: buy %q, sell %q", buy, sell)
	case c.crossed():
		return Crossed, fmt.Sprintf("buy %s is above sell %s", c.buy, c.sell)
	}
	return "", ""
}

func (c *candidate) crossed() bool {
	return !c.buy.IsNull() && !c.sell.IsNull() && c.buy.Compare(c.sell) > 0
}

// sameSides holds back one side that was read twice (X14): nobody trades for nothing. What the central bank publishes may be one
// value, unless the bound of the source says that it is two.
func (c *candidate) sameSides() (Reason, string) {
	if (c.key.Kind == Commercial || c.plausible.SidesDiffer) && !c.buy.IsNull() && !c.sell.IsNull() && c.buy.Compare(c.sell) == 0 {
		return SameSides, fmt.Sprintf("buy and sell are both %s: one of them was read twice", c.buy)
	}
	return "", ""
}

func (j *validator) outOfBand(c *candidate) (Reason, string) {
	lowest, highest := c.plausible.Lowest, c.plausible.Highest
	for _, side := range c.sides() {
		low := !lowest.IsNull() && side.value.Compare(lowest) < 0
		high := !highest.IsNull() && side.value.Compare(highest) > 0
		if low || high {
			return OutOfBand, fmt.Sprintf("%s %s is outside the band of %s, %s to %s", side.name, side.value, j.currency, lowest, highest)
		}
	}
	return "", ""
}

// side is one that is present, named as the institution's field is.
type side struct {
	name  Operation
	value Decimal
}

// bidAsk is both sides of a quote; either may be null.
type bidAsk struct{ buy, sell Decimal }

func (p bidAsk) of(name Operation) Decimal {
	if name == Sell {
		return p.sell
	}
	return p.buy
}

// sides are the ones that are present.
func (c *candidate) sides() []side {
	all := [...]side{{Buy, c.buy}, {Sell, c.sell}}
	return slices.DeleteFunc(all[:], func(s side) bool { return s.value.IsNull() })
}

func (j *validator) inFuture(c *candidate) (Reason, string) {
	if ahead := j.futureInstant(); !ahead.IsZero() {
		return FutureDate, fmt.Sprintf("observed or due at %s, but it is only %s",
			ahead.UTC().Format(time.RFC3339), j.now.UTC().Format(time.RFC3339))
	}
	if latest := DateOf(j.refresh.ObservedAt).AddDays(j.rules.FutureDaysMax); c.observation.EffectiveDate > latest {
		return FutureDate, fmt.Sprintf("effective on %s, more than %d days after it was observed",
			c.observation.EffectiveDate, j.rules.FutureDaysMax)
	}
	return "", ""
}

// outdated holds back yesterday's file (X15): the source has named a later date, which has come. An offer that is dated ahead may
// be taken back.
func (j *validator) outdated(c *candidate) (Reason, string) {
	date, today := c.observation.EffectiveDate, DateOf(j.refresh.ObservedAt)
	if c.last == nil || c.backfill || date.IsZero() || date >= c.last.EffectiveDate || c.last.EffectiveDate > today {
		return "", ""
	}
	return Outdated, fmt.Sprintf("effective on %s, but the source has named %s already", date, c.last.EffectiveDate)
}

// futureInstant is the later of the refresh's own moment and its slot when that lies in the future (X11), else zero. Such a slot is not
// remembered: it would silence the source until it comes.
func (j *validator) futureInstant() time.Time {
	at := j.refresh.ObservedAt
	if j.refresh.Slot.After(at) {
		at = j.refresh.Slot
	}
	if at.After(j.now.Add(clockSkewMax)) {
		return at
	}
	return time.Time{}
}

// checkAgreement refuses all of a source's answers on one quote when they are not the same.
func (j *validator) checkAgreement() {
	readable := make([]*candidate, len(j.candidates)) // for each quote the first that can be read
	for i := range j.candidates {
		c := &j.candidates[i]
		if c.unreadable != nil {
			continue
		}
		one := readable[c.first]
		if one == nil {
			readable[c.first] = c
			continue
		}
		if !one.buy.Equal(c.buy) || !one.sell.Equal(c.sell) || one.observation.EffectiveDate != c.observation.EffectiveDate {
			j.candidates[c.first].contradictory = true
		}
	}
	for i := range j.candidates {
		if c := &j.candidates[i]; j.candidates[c.first].contradictory {
			c.refuse(Disagreement, "the source gives different answers for "+c.key.ID(j.currency)+" at the same moment")
		}
	}
}

// checkCompleteness refuses a complete answer that would lose more than half of what the source still stands for.
func (j *validator) checkCompleteness() {
	if !j.refresh.Complete {
		return
	}
	for i := range j.candidates {
		if c := &j.candidates[i]; c.reason == "" {
			j.candidates[c.first].accepted = true
		}
	}
	current, lost := 0, 0
	j.state.eachQuote(func(q *quote) {
		offer := q.sourceQuote(j.refresh.SourceID)
		if offer == nil || offer.staleAt(j.refresh.ObservedAt) {
			return
		}
		current++
		if c := j.candidateOf(q.key); c == nil || !c.accepted {
			lost++
		}
	})
	if lost*2 <= current {
		return
	}
	for i := range j.candidates {
		j.candidates[i].refuse(ThinRefresh, fmt.Sprintf("the answer lacks %d of the %d quotes that the source still has", lost, current))
	}
}

// report adds what was refused to a receipt and counts the rest.
func (j *validator) report(receipt *Receipt, refresh int) (count RefreshCount) {
	for i := range j.candidates {
		c := &j.candidates[i]
		if c.reason != "" {
			receipt.Refused = append(receipt.Refused, Refusal{
				Refresh: refresh, Index: i, Observation: c.observation, Reason: c.reason, Detail: c.detail, QuarantineID: c.quarantineID,
			})
			continue
		}
		count.Accepted++
		if c.changed {
			count.Changed++
		}
	}
	return count
}
