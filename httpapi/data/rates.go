package data

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
)

// latestJSON returns all published rates, each as in /v1/rates.
func (c *Config) latestJSON() ([]byte, error) {
	rates, err := c.rates(engine.Filter{})
	if err != nil {
		return nil, err
	}
	body := append(encode.Name([]byte{'{'}, "data"), '[')
	var checkedAt time.Time
	for _, rate := range rates {
		body = encode.Rate(encode.Comma(body), rate)
		if rate.LastCheckedAt.After(checkedAt) {
			checkedAt = rate.LastCheckedAt
		}
	}
	body = append(encode.Name(append(body, ']'), "meta"), '{')
	body = encode.Int(body, "total", int64(len(rates)))
	body = encode.Time(body, "lastCheckedAt", checkedAt)
	body = encode.Field(body, "quoteCurrency", engine.QuoteCurrency)
	return append(body, "}}\n"...), nil
}

// latestCSV returns all published rates, one in each row.
func (c *Config) latestCSV() ([]byte, error) {
	rates, err := c.rates(engine.Filter{})
	if err != nil {
		return nil, err
	}
	rows := [][]string{{
		"institutionId", "institutionName", "institutionType", "currency", "channel", "kind", "buy", "sell", "effectiveDate", "publishedAt",
		"collectedAt", "lastCheckedAt", "expiresAt", "stale", "manual", "sourceId", "sourceName", "sourceUrl", "upstreamSource",
	}}
	for _, r := range rates {
		rows = append(rows, []string{
			r.InstitutionID, r.InstitutionName, string(r.InstitutionType), r.Currency, string(r.Channel), string(r.Kind), r.Buy.String(), r.Sell.String(),
			r.EffectiveDate.String(), timeText(r.PublishedAt), timeText(r.CollectedAt), timeText(r.LastCheckedAt), timeText(r.ExpiresAt),
			strconv.FormatBool(r.Stale), strconv.FormatBool(r.Manual), r.SourceID, r.SourceName, r.SourceURL, r.UpstreamSource,
		})
	}
	return csvOf(rows)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// csvOf encodes rows as CSV (RFC 4180).
func csvOf(rows [][]string) ([]byte, error) {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	w.UseCRLF = true
	for _, row := range rows {
		for i := range row {
			row[i] = cell(row[i])
		}
		if err := w.Write(row); err != nil {
			return nil, fmt.Errorf("write CSV: %w", err)
		}
	}
	w.Flush()
	return text.Bytes(), nil
}

// cell puts an apostrophe before a text that a spreadsheet would take for a formula. Rates do not change, because rates
// are never negative.
func cell(text string) string {
	if text != "" && strings.IndexByte("=+-@\t\r\n", text[0]) >= 0 {
		return "'" + text
	}
	return text
}

// historyDays is the number of days in /data/history.csv, up to and including today: the maximum range of
// /v1/rates/history.
const historyDays = engine.HistoryRangeDaysMax + 1

func (c *Config) recentHistory() ([]byte, error) {
	today := engine.DateOf(c.Clock())
	return c.history(today.AddDays(1-historyDays), today)
}

func (c *Config) yearHistory(year int) ([]byte, error) {
	noon := func(month time.Month, day int) engine.Date {
		return engine.DateOf(time.Date(year, month, day, 12, 0, 0, 0, engine.Location()))
	}
	return c.history(noon(time.January, 1), noon(time.December, 31))
}

// history returns the history from one date to another as CSV, oldest first, with the fields of /v1/rates/history. It
// queries each day separately, because one large query would block the actor of a currency for long.
func (c *Config) history(from, to engine.Date) ([]byte, error) {
	rows := [][]string{{"date", "institutionId", "currency", "channel", "kind", "buy", "sell", "sourceId", "datePrecision"}}
	for date := from; date <= to; date++ {
		entries, err := engine.AllItems(queryItemPagesMax, func(page engine.PageRequest) (*engine.Page[engine.HistoryEntry], error) {
			return c.Service.History(engine.HistoryQuery{PageRequest: page, From: date, To: date})
		})
		if err != nil {
			return nil, err
		}
		day := date.String()
		for i := range entries {
			h := &entries[i]
			rows = append(rows, []string{
				day, h.InstitutionID, h.Currency, string(h.Channel), string(h.Kind), h.Buy.String(), h.Sell.String(), h.SourceID, string(h.DatePrecision),
			})
		}
	}
	return csvOf(rows)
}
