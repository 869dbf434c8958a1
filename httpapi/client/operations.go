package client

import (
	"context"
	"errors"
	"net/url"
)

// Paths of the data operations: requests for currencies, institutions, rates and conversions.
const (
	currenciesPath   = "/v1/currencies"
	institutionsPath = "/v1/institutions"
	ratesPath        = "/v1/rates"
	bestPath         = "/v1/rates/best"
	historyPath      = "/v1/rates/history"
	convertPath      = "/v1/convert"
)

// Currencies returns all currencies, sorted by code, including those without rates.
func (c *Client) Currencies(ctx context.Context) ([]Currency, error) {
	return sendForList[Currency](ctx, c, c.get(currenciesPath, nil))
}

// Institutions returns a page of the active institutions, sorted by id.
func (c *Client) Institutions(ctx context.Context, q InstitutionsQuery) (*Page[Institution], error) {
	return getPage[Institution](ctx, c, institutionsPath, values("currency", q.Currency, "limit", optionalInt(q.Limit), "cursor", optionalInt(q.Cursor)))
}

// Institution returns an institution with its rates. If it is unknown or inactive, the error has
// CodeInstitutionNotFound.
func (c *Client) Institution(ctx context.Context, id string) (*InstitutionDetail, error) {
	return sendForData[InstitutionDetail](ctx, c, c.get(institutionsPath+"/"+url.PathEscape(id), nil))
}

// Rates returns a page of the published rates, sorted by currency and institution. It includes expired and reference
// rates.
func (c *Client) Rates(ctx context.Context, q Filter) (*Page[Rate], error) {
	return getPage[Rate](ctx, c, ratesPath, q.values())
}

// Best returns a page of the current commercial rates, the best for the customer first.
func (c *Client) Best(ctx context.Context, q BestQuery) (*Ranking, error) {
	ranking := new(Ranking)
	if err := c.send(ctx, c.get(bestPath, q.values("operation", string(q.Operation))), ranking); err != nil {
		return nil, err
	}
	return ranking, nil
}

// History returns a page of daily rates, oldest first.
func (c *Client) History(ctx context.Context, q HistoryQuery) (*Page[HistoryEntry], error) {
	if err := errors.Join(q.From.valid(), q.To.valid()); err != nil {
		return nil, err
	}
	return getPage[HistoryEntry](ctx, c, historyPath, q.values("from", optionalDate(q.From), "to", optionalDate(q.To)))
}

// Convert returns a page of conversions, the best for the customer first. Amounts exclude fees: show FeeNotice with
// them.
func (c *Client) Convert(ctx context.Context, q ConvertQuery) (*Page[Conversion], error) {
	return getPage[Conversion](ctx, c, convertPath, q.values("operation", string(q.Operation), "amount", string(q.Amount)))
}

func getPage[T any](ctx context.Context, c *Client, path string, query url.Values) (*Page[T], error) {
	page := new(Page[T])
	if err := c.send(ctx, c.get(path, query), page); err != nil {
		return nil, err
	}
	return page, nil
}

func sendForData[T any](ctx context.Context, c *Client, q *call) (*T, error) {
	var body dataBody[T]
	if err := c.send(ctx, q, &body); err != nil {
		return nil, err
	}
	return body.Data, nil
}

func sendForList[T any](ctx context.Context, c *Client, q *call) ([]T, error) {
	var body listBody[T]
	if err := c.send(ctx, q, &body); err != nil {
		return nil, err
	}
	return body.Data, nil
}
