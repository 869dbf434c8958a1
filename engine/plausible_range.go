package engine

import "cmp"

// plausibleRange returns the range for an effective date, or for the day of the refresh when there is none: of the
// source's own ranges the one that ends first on or after the date, completed by the default range.
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
	full := *r
	if full.Lowest.IsNull() {
		full.Lowest = defaults.Lowest
	}
	if full.Highest.IsNull() {
		full.Highest = defaults.Highest
	}
	full.JumpPermille = cmp.Or(full.JumpPermille, defaults.JumpPermille)
	return &full
}
