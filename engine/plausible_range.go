package engine

import "cmp"

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
