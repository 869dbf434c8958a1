package apitest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// Rate is an institution's rate to publish. Buy and Sell are decimal numbers; "" = not published.
type Rate struct {
	Institution   string         `json:"institution"`
	Currency      string         `json:"currency"`
	Buy           string         `json:"buy"`  // compra: the institution's buying price
	Sell          string         `json:"sell"` // venta: the institution's selling price
	Channel       engine.Channel `json:"channel"`
	Kind          engine.Kind    `json:"kind"`
	Source        string         `json:"source"`        // id of the source; "" = the institution's id and "-test"
	EffectiveDate string         `json:"effectiveDate"` // YYYY-MM-DD, "" = not stated
	PublishedAt   time.Time      `json:"publishedAt"`   // zero = not stated
	ExpiresAt     time.Time      `json:"expiresAt"`     // zero = after the lifetime in the catalogue, usually 26 h
}

func (r *Rate) source() string {
	if r.Source == "" {
		return r.Institution + "-test"
	}
	return r.Source
}

// refreshes groups rates by source, in order of appearance. The result has one engine.Refresh for each source.
func refreshes(rates []Rate, at time.Time) ([]engine.Refresh, error) {
	var list []engine.Refresh
	for i := range rates {
		r := &rates[i]
		effective, err := parseDate(r.EffectiveDate)
		if err != nil {
			return nil, fmt.Errorf("rate %d, of %s: EffectiveDate: %w", i, r.Institution, err)
		}
		source := r.source()
		index := slices.IndexFunc(list, func(refresh engine.Refresh) bool { return refresh.SourceID == source })
		if index < 0 {
			index, list = len(list), append(list, engine.Refresh{SourceID: source, ObservedAt: at})
		}
		list[index].Observations = append(list[index].Observations, engine.Observation{
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

// refusalsShown is the number of refused rates in an error.
const refusalsShown = 3

// refusalError returns an error that lists the refused rates, or nil without any.
func refusalError(receipt *engine.Receipt) error {
	if len(receipt.Refused) == 0 {
		return nil
	}
	var lines []string
	for i := range receipt.Refused {
		if i == refusalsShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(receipt.Refused)-i))
			break
		}
		r := &receipt.Refused[i]
		o := &r.Observation
		detail := r.Detail
		if hint := refusalHint(r.Reason); hint != "" {
			detail, _, _ = strings.Cut(detail, ";") // the rest is for operators
			detail += "; " + hint
		}
		lines = append(lines, fmt.Sprintf("%s %s %s / %s: %s: %s", o.InstitutionID, o.Currency, o.Buy, o.Sell, r.Reason, detail))
	}
	return fmt.Errorf("the node's rules refuse %d of the rates: %s", len(receipt.Refused), strings.Join(lines, "; "))
}

// refusalHint returns advice about a refused rate for the author of a test, or "".
func refusalHint(reason engine.Reason) string {
	switch reason {
	case engine.UnknownInstitution, engine.UnknownCurrency:
		return "GET /v1/institutions and /v1/currencies list the known ones; tasard mock --catalogue FILE (in Go, the option Catalogue) adds others"
	case engine.Jump, engine.OffMarket, engine.SameSides:
		return "tasard mock --lenient (in Go, the option Lenient) turns this rule off"
	}
	return ""
}
