package apitest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// Rate is a rate that an institution publishes. Buy and Sell are decimal texts; "" = not published.
type Rate struct {
	Institution   string         `json:"institution"`
	Currency      string         `json:"currency"`
	Buy           string         `json:"buy"`  // compra: the institution pays it
	Sell          string         `json:"sell"` // venta: the institution charges it
	Channel       engine.Channel `json:"channel"`
	Kind          engine.Kind    `json:"kind"`
	Source        string         `json:"source"`        // "" = the institution's id and "-test"
	EffectiveDate string         `json:"effectiveDate"` // YYYY-MM-DD, "" = not stated
	PublishedAt   time.Time      `json:"publishedAt"`   // zero = not stated
	ExpiresAt     time.Time      `json:"expiresAt"`     // zero = by the catalogue, 26 h by default
}

func (r *Rate) source() string {
	if r.Source == "" {
		return r.Institution + "-test"
	}
	return r.Source
}

// refreshes groups rates by source, in the order in which the sources first occur.
func refreshes(rates []Rate, at time.Time) ([]engine.Refresh, error) {
	var list []engine.Refresh
	for i := range rates {
		r := &rates[i]
		effective, err := parseDate(r.EffectiveDate)
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

func parseDate(text string) (engine.Date, error) {
	if text == "" {
		return 0, nil
	}
	return engine.ParseDate(text)
}

// refusalError returns an error with the rejected values, or nil if there are none.
func refusalError(receipt *engine.Receipt) error {
	if len(receipt.Refused) == 0 {
		return nil
	}
	var lines []string
	for i := range receipt.Refused[:min(refusalsShown, len(receipt.Refused))] {
		r := &receipt.Refused[i]
		o := &r.Observation
		lines = append(lines, fmt.Sprintf("%s %s %s / %s: %s: %s", o.InstitutionID, o.Currency, o.Buy, o.Sell, r.Reason, r.Detail))
	}
	if more := len(receipt.Refused) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("the node's rules refuse %d of the rates: %s", len(receipt.Refused), strings.Join(lines, "; "))
}

// refusalsShown is the number of refused rates that an error names.
const refusalsShown = 3

// republishedRates returns the published rates that match, to be published again. A zero expires keeps the usual
// lifetime.
func republishedRates(states []engine.SavedCurrency, expires time.Time, match func(currency string, offer *engine.SourceQuote) bool) []Rate {
	var rates []Rate
	for _, state := range states {
		for i := range state.SourceQuotes {
			if o := &state.SourceQuotes[i]; match(state.Currency, o) {
				rates = append(rates, Rate{
					Institution: o.Key.Institution, Currency: state.Currency, Channel: o.Key.Channel, Kind: o.Key.Kind, Buy: o.Buy.String(), Sell: o.Sell.String(),
					Source: o.SourceID, EffectiveDate: o.EffectiveDate.String(), PublishedAt: o.PublishedAt, ExpiresAt: expires,
				})
			}
		}
	}
	slices.SortStableFunc(rates, func(a, b Rate) int { return strings.Compare(a.Source, b.Source) })
	return rates
}
