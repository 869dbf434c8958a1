package encode

import "github.com/tasard/tasard/engine"

// Rate appends a rate with all its fields, in the order of the API specification (contract/openapi.yaml). A field
// without a value is null.
func Rate(dst []byte, r *engine.Rate) []byte {
	dst = append(dst, '{')
	dst = Field(dst, "institutionId", r.InstitutionID)
	dst = Field(dst, "currency", r.Currency)
	dst = Field(dst, "quoteCurrency", engine.QuoteCurrency)
	dst = Decimal(dst, "buy", r.Buy)
	dst = Decimal(dst, "sell", r.Sell)
	dst = Field(dst, "channel", string(r.Channel))
	dst = Field(dst, "kind", string(r.Kind))
	dst = Date(dst, "effectiveDate", r.EffectiveDate)
	dst = Time(dst, "publishedAt", r.PublishedAt)
	dst = Nullable(dst, "upstreamSource", r.UpstreamSource)
	dst = Field(dst, "id", r.ID)
	dst = Field(dst, "institutionName", r.InstitutionName)
	dst = Field(dst, "institutionType", string(r.InstitutionType))
	dst = Field(dst, "website", r.Website)
	dst = Field(dst, "sourceId", r.SourceID)
	dst = Field(dst, "sourceName", r.SourceName)
	dst = Field(dst, "sourceUrl", r.SourceURL)
	dst = Time(dst, "collectedAt", r.CollectedAt)
	dst = Time(dst, "lastCheckedAt", r.LastCheckedAt)
	dst = Time(dst, "expiresAt", r.ExpiresAt)
	dst = Int(dst, "priority", r.Priority)
	dst = Bool(dst, "manual", r.Manual)
	dst = Bool(dst, "stale", r.Stale)
	dst = Field(dst, "datePrecision", string(r.DatePrecision))
	return append(dst, '}')
}
