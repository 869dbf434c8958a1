package engine

import "cmp"

// plausible is what is believed of the source's values of an effective date, or of the day of the refresh when there is none (X17):
// the source's own bound with the earliest end that is not before the date, what it leaves open being as usual.
func (j *validator) plausibleRange(effective Date) *PlausibleRange {
	if len(j.source.PlausibleRanges) == 0 {
		return &j.defaultRange
	}
	if effective.IsZero() {
		effective = DateOf(j.refresh.ObservedAt)
	}
	var chosen *PlausibleRange
	for i := range j.source.PlausibleRanges {
		b := &j.source.PlausibleRanges[i]
		if b.Currency == j.currency && b.lastDate() >= effective && (chosen == nil || b.lastDate() < chosen.lastDate()) {
			chosen = b
		}
	}
	if chosen == nil {
		return &j.defaultRange
	}
	return chosen.withDefaults(&j.defaultRange)
}

// lastDate is the last date of the bound, the last of all without one.
func (b *PlausibleRange) lastDate() Date {
	if b.Until.IsZero() {
		return dateMax
	}
	return b.Until
}

// withDefaults is the bound with what it leaves open filled in.
func (b *PlausibleRange) withDefaults(usual *PlausibleRange) *PlausibleRange {
	full := *b
	if full.Lowest.IsNull() {
		full.Lowest = usual.Lowest
	}
	if full.Highest.IsNull() {
		full.Highest = usual.Highest
	}
	full.JumpPermille = cmp.Or(full.JumpPermille, usual.JumpPermille)
	return &full
}
