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
	return SplitPaced(catalogue, refreshes, nil)
}

// SplitPaced is Split for whoever must not keep others waiting: it calls pause between small pieces of the work.
func SplitPaced(catalogue *Catalogue, refreshes []Refresh, pause func()) (map[string][]Part, []Refusal) {
	s := splitter{parts: map[string][]Part{}, said: map[string]int{}}
	var refused []Refusal
	p := pace{pause: pause, piece: pieceMax}
	heardIn := make([]int, len(refreshes)) // how many currencies each refresh speaks of
	for from := range refreshes {
		refresh := &refreshes[from]
		s.begin(refresh, from)
		for index := range refresh.Observations {
			p.step(1)
			observation := &refresh.Observations[index]
			if reason, detail := unfit(catalogue, refresh, observation); reason != "" {
				refused = append(refused, Refusal{
					Refresh: from, Index: index, Observation: *observation, Reason: reason, Detail: detail,
				})
				continue
			}
			if s.place(observation, index) {
				heardIn[from]++
			}
		}
	}
	for _, list := range s.parts {
		for i := range list {
			list[i].Refresh.currencies = heardIn[list[i].From]
		}
	}
	return s.parts, refused
}

// splitter gathers the parts by currency.
type splitter struct {
	parts   map[string][]Part
	refresh *Refresh
	from    int
	said    map[string]int // observations of the refresh by currency: the room that their part needs
}

func (s *splitter) begin(refresh *Refresh, from int) {
	s.refresh, s.from = refresh, from
	clear(s.said)
	for i := range refresh.Observations {
		s.said[refresh.Observations[i].Currency]++
	}
}

// place reports that the observation is the first of its currency.
func (s *splitter) place(o *Observation, index int) (first bool) {
	parts := s.parts[o.Currency]
	if first = len(parts) == 0 || parts[len(parts)-1].From != s.from; first {
		part := Part{Refresh: *s.refresh, From: s.from, Index: make([]int, 0, s.said[o.Currency])}
		part.Refresh.Observations = make([]Observation, 0, s.said[o.Currency])
		parts = append(parts, part)
		s.parts[o.Currency] = parts
	}
	last := &parts[len(parts)-1]
	last.Refresh.Observations = append(last.Refresh.Observations, *o)
	last.Index = append(last.Index, index)
	return first
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
