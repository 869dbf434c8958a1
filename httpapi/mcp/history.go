package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tasard/tasard/httpapi/client"
)

const (
	rowsDefault   = 100
	rowsMax       = 200 // rows of the largest page that the API returns
	rowsListedMax = 10  // if there are more rows, the text for people has a summary by week or month
	weeksMax      = 12  // if there are more weeks, the summary is by month
)

// historyInput is the input of rate_history.
type historyInput struct {
	Currency    string         `json:"currency" jsonschema:"the foreign currency, three capital letters such as USD; list_currencies has all"`
	From        string         `json:"from,omitempty" jsonschema:"first day, YYYY-MM-DD, at most 365 before the last; without it the six days before the last"`
	To          string         `json:"to,omitempty" jsonschema:"last day, YYYY-MM-DD; today if it is not given"`
	Institution string         `json:"institution,omitempty" jsonschema:"only this institution, by its id from list_institutions; a long range is too long without one"`
	Channel     client.Channel `json:"channel,omitempty" jsonschema:"only this way of doing it"`
	Kind        client.Kind    `json:"kind,omitempty" jsonschema:"only commercial rates, or only the official reference"`
	Limit       int            `json:"limit,omitempty" jsonschema:"how many rows, the newest ones, 1 to 200; 100 if it is not given"`
}

// historyRow is the rate that was the newest at the end of a day.
type historyRow struct {
	Date          string          `json:"date"`
	InstitutionID string          `json:"institutionId"`
	Channel       client.Channel  `json:"channel"`
	Kind          client.Kind     `json:"kind"`
	Compra        *client.Decimal `json:"compra" jsonschema:"what the institution paid for one unit"`
	Venta         *client.Decimal `json:"venta" jsonschema:"what the institution asked for one unit"`
}

// historyResult is the result of rate_history.
type historyResult struct {
	provenance
	Currency string       `json:"currency"`
	Total    int          `json:"total" jsonschema:"how many rows the range has; when it is more than there are in rows, the oldest are left out"`
	Rows     []historyRow `json:"rows" jsonschema:"oldest first"`
}

// query converts the input to a query of package client.
func (in *historyInput) query() (client.HistoryQuery, error) {
	q := client.HistoryQuery{Filter: client.Filter{Currency: in.Currency, Institution: in.Institution, Channel: in.Channel, Kind: in.Kind, Limit: cmp.Or(in.Limit, rowsDefault)}}
	var err error
	for text, date := range map[string]*client.Date{in.From: &q.From, in.To: &q.To} {
		if text == "" || err != nil {
			continue
		}
		*date, err = client.ParseDate(text)
	}
	return q, err
}

func (s *Server) history(ctx context.Context, in historyInput) (*historyResult, error) {
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	page, err := s.client.History(ctx, q)
	if err == nil && page.Meta.Total > q.Limit { // rows are sorted by date, so the newest are on the last page
		q.Cursor = page.Meta.Total - q.Limit
		page, err = s.client.History(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	result := &historyResult{provenance: s.provenance(&page.Meta), Currency: in.Currency, Total: page.Meta.Total, Rows: []historyRow{}}
	for i := range page.Data {
		entry := &page.Data[i]
		result.Rows = append(result.Rows, historyRow{entry.Date.String(), entry.InstitutionID, entry.Channel, entry.Kind, entry.Buy, entry.Sell})
	}
	if len(result.Rows) == 0 {
		result.Hint, err = s.hintForEmpty(ctx, in.Currency, in.Institution)
	}
	return result, err
}

// text returns the rows as text for people. If there are more than rowsListedMax, the text has the lowest and highest
// rates of each week or month.
func (d *historyResult) text() string {
	var out strings.Builder
	if len(d.Rows) == 0 {
		fmt.Fprintf(&out, "No rates of %s in these days. %s\n", d.Currency, d.Hint)
		return out.String() + d.footer()
	}
	fmt.Fprintf(&out, "%s in DOP, %d of %d daily rates, %s to %s:\n", d.Currency, len(d.Rows), d.Total, d.Rows[0].Date, d.Rows[len(d.Rows)-1].Date)
	if d.Total > len(d.Rows) {
		out.WriteString("The oldest are left out: ask for an institution, or for fewer days.\n")
	}
	if len(d.Rows) <= rowsListedMax {
		for i := range d.Rows {
			r := &d.Rows[i]
			fmt.Fprintf(&out, "%s %s: compra %s, venta %s\n", r.Date, r.name(), sideText(r.Compra), sideText(r.Venta))
		}
		return out.String() + d.footer()
	}
	for _, period := range d.periods() {
		for _, kind := range []client.Kind{client.Commercial, client.Reference} {
			compra := extremes(period.rows, kind, func(r *historyRow) *client.Decimal { return r.Compra })
			venta := extremes(period.rows, kind, func(r *historyRow) *client.Decimal { return r.Venta })
			if compra+venta != "" {
				fmt.Fprintf(&out, "%s, %s: compra %s; venta %s\n", period.name, kind, cmp.Or(compra, "none"), cmp.Or(venta, "none"))
			}
		}
	}
	return out.String() + d.footer()
}

// period is a week or a month with its rows.
type period struct {
	name string
	rows []historyRow
}

// periods splits the rows by week, or by month if there are more than weeksMax weeks.
func (d *historyResult) periods() []period {
	weeks, months := d.split(weekOf), d.split(func(date string) string { return date[:len("2006-01")] })
	if len(weeks) > weeksMax {
		return months
	}
	return weeks
}

func (d *historyResult) split(nameOf func(date string) string) (periods []period) {
	for _, row := range d.Rows {
		name := nameOf(row.Date)
		if len(periods) == 0 || periods[len(periods)-1].name != name {
			periods = append(periods, period{name: name})
		}
		last := &periods[len(periods)-1]
		last.rows = append(last.rows, row)
	}
	return periods
}

// weekOf returns the name of the week of a date: that of its Monday.
func weekOf(date string) string {
	day, err := client.ParseDate(date)
	if err != nil {
		return date // can't happen: the client has parsed it
	}
	t := time.Date(day.Year, day.Month, day.Day, 0, 0, 0, 0, time.UTC)
	return "week of " + day.AddDays(-int(t.Weekday()+6)%7).String()
}

// extremes returns the lowest and the highest value of one side of the rates of a kind, "" if there is none.
func extremes(rows []historyRow, kind client.Kind, side func(*historyRow) *client.Decimal) string {
	var low, high *historyRow
	for i := range rows {
		r := &rows[i]
		value := side(r)
		if r.Kind != kind || value == nil {
			continue
		}
		if low == nil || value.Cmp(*side(low)) < 0 {
			low = r
		}
		if high == nil || value.Cmp(*side(high)) > 0 {
			high = r
		}
	}
	if low == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s) to %s (%s)", *side(low), low.name(), *side(high), high.name())
}

// name returns the id of the institution, with the channel if it is specified.
func (r *historyRow) name() string {
	if r.Channel == client.Unspecified {
		return r.InstitutionID
	}
	return r.InstitutionID + " " + string(r.Channel)
}

func sideText(side *client.Decimal) string {
	if side == nil {
		return "none"
	}
	return string(*side)
}
