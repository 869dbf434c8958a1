package source

import "github.com/tasard/tasard/engine"

// JoinSides joins observations with one side (buy or sell) each of the same quote, for example from two pages. If a
// side occurs twice, two observations of the quote remain, and the engine rejects both. The argument is not changed.
func JoinSides(observations []engine.Observation) []engine.Observation {
	joined := make([]engine.Observation, 0, len(observations))
	for _, o := range observations {
		if partner := otherSide(joined, &o); partner != nil {
			partner.Buy, partner.Sell = partner.Buy+o.Buy, partner.Sell+o.Sell
			continue
		}
		joined = append(joined, o)
	}
	return joined
}

// otherSide returns an observation of o's quote that has only the other side, or nil.
func otherSide(observations []engine.Observation, o *engine.Observation) *engine.Observation {
	if (o.Buy == "") == (o.Sell == "") {
		return nil
	}
	for i := range observations {
		other := &observations[i]
		if (other.Buy == "") != (o.Buy == "") && (other.Sell == "") != (o.Sell == "") && other.Currency == o.Currency &&
			other.Key() == o.Key() && other.EffectiveDate == o.EffectiveDate && other.PublishedAt.Equal(o.PublishedAt) {
			return other
		}
	}
	return nil
}
