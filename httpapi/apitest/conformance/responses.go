package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// eachResponse returns a check of a rule (rule.check). It calls check with every recorded response.
func eachResponse(check func(*ruleRun, *response)) func(*ruleRun) {
	return func(k *ruleRun) {
		for _, res := range k.responses {
			check(k, res)
		}
	}
}

// wantHeader checks the value of a header. If want is "", the header must be missing.
func (k *ruleRun) wantHeader(res *response, name, want string) {
	if got := res.header.Get(name); got != want {
		k.errorf("%s: %s is %q, want %q", res, name, got, want)
	}
}

func checkContentType(k *ruleRun, res *response) {
	if res.status != http.StatusNoContent && res.status != http.StatusNotModified {
		k.wantHeader(res, "Content-Type", "application/json; charset=utf-8")
	}
	k.wantHeader(res, "X-Content-Type-Options", "nosniff")
}

func checkCORS(k *ruleRun, res *response) {
	k.wantHeader(res, "Access-Control-Allow-Credentials", "")
	if !res.isData() {
		k.wantHeader(res, "Access-Control-Allow-Origin", "")
		k.wantHeader(res, "Cache-Control", "no-store")
		return
	}
	k.wantHeader(res, "Access-Control-Allow-Origin", "*")
	if exposed := res.header.Get("Access-Control-Expose-Headers"); !strings.Contains(exposed, "ETag") || !strings.Contains(exposed, "X-Request-Id") {
		k.errorf("%s: Access-Control-Expose-Headers is %q", res, exposed)
	}
}

func checkRequestIDs(k *ruleRun) {
	seen := map[string]bool{}
	for _, res := range k.responses {
		id := res.header.Get("X-Request-Id")
		if id == "" || seen[id] {
			k.errorf("%s: X-Request-Id is %q, which is empty or not unique", res, id)
		}
		seen[id] = true
		if f, ok := res.errorBody(); ok && f.Error.RequestID != id {
			k.errorf("%s: error.requestId is %q, X-Request-Id %q", res, f.Error.RequestID, id)
		}
	}
}

// errorBody decodes an error response. It returns false if the response is not an error or has no JSON body.
func (res *response) errorBody() (errorBody, bool) {
	var f errorBody
	return f, res.status >= http.StatusBadRequest && res.method != http.MethodHead && json.Unmarshal(res.body, &f) == nil
}

// statusByCode returns all error codes of the API, each with its status.
func statusByCode() map[string]int {
	statuses := map[string]int{}
	for status, codes := range map[int]string{
		400: "invalid_parameters malformed_request", 401: "missing_key invalid_key revoked_key account_suspended invalid_code invalid_session",
		404: "not_found institution_not_found", 405: "method_not_allowed", 408: "request_timeout", 409: "key_limit_reached", 413: "payload_too_large",
		415: "unsupported_media_type", 429: "rate_limited quota_exceeded code_requested_too_soon", 431: "headers_too_large",
		500: "internal_error", 503: "data_unavailable overloaded read_only no_majority",
	} {
		for _, code := range strings.Fields(codes) {
			statuses[code] = status
		}
	}
	return statuses
}

func checkErrorCode(k *ruleRun, res *response) {
	f, ok := res.errorBody()
	switch {
	case res.status < http.StatusBadRequest || res.method == http.MethodHead:
	case !ok || f.Error.Message == "":
		k.errorf("%s: not an API error: %.300s", res, res.body)
	case statusByCode()[f.Error.Code] != res.status:
		k.errorf("%s: error.code is %q", res, f.Error.Code)
	}
	if challenge := res.header.Get("WWW-Authenticate"); res.status == http.StatusUnauthorized && !strings.HasPrefix(challenge, "Bearer realm=") {
		k.errorf("%s: WWW-Authenticate is %q", res, challenge)
	}
}

func checkDetails(k *ruleRun, res *response) {
	f, _ := res.errorBody()
	if len(f.Error.Details) > 0 && res.status != http.StatusBadRequest {
		k.errorf("%s has details", res)
	}
	for _, d := range f.Error.Details {
		if len(d.Path) == 0 || d.Message == "" {
			k.errorf("%s: a detail without path or message: %+v", res, d)
		}
	}
}

