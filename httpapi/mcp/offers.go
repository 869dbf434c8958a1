package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/tasard/tasard/httpapi/client"
)

const (
	offersDefault = 5
	offersMax     = 50
)

// bestInput is the input of best_rate.
type bestInput struct {
	Currency    string           `json:"currency" jsonschema:"the foreign currency, three capital letters such as USD; list_currencies has all"`
	Operation   client.Operation `json:"operation" jsonschema:"what the user does: buy or sell foreign currency"`
	Amount      client.Decimal   `json:"amount,omitempty" jsonschema:"an amount of the foreign currency as decimal text, such as 250.00; without it only rates are returned"`
	Institution string           `json:"institution,omitempty" jsonschema:"only this institution, by its id from list_institutions"`
	Channel     client.Channel   `json:"channel,omitempty" jsonschema:"only this way of doing it"`
	Limit       int              `json:"limit,omitempty" jsonschema:"how many offers, 1 to 50; 5 if it is not given"`
}

// convertInput is the input of convert.
type convertInput struct {
	Currency    string           `json:"currency" jsonschema:"the foreign currency, three capital letters such as USD; list_currencies has all"`
	Operation   client.Operation `json:"operation" jsonschema:"what the user does: buy or sell foreign currency"`
	Amount      client.Decimal   `json:"amount" jsonschema:"the amount of the foreign currency, not of pesos, as decimal text, such as 250.00"`
	Kind        client.Kind      `json:"kind,omitempty" jsonschema:"commercial (what institutions offer) if it is not given, or reference (the official rate)"`
	Institution string           `json:"institution,omitempty" jsonschema:"only this institution, by its id from list_institutions"`
	Channel     client.Channel   `json:"channel,omitempty" jsonschema:"only this way of doing it"`
	Limit       int              `json:"limit,omitempty" jsonschema:"how many offers, 1 to 50; 5 if it is not given"`
}

// offer is one rate of one institution, with the converted amount if the input has an amount.
type offer struct {
	Institution     string          `json:"institution"`
	InstitutionID   string          `json:"institutionId"`
	InstitutionType string          `json:"institutionType"`
	Channel         client.Channel  `json:"channel"`
	Kind            client.Kind     `json:"kind"`
	Rate            client.Decimal  `json:"rate" jsonschema:"pesos for one unit, the side that applies to the operation"`
	AmountDOP       client.Decimal  `json:"amountDop,omitempty" jsonschema:"pesos for the whole amount, exact, without fees"`
	Compra          *client.Decimal `json:"compra" jsonschema:"what the institution pays for one unit"`
	Venta           *client.Decimal `json:"venta" jsonschema:"what the institution asks for one unit"`
	EffectiveDate   string          `json:"effectiveDate,omitempty" jsonschema:"the day that the institution gives for its rate"`
	CheckedAt       string          `json:"checkedAt" jsonschema:"when the rate was last seen published, in the time of Santo Domingo"`
	Source          string          `json:"source"`
	SourceURL       string          `json:"sourceUrl,omitempty"`
}

// offers is the result of best_rate and convert.
type offers struct {
	provenance
	Currency  string           `json:"currency"`
	Operation client.Operation `json:"operation"`
	Amount    client.Decimal   `json:"amount,omitempty"`
	Total     int              `json:"total" jsonschema:"how many offers there are in all"`
	Offers    []offer          `json:"offers" jsonschema:"the best for the user first"`
	FeeNotice string           `json:"feeNotice,omitempty" jsonschema:"to be shown with amounts"`
}

