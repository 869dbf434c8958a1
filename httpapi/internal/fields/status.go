package fields

import (
	"maps"
	"net/http"
	"slices"

	"github.com/tasard/tasard/engine"
)

// statuses are the HTTP statuses of the codes of API errors.
var statuses = map[engine.Code]int{
	engine.CodeInvalidParameters:    http.StatusBadRequest,
	engine.CodeMalformedRequest:     http.StatusBadRequest,
	engine.CodeRequestTimeout:       http.StatusRequestTimeout,
	engine.CodeHeadersTooLarge:      http.StatusRequestHeaderFieldsTooLarge,
	engine.CodeMissingKey:           http.StatusUnauthorized,
	engine.CodeInvalidKey:           http.StatusUnauthorized,
	engine.CodeRevokedKey:           http.StatusUnauthorized,
	engine.CodeAccountSuspended:     http.StatusUnauthorized,
	engine.CodeInvalidCode:          http.StatusUnauthorized,
	engine.CodeInvalidSession:       http.StatusUnauthorized,
	engine.CodeNotFound:             http.StatusNotFound,
	engine.CodeInstitutionNotFound:  http.StatusNotFound,
	engine.CodeMethodNotAllowed:     http.StatusMethodNotAllowed,
	engine.CodeKeyLimitReached:      http.StatusConflict,
	engine.CodePayloadTooLarge:      http.StatusRequestEntityTooLarge,
	engine.CodeUnsupportedMediaType: http.StatusUnsupportedMediaType,
	engine.CodeRateLimited:          http.StatusTooManyRequests,
	engine.CodeQuotaExceeded:        http.StatusTooManyRequests,
	engine.CodeRequestedTooSoon:     http.StatusTooManyRequests,
	engine.CodeInternalError:        http.StatusInternalServerError,
	engine.CodeNotImplemented:       http.StatusNotImplemented,
	engine.CodeDataUnavailable:      http.StatusServiceUnavailable,
	engine.CodeMailUnavailable:      http.StatusServiceUnavailable,
	engine.CodeOverloaded:           http.StatusServiceUnavailable,
	engine.CodeReadOnly:             http.StatusServiceUnavailable,
	engine.CodeNoMajority:           http.StatusServiceUnavailable,
}

// Status returns the HTTP status of the code of an API error. It is 500 for an unknown code.
func Status(code engine.Code) (status int, known bool) {
	if status, known = statuses[code]; known {
		return status, true
	}
	return http.StatusInternalServerError, false
}

// Codes returns the codes of all API errors.
func Codes() []engine.Code { return slices.Sorted(maps.Keys(statuses)) }
