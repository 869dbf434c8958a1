package client

import (
	"context"
	"net/url"
)

// The paths of the data operations.
const (
	currenciesPath   = "/v1/currencies"
	institutionsPath = "/v1/institutions"
	ratesPath        = "/v1/rates"
	bestPath         = "/v1/rates/best"
	historyPath      = "/v1/rates/history"
	convertPath      = "/v1/convert"
)

// Currencies is the whole catalogue, by code; those without rates too.
func (c *Client) Currencies(ctx context.Context) ([]Currency, error) {
	return askList[Currency](ctx, c, c.get(currenciesPath, nil))
}

// Institutions is a page of the active ones, by id.
func (c *Client) Institutions(ctx context.Context, q InstitutionsQuery) (*Page[Institution], error) {
	return askPage[Institution](ctx, c, institutionsPath, values("currency", q.Currency, "limit", count(q.Limit), "cursor", count(q.Cursor)))
}

// Institution is one with its rates. One that is unknown or inactive is an *Error of CodeInstitutionNotFound.
func (c *Client) Institution(ctx context.Context, id string) (*InstitutionDetail, error) {
	return askData[InstitutionDetail](ctx, c, c.get(institutionsPath+"/"+url.PathEscape(id), nil))
}

// Rates is a page of what is published, expired rates and references too, by currency and institution.
func (c *Client) Rates(ctx context.Context, q Filter) (*Page[Rate], error) {
	return askPage[Rate](ctx, c, ratesPath, q.values())
}

// Best is a page of current commercial rates, the best for the caller first (S2).
func (c *Client) Best(ctx context.Context, q BestQuery) (*Ranking, error) {
	answer := new(Ranking)
	if err := c.ask(ctx, c.get(bestPath, q.values("operation", string(q.Operation))), answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// History is a page of days, oldest first.
func (c *Client) History(ctx context.Context, q HistoryQuery) (*Page[HistoryEntry], error) {
	return askPage[HistoryEntry](ctx, c, historyPath, q.values("from", day(q.From), "to", day(q.To)))
}

// Convert is a page of what an amount makes, the best for the caller first. Fees are not in it: show FeeNotice.
func (c *Client) Convert(ctx context.Context, q ConvertQuery) (*Page[Conversion], error) {
	return askPage[Conversion](ctx, c, convertPath, q.values("operation", string(q.Operation), "amount", string(q.Amount)))
}

func askPage[T any](ctx context.Context, c *Client, path string, query url.Values) (*Page[T], error) {
	answer := new(Page[T])
	if err := c.ask(ctx, c.get(path, query), answer); err != nil {
		return nil, err
	}
	return answer, nil
}

func askData[T any](ctx context.Context, c *Client, q *call) (*T, error) {
	var answer single[T]
	if err := c.ask(ctx, q, &answer); err != nil {
		return nil, err
	}
	return answer.Data, nil
}

func askList[T any](ctx context.Context, c *Client, q *call) ([]T, error) {
	var answer list[T]
	if err := c.ask(ctx, q, &answer); err != nil {
		return nil, err
	}
	return answer.Data, nil
}
