package collectors

import "github.com/tasard/tasard/engine"

// joinSides joins the two sides of a quote that a source publishes separately, as on two pages. A side that is given
// twice is left to the engine, which refuses to choose. The slice is not changed.
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

// otherSide returns the observation that has exactly the side that o lacks, or nil.
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