func (s *Server) bestRate(ctx context.Context, in bestInput) (*offers, error) {
	if in.Amount != "" {
		return s.convert(ctx, convertInput{in.Currency, in.Operation, in.Amount, client.Commercial, in.Institution, in.Channel, in.Limit})
	}
	ranking, err := s.client.Best(ctx, client.BestQuery{
		Filter: client.Filter{Currency: in.Currency, Institution: in.Institution, Channel: in.Channel, Limit: cmp.Or(in.Limit, offersDefault)}, Operation: in.Operation,
	})
	if err != nil {
		return nil, err
	}
	result := &offers{provenance: s.provenance(&ranking.Meta), Currency: in.Currency, Operation: in.Operation, Total: ranking.Meta.Total, Offers: []offer{}}
	for i := range ranking.Data {
		side := ranking.Data[i].Side(in.Operation)
		if side == nil {
			return nil, fmt.Errorf("the node ranks %s, which has no rate to %s", ranking.Data[i].ID, in.Operation)
		}
		result.Offers = append(result.Offers, newOffer(&ranking.Data[i], *side, ""))
	}
	return s.withHint(ctx, result, in.Institution)
}

func (s *Server) convert(ctx context.Context, in convertInput) (*offers, error) {
	page, err := s.client.Convert(ctx, client.ConvertQuery{
		Filter:    client.Filter{Currency: in.Currency, Kind: in.Kind, Institution: in.Institution, Channel: in.Channel, Limit: cmp.Or(in.Limit, offersDefault)},
		Operation: in.Operation, Amount: in.Amount,
	})
	if err != nil {
		return nil, err
	}
	result := &offers{provenance: s.provenance(&page.Meta), Currency: in.Currency, Operation: in.Operation, Amount: in.Amount, Total: page.Meta.Total, Offers: []offer{}}
	for i := range page.Data {
		item := &page.Data[i]
		result.Offers = append(result.Offers, newOffer(&item.Quote, item.Rate, item.AmountDOP))
		result.FeeNotice = item.FeeNotice
	}
	return s.withHint(ctx, result, in.Institution)
}

// withHint adds a hint to a result without offers.
func (s *Server) withHint(ctx context.Context, result *offers, institutionID string) (_ *offers, err error) {
	if len(result.Offers) == 0 {
		result.Hint, err = s.hintForEmpty(ctx, result.Currency, institutionID)
	}
	return result, err
}

func newOffer(r *client.Rate, rate, amount client.Decimal) offer {
	o := offer{
		Institution: r.InstitutionName, InstitutionID: r.InstitutionID, InstitutionType: r.InstitutionType, Channel: r.Channel, Kind: r.Kind,
		Rate: rate, AmountDOP: amount, Compra: r.Buy, Venta: r.Sell, CheckedAt: localTime(r.LastCheckedAt), Source: r.SourceName, SourceURL: r.SourceURL,
	}
	if r.EffectiveDate != nil {
		o.EffectiveDate = r.EffectiveDate.String()
	}
	return o
}

func (o *offers) text() string {
	var out strings.Builder
	subject := o.Currency
	if o.Amount != "" {
		subject = string(o.Amount) + " " + o.Currency
	}
	if len(o.Offers) == 0 {
		fmt.Fprintf(&out, "No current rate to %s %s, as of %s in Santo Domingo. %s\n", o.Operation, subject, o.AsOf, o.Hint)
		return out.String() + o.footer()
	}
	fmt.Fprintf(&out, "To %s %s, best first, %d of %d offers, as of %s in Santo Domingo:\n", o.Operation, subject, len(o.Offers), o.Total, o.AsOf)
	for i := range o.Offers {
		offer := &o.Offers[i]
		fmt.Fprintf(&out, "%d. %s: %s DOP for 1 %s", i+1, offer.Institution, offer.Rate, o.Currency)
		if offer.AmountDOP != "" {
			fmt.Fprintf(&out, ", %s DOP in all", offer.AmountDOP)
		}
		if offer.Channel != client.Unspecified {
			fmt.Fprintf(&out, ", %s", offer.Channel)
		}
		if offer.Kind == client.Reference {
			out.WriteString(", official reference")
		}
		fmt.Fprintf(&out, " (seen %s)\n", offer.CheckedAt)
	}
	if o.FeeNotice != "" {
		out.WriteString(o.FeeNotice + "\n")
	}
	return out.String() + o.footer()
}