func checkRetryAfter(k *ruleRun, res *response) {
	value := res.header.Get("Retry-After")
	seconds, err := strconv.Atoi(value)
	required := res.status == http.StatusTooManyRequests || res.status == http.StatusServiceUnavailable
	if required && (err != nil || seconds < 1) || !required && value != "" {
		k.errorf("%s: Retry-After is %q", res, value)
	}
}

func checkLimitHeaders(k *ruleRun) {
	names := []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy"}
	present, missing := "", ""
	for _, res := range k.responses {
		counted := res.isData() && (res.status == 200 || res.status == 304 || res.status == 400 || res.status == 429)
		if !counted {
			continue
		}
		for _, name := range names {
			if res.header.Get(name) != "" {
				present = res.String()
			} else {
				missing = res.String() + " without " + name
			}
		}
	}
	if present != "" && missing != "" {
		k.errorf("%s has limit headers, %s", present, missing)
	}
}

// schema describes a JSON object, or a list of objects.
type schema struct {
	required string // names of fields, separated by spaces
	optional string
	nested   map[string]schema // schemas of fields that are objects or lists
}

// schemas returns the schema of each response body by path, and of error responses as "error".
func schemas() map[string]schema {
	rate := schema{required: "institutionId currency quoteCurrency buy sell channel kind effectiveDate publishedAt upstreamSource id institutionName institutionType " +
		"website sourceId sourceName sourceUrl collectedAt lastCheckedAt expiresAt priority manual stale datePrecision"}
	meta := schema{required: "total nextCursor generatedAt quoteCurrency"}
	page := func(fields string, data schema) schema {
		return schema{required: fields, nested: map[string]schema{"data": data, "meta": meta}}
	}
	item := schema{required: "quote operation foreignAmount currency amountDop rate feesIncluded feeNotice", nested: map[string]schema{"quote": rate}}
	detail := schema{required: "id name type website description contact active rates", nested: map[string]schema{"rates": rate}}
	return map[string]schema{
		"/v1/currencies":    page("data", schema{required: "code name symbol quoteCount currentQuoteCount"}),
		"/v1/institutions":  page("data meta", schema{required: "id name type website description contact active currencies currentQuoteCount"}),
		"/v1/institutions/": page("data", detail),
		"/v1/rates":         page("data meta", rate),
		"/v1/rates/best":    page("data meta operation", rate),
		"/v1/rates/history": page("data meta", schema{required: "date institutionId currency channel kind buy sell sourceId datePrecision"}),
		"/v1/convert":       page("data meta", item),
		"error": {required: "error", nested: map[string]schema{"error": {
			required: "code message", optional: "requestId details", nested: map[string]schema{"details": {required: "path message"}},
		}}},
	}
}

// problems lists the missing and unknown fields of a value. If value is a list, all its items must have the schema.
func (s schema) problems(path string, value any) []string {
	var problems []string
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if _, ok := item.(map[string]any); ok {
				problems = append(problems, s.problems(path, item)...)
			}
		}
	case map[string]any:
		required, optional := strings.Fields(s.required), strings.Fields(s.optional)
		for _, name := range required {
			if _, ok := v[name]; !ok {
				problems = append(problems, fmt.Sprintf("%s has no %s", path, name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(required, name) && !slices.Contains(optional, name) {
				problems = append(problems, fmt.Sprintf("%s has a field %s", path, name))
			}
			if nested, ok := s.nested[name]; ok {
				problems = append(problems, nested.problems(path+"."+name, v[name])...)
			}
		}
	}
	return problems
}

func checkSchemas(k *ruleRun) {
	byPath, reported := schemas(), map[string]bool{}
	for _, res := range k.responses {
		if !res.isData() || res.method != http.MethodGet || len(res.body) == 0 || res.header.Get("Content-Encoding") != "" {
			continue
		}
		path, _, _ := strings.Cut(res.target, "?")
		if strings.HasPrefix(path, "/v1/institutions/") {
			path = "/v1/institutions/"
		}
		if res.status >= http.StatusBadRequest {
			path = "error"
		}
		want, ok := byPath[path]
		var body any
		if !ok || json.Unmarshal(res.body, &body) != nil {
			k.errorf("%s: not JSON, or a body that the API specification does not have: %.100s", res, res.body)
			continue
		}
		for _, problem := range want.problems(path, body) {
			if !reported[problem] {
				reported[problem] = true
				k.errorf("%s: %s", res, problem)
			}
		}
	}
}
