package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
)

// pageLimitMax is the largest page. Each page counts as a request.
const pageLimitMax = 200

// AllInstitutions iterates over all active institutions. Like all iterators here it ends with an error, if there is
// one, and a zero item. Pages are read one after the other, so an item that changes meanwhile may occur twice or not
// at all.
func (c *Client) AllInstitutions(ctx context.Context, q InstitutionsQuery) iter.Seq2[Institution, error] {
	return iterate(q.Cursor, func(cursor int) (*Page[Institution], error) {
		return c.Institutions(ctx, InstitutionsQuery{q.Currency, cmp.Or(q.Limit, pageLimitMax), cursor})
	})
}

// AllRates iterates over the rates of a filter, in pages of its limit.
func (c *Client) AllRates(ctx context.Context, q Filter) iter.Seq2[Rate, error] {
	return iterate(q.Cursor, func(cursor int) (*Page[Rate], error) {
		return c.Rates(ctx, q.withCursor(cursor))
	})
}

// AllBest iterates over a ranking.
func (c *Client) AllBest(ctx context.Context, q BestQuery) iter.Seq2[Rate, error] {
	return iterate(q.Cursor, func(cursor int) (*Page[Rate], error) {
		ranking, err := c.Best(ctx, BestQuery{q.withCursor(cursor), q.Operation})
		if err != nil {
			return nil, err
		}
		return &ranking.Page, nil
	})
}

// AllHistory iterates over the days of a range.
func (c *Client) AllHistory(ctx context.Context, q HistoryQuery) iter.Seq2[HistoryEntry, error] {
	return iterate(q.Cursor, func(cursor int) (*Page[HistoryEntry], error) {
		return c.History(ctx, HistoryQuery{q.withCursor(cursor), q.From, q.To})
	})
}

// AllConversions iterates over the conversions of an amount.
func (c *Client) AllConversions(ctx context.Context, q ConvertQuery) iter.Seq2[Conversion, error] {
	return iterate(q.Cursor, func(cursor int) (*Page[Conversion], error) {
		return c.Convert(ctx, ConvertQuery{q.withCursor(cursor), q.Operation, q.Amount})
	})
}

// withCursor returns the filter of the page at a cursor.
func (f Filter) withCursor(cursor int) Filter {
	f.Cursor, f.Limit = cursor, cmp.Or(f.Limit, pageLimitMax)
	return f
}

// iterate reads page after page while the loop goes on.
func iterate[T any](cursor int, ask func(cursor int) (*Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for at := cursor; ; {
			page, err := ask(at)
			if err != nil {
				yield(none, err)
				return
			}
			for i := range page.Data {
				if !yield(page.Data[i], nil) {
					return
				}
			}
			next := page.Meta.NextCursor
			if next == nil {
				return
			}
			if *next != at+len(page.Data) || len(page.Data) == 0 { // the iteration would not end
				yield(none, fmt.Errorf("the node's page at cursor %d has %d items, and says that %d is next", at, len(page.Data), *next))
				return
			}
			at = *next
		}
	}
}
