package engine

import "fmt"

// Part is what one refresh says of one currency, with the positions of its observations in the refresh.
type Part struct {
	Refresh Refresh
	From    int   // which refresh
	Index   []int // Index[i] is where Refresh.Observations[i] stood
}

// Split sorts refreshes by currency, in their order, and refuses what no book can file: unknown institutions and currencies, and
// fields that break their form. It calls pause, which may be nil, between small pieces of the work.
func Split(catalogue *Catalogue, refreshes []Refresh, pause func()) (map[string][]Part, []Refusal) {
	all := map[string][]Part{}
	var refused []Refusal
	p := pace{pause: pause, piece: pieceMax}
	for from := range refreshes {
		refresh := &refreshes[from]
		parts := map[string]*Part{}
		for index := range refresh.Observations {
			p.step(1)
			observation := &refresh.Observations[index]
			if reason, detail := unfit(catalogue, refresh, observation); reason != "" {
				refused = append(refused, Refusal{
					Refresh: from, Index: index, Observation: *observation, Reason: reason, Detail: detail,
				})
				continue
			}
			part := parts[observation.Currency]
			if part == nil {
				part = &Part{Refresh: *refresh, From: from}
				part.Refresh.Observations = nil
				parts[observation.Currency] = part
			}
			part.Refresh.Observations = append(part.Refresh.Observations, *observation)
			part.Index = append(part.Index, index)
		}
		for currency, part := range parts {
			part.Refresh.currencies = len(parts)
			all[currency] = append(all[currency], *part)
		}
	}
	return all, refused
}

func unfit(catalogue *Catalogue, refresh *Refresh, o *Observation) (Reason, string) {
	if refresh.SourceID == "" || len(refresh.SourceID) > InstitutionIDMax {
		return BadField, fmt.Sprintf("sourceId must have 1 to %d characters", InstitutionIDMax)
	}
	if refresh.ObservedAt.IsZero() {
		return BadField, "observedAt is missing"
	}
	key := o.Key()
	if _, ok := ParseChannel(string(key.Channel)); !ok {
		return BadField, fmt.Sprintf("channel %q is none of %v", o.Channel, Channels())
	}
	if _, ok := ParseKind(string(key.Kind)); !ok {
		return BadField, fmt.Sprintf("kind %q is none of %v", o.Kind, Kinds())
	}
	if _, known := catalogue.Institution(o.InstitutionID); !known {
		return UnknownInstitution, fmt.Sprintf("institution %q is not in the catalogue; add it with a catalogue file", o.InstitutionID)
	}
	if _, known := catalogue.Currency(o.Currency); !known {
		return UnknownCurrency, fmt.Sprintf("currency %q is not in the catalogue; add it with a catalogue file", o.Currency)
	}
	return "", ""
}
