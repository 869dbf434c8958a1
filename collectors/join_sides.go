package collectors

import "github.com/tasard/tasard/engine"

// joinSides puts the two sides of one quote together where a source says them apart, as on two pages. Nothing else is
// changed: who says one side twice is left to the engine, which refuses to choose. The given slice stays as it is.
func joinSides(observations []engine.Observation) []engine.Observation {
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

// otherSide is the observation that has the side which this one lacks, and lacks the side which this one has; nil when there
// is none.
func otherSide(among []engine.Observation, o *engine.Observation) *engine.Observation {
	if (o.Buy == "") == (o.Sell == "") {
		return nil
	}
	for i := range among {
		own := &among[i]
		if (own.Buy == "") != (o.Buy == "") && (own.Sell == "") != (o.Sell == "") && own.Currency == o.Currency &&
			own.Key() == o.Key() && own.EffectiveDate == o.EffectiveDate && own.PublishedAt.Equal(o.PublishedAt) {
			return own
		}
	}
	return nil
}
