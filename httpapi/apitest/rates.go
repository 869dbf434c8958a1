package apitest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// Rate is what an institution publishes. Sides are decimal texts, as a source writes them; an empty one is null.
type Rate struct {
	Institution, Currency string
	Buy, Sell             string // compra and venta: what the institution pays, and what it asks
	Channel               engine.Channel
	Kind                  engine.Kind
	Source                string    // "" = the institution's id and "-test"
	EffectiveDate         string    // YYYY-MM-DD, "" = not stated
	PublishedAt           time.Time // zero = not stated
	ExpiresAt             time.Time // zero = after the source's own span, 26 h unless the catalogue says otherwise
}

func (r *Rate) source() string {
	if r.Source == "" {
		return r.Institution + "-test"
	}
	return r.Source
}

// refreshes are the rates as their sources say them at an instant, in the order of the sources' first words.
func refreshes(rates []Rate, at time.Time) ([]engine.Refresh, error) {
	var list []engine.Refresh
	for i := range rates {
		r := &rates[i]
		effective, err := dateOf(r.EffectiveDate)
		if err != nil {
			return nil, fmt.Errorf("rate %d, of %s: EffectiveDate: %w", i, r.Institution, err)
		}
		source := r.source()
		found := slices.IndexFunc(list, func(refresh engine.Refresh) bool { return refresh.SourceID == source })
		if found < 0 {
			found, list = len(list), append(list, engine.Refresh{SourceID: source, ObservedAt: at})
		}
		list[found].Observations = append(list[found].Observations, engine.Observation{
			InstitutionID: r.Institution, Currency: r.Currency, Channel: r.Channel, Kind: r.Kind, Buy: r.Buy, Sell: r.Sell,
			EffectiveDate: effective, PublishedAt: r.PublishedAt, ExpiresAt: r.ExpiresAt,
		})
	}
	return list, nil
}

func dateOf(text string) (engine.Date, error) {
	if text == "" {
		return 0, nil
	}
	return engine.ParseDate(text)
}

// refused is the error of what was not published, nil when all was.
func refused(receipt *engine.Receipt) error {
	if len(receipt.Refused) == 0 {
		return nil
	}
	var lines []string
	for i := range receipt.Refused {
		r := &receipt.Refused[i]
		o := &r.Observation
		lines = append(lines, fmt.Sprintf("%s %s %s / %s: %s: %s", o.InstitutionID, o.Currency, o.Buy, o.Sell, r.Reason, r.Detail))
	}
	return fmt.Errorf("%d of the rates are not published, by the rules of the node: %s", len(lines), strings.Join(lines, "; "))
}

// said is an offer as its source would say it again.
func said(currency string, offer *engine.Offer) engine.Observation {
	return engine.Observation{
		InstitutionID: offer.Key.Institution, Currency: currency, Channel: offer.Key.Channel, Kind: offer.Key.Kind,
		Buy: offer.Buy.String(), Sell: offer.Sell.String(), EffectiveDate: offer.EffectiveDate, PublishedAt: offer.PublishedAt,
	}
}

// again are refreshes in which the sources of the offers that match say what they said before. Of a match that expires
// at an instant, that instant goes with it.
func again(states []engine.BookState, at, expires time.Time, match func(currency string, offer *engine.Offer) bool) []engine.Refresh {
	bySource := map[string]*engine.Refresh{}
	var order []string
	for _, state := range states {
		for i := range state.Offers {
			offer := &state.Offers[i]
			if !match(state.Currency, offer) {
				continue
			}
			refresh := bySource[offer.SourceID]
			if refresh == nil {
				refresh = &engine.Refresh{SourceID: offer.SourceID, ObservedAt: at}
				bySource[offer.SourceID], order = refresh, append(order, offer.SourceID)
			}
			o := said(state.Currency, offer)
			o.ExpiresAt = expires
			refresh.Observations = append(refresh.Observations, o)
		}
	}
	slices.Sort(order)
	list := make([]engine.Refresh, 0, len(order))
	for _, source := range order {
		list = append(list, *bySource[source])
	}
	return list
}
