package main

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tasard/tasard/engine"
)

// rankedRow is a row of the ranking as it is read, null where nothing is published.
type rankedRow struct {
	dayLimit, daySpent, minuteLimit, minuteSpent int64 // with quota

	total                                             *int64
	institution, channel, name, kind, website         *string
	source, sourceName, sourceURL                     *string
	buy, sell, upstream                               *string
	effective, published, collected, checked, expires *time.Time
	priority                                          *int64
	manual                                            *bool
}

func (r *rankedRow) scan(rows pgx.Rows, quota bool) error {
	into := []any{
		&r.dayLimit, &r.daySpent, &r.minuteLimit, &r.minuteSpent,
		&r.total, &r.institution, &r.buy, &r.sell, &r.channel, &r.effective, &r.published,
		&r.upstream, &r.name, &r.kind, &r.website, &r.source, &r.sourceName, &r.sourceURL, &r.collected, &r.checked, &r.expires,
		&r.priority, &r.manual,
	}
	if !quota {
		into = into[4:]
	}
	return rows.Scan(into...)
}

// rate is the row as the interface shows it.
func (r *rankedRow) rate(currency string) publishedRate {
	rate := publishedRate{
		InstitutionID: *r.institution, Currency: currency, QuoteCurrency: engine.QuoteCurrency, Buy: r.buy, Sell: r.sell,
		Channel: *r.channel, Kind: string(engine.Commercial), EffectiveDate: shown(r.effective, time.DateOnly),
		PublishedAt: shown(r.published, time.RFC3339Nano), UpstreamSource: r.upstream,
		ID:              *r.institution + ":" + currency + ":" + *r.channel + ":" + string(engine.Commercial),
		InstitutionName: *r.name, InstitutionType: *r.kind, Website: *r.website,
		SourceID: *r.source, SourceName: *r.sourceName, SourceURL: *r.sourceURL,
		CollectedAt: *shown(r.collected, time.RFC3339Nano), LastCheckedAt: *shown(r.checked, time.RFC3339Nano),
		ExpiresAt: *shown(r.expires, time.RFC3339Nano), Priority: *r.priority, Manual: *r.manual,
		DatePrecision: string(engine.PrecisionUnknown),
	}
	switch {
	case r.published != nil:
		rate.DatePrecision = string(engine.PrecisionDatetime)
	case r.effective != nil:
		rate.DatePrecision = string(engine.PrecisionDay)
	}
	return rate
}

func shown(at *time.Time, layout string) *string {
	if at == nil {
		return nil
	}
	text := at.UTC().Format(layout)
	return &text
}
