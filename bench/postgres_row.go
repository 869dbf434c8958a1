package main

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tasard/tasard/engine"
)

// readPage reads the rows of a ranking, and closes them. The total comes with the rows: beyond the end, where no mix asks, it is 0.
func readPage(rows pgx.Rows, q *bestQuery) (*publishedPage, error) {
	defer rows.Close()
	page := &publishedPage{Data: make([]publishedRate, 0, q.limit), Operation: string(q.operation)}
	page.Meta.GeneratedAt, page.Meta.QuoteCurrency = time.Now().UTC().Format(time.RFC3339), engine.QuoteCurrency
	for rows.Next() {
		page.Data = append(page.Data, publishedRate{Currency: q.currency})
		if err := page.Data[len(page.Data)-1].scan(rows, &page.Meta.Total); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if next := q.cursor + len(page.Data); next < page.Meta.Total {
		page.Meta.NextCursor = &next
	}
	return page, nil
}

// scan reads a row of rankingQuery and completes what follows from it.
func (r *publishedRate) scan(rows pgx.Rows, total *int) error {
	var effective, published *time.Time
	var collected, checked, expires time.Time
	if err := rows.Scan(total, &r.InstitutionID, &r.Buy, &r.Sell, &r.Channel, &effective, &published, &r.UpstreamSource,
		&r.InstitutionName, &r.InstitutionType, &r.Website, &r.SourceID, &r.SourceName, &r.SourceURL,
		&collected, &checked, &expires, &r.Priority, &r.Manual); err != nil {
		return err
	}
	r.Kind, r.QuoteCurrency = string(engine.Commercial), engine.QuoteCurrency
	r.ID = r.InstitutionID + ":" + r.Currency + ":" + r.Channel + ":" + r.Kind
	r.CollectedAt, r.LastCheckedAt, r.ExpiresAt = instantText(collected), instantText(checked), instantText(expires)
	r.DatePrecision = string(engine.PrecisionUnknown)
	if effective != nil {
		text := effective.Format(time.DateOnly)
		r.EffectiveDate, r.DatePrecision = &text, string(engine.PrecisionDay)
	}
	if published != nil {
		text := instantText(*published)
		r.PublishedAt, r.DatePrecision = &text, string(engine.PrecisionDatetime)
	}
	return nil
}

func instantText(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
