package engine

import (
	"fmt"
	"maps"
	"slices"
)

// CurrencyRefresh is one currency's part of a refresh (all observations of one source at one time).
type CurrencyRefresh struct {
	Refresh          Refresh
	RefreshIndex     int   // index of the whole refresh
	ObservationIndex []int // for each of Refresh.Observations, its index in the whole refresh
}

// SplitByCurrency groups the observations of refreshes by currency and keeps their order. It refuses observations of
// unknown institutions or currencies, and observations with malformed fields.
func SplitByCurrency(catalogue *Catalogue, refreshes []Refresh) (map[string][]CurrencyRefresh, []Refusal) {
	byCurrency := map[string][]CurrencyRefresh{}
	var refused []Refusal
	for i := range refreshes {
		refresh := &refreshes[i]
		parts := map[string]*CurrencyRefresh{}
		for index := range refresh.Observations {
			observation := &refresh.Observations[index]
			if reason, detail := invalid(catalogue, refresh, observation); reason != "" {
				refused = append(refused, Refusal{
					Refresh: i, Index: index, Observation: *observation, Reason: reason, Detail: detail,
				})
				continue
			}
			part := parts[observation.Currency]
			if part == nil {
				part = &CurrencyRefresh{Refresh: *refresh, RefreshIndex: i}
				part.Refresh.Observations = nil
				parts[observation.Currency] = part
			}
			part.Refresh.Observations = append(part.Refresh.Observations, *observation)
			part.ObservationIndex = append(part.ObservationIndex, index)
		}
		for i, currency := range slices.Sorted(maps.Keys(parts)) {
			part := parts[currency]
			part.Refresh.currencies = len(parts)
			if i > 0 {
				part.Refresh.Baseline = "" // the first currency keeps it
			}
			byCurrency[currency] = append(byCurrency[currency], *part)
		}
	}
	return byCurrency, refused
}

func invalid(catalogue *Catalogue, refresh *Refresh, o *Observation) (Reason, string) {
	if refresh.SourceID == "" || len(refresh.SourceID) > InstitutionIDMax {
		return BadField, fmt.Sprintf("sourceId must have 1 to %d characters", InstitutionIDMax)
	}
	if refresh.ObservedAt.IsZero() {
		return BadField, "observedAt is missing"
	}
	key := o.Key()
	if _, ok := ParseChannel(string(key.Channel)); !ok {
		return BadField, fmt.Sprintf("channel %q is unknown; use one of %v", o.Channel, Channels())
	}
	if _, ok := ParseKind(string(key.Kind)); !ok {
		return BadField, fmt.Sprintf("kind %q is unknown; use one of %v", o.Kind, Kinds())
	}
	if _, known := catalogue.Institution(o.InstitutionID); !known {
		return UnknownInstitution, fmt.Sprintf("institution %q is not in the catalogue; add it with a catalogue file", o.InstitutionID)
	}
	if _, known := catalogue.Currency(o.Currency); !known {
		return UnknownCurrency, fmt.Sprintf("currency %q is not in the catalogue; add it with a catalogue file", o.Currency)
	}
	return "", ""
}
