package docs

import (
	"net/http"

	"github.com/tasard/tasard/httpapi/pages"
)

// operationRow is a row of the table of API operations.
type operationRow struct {
	Path, Key          string   // Key is the key of the description in the texts of the pages
	Required, Optional []string // names of parameters
}

func operationRows() []operationRow {
	filters := []string{"institution", "channel", "kind", "limit", "cursor"}
	return []operationRow{
		{"/v1/rates/best", "operation.best", []string{"currency", "operation"}, filters},
		{"/v1/convert", "operation.convert", []string{"currency", "operation", "amount"}, filters},
		{"/v1/rates", "operation.rates", nil, []string{"currency", "institution", "channel", "kind", "limit", "cursor"}},
		{"/v1/rates/history", "operation.history", nil, []string{"currency", "institution", "channel", "kind", "from", "to", "limit", "cursor"}},
		{"/v1/currencies", "operation.currencies", nil, nil},
		{"/v1/institutions", "operation.institutions", nil, []string{"currency", "limit", "cursor"}},
		{"/v1/institutions/{id}", "operation.institution", nil, nil},
	}
}

// errorRow is a row of the table of API errors.
type errorRow struct {
	Status int
	Codes  []string
	Key    string // key of the description in the texts of the pages
}

func errorRows() []errorRow {
	return []errorRow{
		{http.StatusBadRequest, []string{"invalid_parameters"}, "errors.parameters"},
		{http.StatusBadRequest, []string{"malformed_request"}, "errors.malformed"},
		{http.StatusUnauthorized, []string{"missing_key", "invalid_key", "revoked_key"}, "errors.key"},
		{http.StatusUnauthorized, []string{"account_suspended"}, "errors.suspended"},
		{http.StatusUnauthorized, []string{"invalid_code", "invalid_session"}, "errors.login"},
		{http.StatusNotFound, []string{"not_found", "institution_not_found"}, "errors.notfound"},
		{http.StatusMethodNotAllowed, []string{"method_not_allowed"}, "errors.method"},
		{http.StatusRequestTimeout, []string{"request_timeout"}, "errors.slow"},
		{http.StatusConflict, []string{"key_limit_reached"}, "errors.keys"},
		{http.StatusRequestEntityTooLarge, []string{"payload_too_large"}, "errors.large"},
		{http.StatusUnsupportedMediaType, []string{"unsupported_media_type"}, "errors.media"},
		{http.StatusTooManyRequests, []string{"rate_limited", "quota_exceeded", "code_requested_too_soon"}, "errors.limit"},
		{http.StatusRequestHeaderFieldsTooLarge, []string{"headers_too_large"}, "errors.large"},
		{http.StatusInternalServerError, []string{"internal_error"}, "errors.internal"},
		{http.StatusNotImplemented, []string{"not_implemented"}, "errors.chunked"},
		{http.StatusServiceUnavailable, []string{"data_unavailable", "mail_unavailable", "overloaded", "read_only", "no_majority"}, "errors.unavailable"},
	}
}

// answerFields returns the fields of the example response, in the order of the response.
func answerFields() []string {
	return []string{
		"data", "data.institutionId", "data.currency", "data.quoteCurrency", "data.buy", "data.sell", "data.channel", "data.kind",
		"data.effectiveDate", "data.publishedAt", "data.upstreamSource", "data.id", "data.institutionName", "data.institutionType",
		"data.website", "data.sourceId", "data.sourceName", "data.sourceUrl", "data.collectedAt", "data.lastCheckedAt", "data.expiresAt",
		"data.priority", "data.manual", "data.stale", "data.datePrecision",
		"meta.total", "meta.nextCursor", "meta.generatedAt", "meta.quoteCurrency", "operation",
	}
}

// attributions returns texts with which a user of the rates can credit the service.
func attributions(language pages.Language) []snippet {
	source, text := "Exchange rates: ", "Text"
	if language == pages.Spanish {
		source, text = "Tasas de cambio: ", "Texto"
	}
	const name = "tasard"
	home := "{{service}}" + language.Path("/")
	return []snippet{
		{Name: "html", Title: "HTML", Text: source + `<a href="` + home + `">` + name + `</a>`},
		{Name: "markdown", Title: "Markdown", Text: source + "[" + name + "](" + home + ")"},
		{Name: "text", Title: text, Text: source + name + ", " + home},
	}
}
