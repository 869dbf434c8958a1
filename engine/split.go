package engine

import "fmt"

// Part is what one refresh says of one currency, with the positions of its observations in the refresh.
type Part struct {
	Refresh Refresh
	From    int   // which refresh
	Index   []int // Index[i] is where Refresh.Observations[i] stood
}

// Split sorts refreshes by currency, in their order, and refuses what no book can file: unknown institutions and currencies, and
// fields that break their form.
func Split(catalogue *Catalogue, refreshes []Refresh) (map[string][]Part, []Refusal) {
	parts := map[string][]Part{}
	var refused []Refusal
	heardIn := make([]int, len(refreshes)) // how many currencies each refresh speaks of
	for from := range refreshes {
		refresh := &refreshes[from]
		for index, observation := range refresh.Observations {
			if reason, detail := unfit(catalogue, refresh, &observation); reason != "" {
				refused = append(refused, Refusal{
					Refresh: from, Index: index, Observation: observation, Reason: reason, Detail: detail,
				})
				continue
			}
			known := len(parts[observation.Currency])
			parts[observation.Currency] = place(parts[observation.Currency], refresh, from, index)
			heardIn[from] += len(parts[observation.Currency]) - known
		}
	}
	for _, list := range parts {
		for i := range list {
			list[i].Refresh.currencies = heardIn[list[i].From]
		}
	}
	return parts, refused
}

func place(parts []Part, refresh *Refresh, from, index int) []Part {
	if len(parts) == 0 || parts[len(parts)-1].From != from {
		part := Part{Refresh: *refresh, From: from}
		part.Refresh.Observations = nil
		parts = append(parts, part)
	}
	last := &parts[len(parts)-1]
	last.Refresh.Observations = append(last.Refresh.Observations, refresh.Observations[index])
	last.Index = append(last.Index, index)
	return parts
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
