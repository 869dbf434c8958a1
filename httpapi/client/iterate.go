package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
)

// pageLimitMax is the maximum number of items of a page. It is the default of all iterators, because each page counts
// as a request against the quota.
const pageLimitMax = 200

// AllInstitutions iterates over all active institutions.
//
// All iterators of this package end after an error; the last pair is then a zero item and the error. They request one
// page after the other. If the list changes in between, an item may occur twice or not at all. A node gives at most
// 100,200 items of a list; if there are more, the iteration ends with an error.
func (c *Client) AllInstitutions(ctx context.Context, q InstitutionsQuery) iter.Seq2[Institution, error] {
	return iterate(q.Cursor, func(cursor int) (*Page[Institution], error) {
		return c.Institutions(ctx, InstitutionsQuery{q.Currency, cmp.Or(q.Limit, pageLimitMax), cursor})
	})
}

// AllRates iterates over the rates that a filter selects. q.Limit is the number of items of a page; the default is
// pageLimitMax.
func (c *Client) AllRates(ctx context.Context, q Filter) iter.Seq2[Rate, error] {
	return iterate(q.Cursor, func(cursor int) (*Page[Rate], error) {
		return c.Rates(ctx, q.withCursor(cursor))
	})
}

// AllBest iterates over a ranking: the current commercial rates, the best for the caller first.
func (c *Client) AllBest(ctx context.Context, q BestQuery) iter.Seq2[Rate, error] {
	return iterate(q.Cursor, func(cursor int) (*Page[Rate], error) {
		ranking, err := c.Best(ctx, BestQuery{q.withCursor(cursor), q.Operation})
		if err != nil {
			return nil, err
		}
		return &ranking.Page, nil
	})
}

// AllHistory iterates over the daily rates of a range of days, oldest first.
func (c *Client) AllHistory(ctx context.Context, q HistoryQuery) iter.Seq2[HistoryEntry, error] {
	return iterate(q.Cursor, func(cursor int) (*Page[HistoryEntry], error) {
		return c.History(ctx, HistoryQuery{q.withCursor(cursor), q.From, q.To})
	})
}

// AllConversions iterates over the conversions of an amount, the best for the caller first.
func (c *Client) AllConversions(ctx context.Context, q ConvertQuery) iter.Seq2[Conversion, error] {
	return iterate(q.Cursor, func(cursor int) (*Page[Conversion], error) {
		return c.Convert(ctx, ConvertQuery{q.withCursor(cursor), q.Operation, q.Amount})
	})
}

// withCursor returns a copy of the filter for the page that begins at a cursor.
func (f Filter) withCursor(cursor int) Filter {
	f.Cursor, f.Limit = cursor, cmp.Or(f.Limit, pageLimitMax)
	return f
}

// iterate returns an iterator over the items of all pages from a cursor on.
func iterate[T any](cursor int, getPage func(cursor int) (*Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		for offset := cursor; ; {
			page, err := getPage(offset)
			if err != nil {
				yield(zero, err)
				return
			}
			for i := range page.Data {
				if !yield(page.Data[i], nil) {
					return
				}
			}
			next := page.Meta.NextCursor
			if next == nil && len(page.Data) > 0 && offset+len(page.Data) < page.Meta.Total {
				yield(zero, fmt.Errorf("the list has %d items, but the node gives no cursor after item %d: ask for one currency, one institution or fewer days",
					page.Meta.Total, offset+len(page.Data)))
				return
			}
			if next == nil {
				return
			}
			if *next != offset+len(page.Data) || len(page.Data) == 0 { // otherwise the iteration might not end
				yield(zero, fmt.Errorf("the node's page at cursor %d has %d items, and says that %d is next", offset, len(page.Data), *next))
				return
			}
			offset = *next
		}
	}
}
