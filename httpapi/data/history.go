package data

import (
	"time"

	"github.com/tasard/tasard/engine"
)

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
