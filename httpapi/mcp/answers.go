package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tasard/tasard/httpapi/client"
)

const (
	offersDefault = 5
	rowsDefault   = 100
	notice        = "Rates are informational and may change." // a sentence of the terms of use
)

// finish adds the notices that every result must have.
func (s *Server) finish(text *strings.Builder, data map[string]any) result {
	attribution := "Source: tasard, " + s.client.BaseURL()
	data["quoteCurrency"], data["attribution"], data["notice"] = client.QuoteCurrency, attribution, notice
	return result{text.String() + notice + "\n" + attribution + "\n", data}
}

// localTime formats a time in Santo Domingo, which has no daylight saving time.
func localTime(t time.Time) string {
	return t.In(time.FixedZone("America/Santo_Domingo", -4*60*60)).Format("2006-01-02 15:04")
}

func (in *arguments) filter(limit int) client.Filter {
	return client.Filter{Currency: in.Currency, Institution: in.Institution, Channel: in.Channel, Kind: in.Kind, Limit: cmp.Or(in.Limit, limit)}
}

// offer is one rate of one institution, perhaps with a converted amount.
type offer struct {
	Institution   string          `json:"institution"`
	InstitutionID string          `json:"institutionId"`
	Channel       client.Channel  `json:"channel"`
	Kind          client.Kind     `json:"kind"`
	Rate          client.Decimal  `json:"rate"` // compra or venta, according to the operation
	AmountDOP     client.Decimal  `json:"amountDop,omitempty"`
	Compra        *client.Decimal `json:"compra"`
	Venta         *client.Decimal `json:"venta"`
	EffectiveDate *string         `json:"effectiveDate,omitempty"`
	CheckedAt     string          `json:"checkedAt"`
	Source        string          `json:"source"`
	SourceURL     string          `json:"sourceUrl,omitempty"`
}

func (s *Server) bestRate(ctx context.Context, in *arguments) (result, error) {
	if in.Amount != "" {
		return s.convert(ctx, in)
	}
	ranking, err := s.client.Best(ctx, client.BestQuery{Filter: in.filter(offersDefault), Operation: in.Operation})
	if err != nil {
		return result{}, err
	}
	var items []client.Conversion
	for i := range ranking.Data {
		if side := ranking.Data[i].Side(in.Operation); side != nil {
			items = append(items, client.Conversion{Quote: ranking.Data[i], Rate: *side})
		}
	}
	return s.offers(ctx, in, items, &ranking.Meta)
}

func (s *Server) convert(ctx context.Context, in *arguments) (result, error) {
	page, err := s.client.Convert(ctx, client.ConvertQuery{Filter: in.filter(offersDefault), Operation: in.Operation, Amount: in.Amount})
	if err != nil {
		return result{}, err
	}
	return s.offers(ctx, in, page.Data, &page.Meta)
}

func (s *Server) offers(ctx context.Context, in *arguments, items []client.Conversion, meta *client.Meta) (result, error) {
	var text strings.Builder
	subject, asOf, list := strings.TrimSpace(string(in.Amount)+" "+in.Currency), localTime(meta.GeneratedAt), []offer{}
	data := map[string]any{"currency": in.Currency, "operation": in.Operation, "amount": in.Amount, "asOf": asOf, "total": meta.Total}
	if len(items) == 0 {
		hint, err := s.hint(ctx, in)
		if err != nil {
			return result{}, err
		}
		fmt.Fprintf(&text, "No current rate to %s %s, as of %s in Santo Domingo. %s\n", in.Operation, subject, asOf, hint)
		data["hint"] = hint
	} else {
		fmt.Fprintf(&text, "To %s %s, best first, %d of %d offers, as of %s in Santo Domingo:\n", in.Operation, subject, len(items), meta.Total, asOf)
	}
	for i := range items {
		item, r := &items[i], &items[i].Quote
		list = append(list, offer{
			r.InstitutionName, r.InstitutionID, r.Channel, r.Kind, item.Rate, item.AmountDOP, r.Buy, r.Sell, r.EffectiveDate, localTime(r.LastCheckedAt), r.SourceName, r.SourceURL,
		})
		fmt.Fprintf(&text, "%d. %s: %s DOP for 1 %s", i+1, r.InstitutionName, item.Rate, in.Currency)
		if item.AmountDOP != "" {
			fmt.Fprintf(&text, ", %s DOP in all", item.AmountDOP)
		}
		if r.Channel != client.Unspecified {
			fmt.Fprintf(&text, ", %s", r.Channel)
		}
		if r.Kind == client.Reference {
			text.WriteString(", official reference")
		}
		fmt.Fprintf(&text, " (seen %s)\n", localTime(r.LastCheckedAt))
	}
	if data["offers"] = list; len(items) > 0 && items[0].FeeNotice != "" {
		data["feeNotice"] = items[0].FeeNotice
		text.WriteString(items[0].FeeNotice + "\n")
	}
	return s.finish(&text, data), nil
}

