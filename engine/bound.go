package engine

import "cmp"

// bound is what is believed of the source's values of an effective date, or of the day of the refresh when there is none (X17):
// the source's own bound with the earliest end that is not before the date, what it leaves open being as usual.
func (j *judge) bound(effective Date) *Bound {
	if len(j.source.Bounds) == 0 {
		return &j.usual
	}
	if effective.IsZero() {
		effective = DateOf(j.refresh.ObservedAt)
	}
	var chosen *Bound
	for i := range j.source.Bounds {
		b := &j.source.Bounds[i]
		if b.Currency == j.currency && b.last() >= effective && (chosen == nil || b.last() < chosen.last()) {
			chosen = b
		}
	}
	if chosen == nil {
		return &j.usual
	}
	return chosen.over(&j.usual)
}

// last is the last date of the bound, the last of all without one.
func (b *Bound) last() Date {
	if b.Until.IsZero() {
		return dateMax
	}
	return b.Until
}

// over is the bound with what it leaves open filled in.
func (b *Bound) over(usual *Bound) *Bound {
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
