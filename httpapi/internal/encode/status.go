package encode

import (
	"maps"
	"slices"

	"github.com/tasard/tasard/engine"
)

// statuses are the HTTP statuses of the codes of API errors.
var statuses = map[engine.Code]int{
	engine.CodeInvalidParameters:    400,
	engine.CodeMalformedRequest:     400,
	engine.CodeRequestTimeout:       408,
	engine.CodeHeadersTooLarge:      431,
	engine.CodeMissingKey:           401,
	engine.CodeInvalidKey:           401,
	engine.CodeRevokedKey:           401,
	engine.CodeAccountSuspended:     401,
	engine.CodeInvalidCode:          401,
	engine.CodeInvalidSession:       401,
	engine.CodeNotFound:             404,
	engine.CodeInstitutionNotFound:  404,
	engine.CodeMethodNotAllowed:     405,
	engine.CodeKeyLimitReached:      409,
	engine.CodePayloadTooLarge:      413,
	engine.CodeUnsupportedMediaType: 415,
	engine.CodeRateLimited:          429,
	engine.CodeQuotaExceeded:        429,
	engine.CodeRequestedTooSoon:     429,
	engine.CodeInternalError:        500,
	engine.CodeNotImplemented:       501,
	engine.CodeDataUnavailable:      503,
	engine.CodeMailUnavailable:      503,
	engine.CodeOverloaded:           503,
	engine.CodeReadOnly:             503,
	engine.CodeNoMajority:           503,
}

// Status returns the HTTP status of the code of an API error. It is 500 for an unknown code.
func Status(code engine.Code) (status int, known bool) {
	if status, known = statuses[code]; known {
		return status, true
	}
	return 500, false
}

// Codes returns the codes of all API errors.
func Codes() []engine.Code { return slices.Sorted(maps.Keys(statuses)) }