// row is the last rate of a day.
type row struct {
	Date          string          `json:"date"`
	InstitutionID string          `json:"institutionId"`
	Channel       client.Channel  `json:"channel"`
	Kind          client.Kind     `json:"kind"`
	Compra        *client.Decimal `json:"compra"`
	Venta         *client.Decimal `json:"venta"`
}

func (s *Server) history(ctx context.Context, in *arguments) (result, error) {
	q := client.HistoryQuery{Filter: in.filter(rowsDefault), From: in.From, To: in.To}
	page, err := s.client.History(ctx, q)
	if err == nil && page.Meta.Total > q.Limit { // rows are sorted by date, so the newest are on the last page
		q.Cursor = page.Meta.Total - q.Limit
		page, err = s.client.History(ctx, q)
	}
	if err != nil {
		return result{}, err
	}
	var text strings.Builder
	rows := []row{}
	for i := range page.Data {
		r := &page.Data[i]
		rows = append(rows, row{r.Date, r.InstitutionID, r.Channel, r.Kind, r.Buy, r.Sell})
	}
	data := map[string]any{"currency": in.Currency, "asOf": localTime(page.Meta.GeneratedAt), "total": page.Meta.Total, "rows": rows}
	if len(page.Data) == 0 {
		hint, err := s.hint(ctx, in)
		if err != nil {
			return result{}, err
		}
		fmt.Fprintf(&text, "No rates of %s in these days. %s\n", in.Currency, hint)
		data["hint"] = hint
		return s.finish(&text, data), nil
	}
	fmt.Fprintf(&text, "%s in DOP, %d of %d daily rates, oldest first (compra: what the institution pays; venta: what it charges):\n", in.Currency, len(page.Data), page.Meta.Total)
	if page.Meta.Total > len(page.Data) {
		text.WriteString("The oldest are left out: ask for an institution, or for fewer days.\n")
	}
	side := func(d *client.Decimal) client.Decimal {
		if d == nil {
			return "none"
		}
		return *d
	}
	for _, r := range rows {
		fmt.Fprintf(&text, "%s %s %s %s: compra %s, venta %s\n", r.Date, r.InstitutionID, r.Channel, r.Kind, side(r.Compra), side(r.Venta))
	}
	return s.finish(&text, data), nil
}

func (s *Server) currencies(ctx context.Context, _ *arguments) (result, error) {
	list, err := s.client.Currencies(ctx)
	if err != nil {
		return result{}, err
	}
	var text strings.Builder
	text.WriteString(summary(list) + "\n")
	return s.finish(&text, map[string]any{"currencies": list}), nil
}

// summary lists currencies, those without current rates last.
func summary(list []client.Currency) string {
	var current, others []string
	for _, c := range list {
		if c.CurrentQuoteCount > 0 {
			current = append(current, fmt.Sprintf("%s %s (%d)", c.Code, c.Name, c.CurrentQuoteCount))
		} else {
			others = append(others, c.Code)
		}
	}
	text := "Currencies, with the number of current rates: " + cmp.Or(strings.Join(current, ", "), "none") + "."
	if len(others) > 0 {
		text += "\nWithout: " + strings.Join(others, ", ") + "."
	}
	return text
}

func (s *Server) institutions(ctx context.Context, in *arguments) (result, error) {
	var text strings.Builder
	list := []client.Institution{}
	for i, err := range client.All(client.Filter{Currency: in.Currency}, func(f client.Filter) (*client.Page[client.Institution], error) {
		return s.client.Institutions(ctx, f)
	}) {
		if err != nil {
			return result{}, err
		}
		list = append(list, i)
		fmt.Fprintf(&text, "%s = %s (%s)\n", i.ID, i.Name, strings.Join(i.Currencies, " "))
	}
	fmt.Fprintf(&text, "%d institutions.\n", len(list))
	return s.finish(&text, map[string]any{"institutions": list}), nil
}

// hint explains an empty result: it says which data the node has about the requested currency and institution.
func (s *Server) hint(ctx context.Context, in *arguments) (string, error) {
	text := ""
	if in.Currency == client.QuoteCurrency {
		text = "All rates are in Dominican pesos (DOP) for one unit of a foreign currency: name the foreign one. "
	}
	if in.Institution != "" {
		var unknown *client.Error
		switch detail, err := s.client.Institution(ctx, in.Institution); {
		case errors.As(err, &unknown) && unknown.Status == http.StatusNotFound:
			return strings.Replace(unknown.Message, "GET /v1/institutions lists them", "list_institutions lists them", 1) + ".", nil
		case err != nil:
			return "", err
		default:
			text += fmt.Sprintf("%s publishes no current rate of %s. ", detail.Name, in.Currency)
		}
	}
	list, err := s.client.Currencies(ctx)
	return text + summary(list), err
}
