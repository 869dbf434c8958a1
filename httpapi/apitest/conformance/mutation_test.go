package conformance_test

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/apitest/conformance"
)

// mutation is a proxy that breaks one thing of a server that keeps the contract.
type mutation struct {
	next           http.RoundTripper
	changeRequest  func(*http.Request)
	changeResponse func(*http.Request, *http.Response, []byte) []byte // returns the new body
}

func (b *mutation) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.changeRequest != nil {
		r = r.Clone(r.Context())
		b.changeRequest(r)
	}
	res, err := b.next.RoundTrip(r)
	if err != nil || b.changeResponse == nil {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if err := res.Body.Close(); err != nil {
		return nil, err
	}
	body = b.changeResponse(r, res, body)
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

// picker selects answers by their request and status.
type picker func(r *http.Request, status int) bool

func always(*http.Request, int) bool { return true }

func withStatus(status int) picker {
	return func(_ *http.Request, answered int) bool { return answered == status }
}

func withPath(path string) picker {
	return func(r *http.Request, _ int) bool { return r.URL.Path == path }
}

// breakAnswers is a mutation of some answers.
func breakAnswers(pick picker, change func(res *http.Response, body []byte) []byte) *mutation {
	return &mutation{changeResponse: func(r *http.Request, res *http.Response, body []byte) []byte {
		if !pick(r, res.StatusCode) {
			return body
		}
		return change(res, body)
	}}
}

func replaceBody(path, pattern, with string) *mutation {
	expression := regexp.MustCompile(pattern)
	return breakAnswers(withPath(path), func(_ *http.Response, body []byte) []byte { return expression.ReplaceAll(body, []byte(with)) })
}

func replaceInStatus(status int, from, to string) *mutation {
	return breakAnswers(withStatus(status), func(_ *http.Response, body []byte) []byte { return bytes.Replace(body, []byte(from), []byte(to), 1) })
}

func replaceHeader(pick picker, name, value string) *mutation {
	return breakAnswers(pick, func(res *http.Response, body []byte) []byte {
		res.Header.Del(name)
		if value != "" {
			res.Header.Set(name, value)
		}
		return body
	})
}

func replaceRequest(path string, change func(*http.Request)) *mutation {
	return &mutation{changeRequest: func(r *http.Request) {
		if r.URL.Path == path {
			change(r)
		}
	}}
}

func setParameter(name, from, to string) func(*http.Request) {
	return func(r *http.Request) {
		query := r.URL.Query()
		if from == "*" || query.Get(name) == from {
			query.Set(name, to)
			if to == "" {
				query.Del(name)
			}
			r.URL.RawQuery = query.Encode()
		}
	}
}

func setStatus(pick picker, to int) *mutation {
	return breakAnswers(pick, func(res *http.Response, body []byte) []byte {
		res.StatusCode = to
		return body
	})
}

func replaceStatus(from, to int, path string) *mutation {
	return setStatus(func(r *http.Request, status int) bool { return status == from && strings.HasPrefix(r.URL.Path, path) }, to)
}

func reverseItems(path string) *mutation {
	return breakAnswers(withPath(path), func(_ *http.Response, body []byte) []byte {
		start, end := bytes.Index(body, []byte(`"data":[{`)), bytes.LastIndex(body, []byte(`}],"meta"`))
		if start < 0 || end < 0 {
			return body
		}
		start += len(`"data":[{`)
		items := strings.Split(string(body[start:end]), `},{"institutionId"`)
		for i := range items[1:] {
			items[i+1] = `"institutionId"` + items[i+1]
		}
		slices.Reverse(items)
		return slices.Concat(body[:start], []byte(strings.Join(items, "},{")), body[end:])
	})
}

// mutations are broken servers, by the rule that must find them.
func mutations() map[string]map[string]*mutation {
	return map[string]map[string]*mutation{
		"S1":  {"convert applies the other side": replaceRequest("/v1/convert", setParameter("operation", "buy", "sell"))},
		"S2":  {"worst first": reverseItems("/v1/rates/best")},
		"S3":  {"priorities turned round": replaceBody("/v1/rates/best", `("institutionId":"ambar"[^}]*"priority":)100`, `${1}300`)},
		"S4":  {"only the best three": replaceBody("/v1/rates/best", `(?s)("data":\[\{.*?\}).*\],"meta"`, `$1],"meta"`), "expired ones too": replaceBody("/v1/rates", `"stale":true`, `"stale":false`)},
		"S5":  {"best of reference rates": replaceRequest("/v1/rates/best", setParameter("kind", "reference", "commercial"))},
		"S6":  {"no reference rates in convert": replaceRequest("/v1/convert", setParameter("kind", "reference", "commercial"))},
		"S8":  {"amounts are cut, not rounded": replaceBody("/v1/convert", `("amountDop":"\d+\.\d)\d"`, `${1}0"`)},
		"S9":  {"amounts get decimals": replaceBody("/v1/convert", `("foreignAmount":"\d+)"`, `$1.00"`), "the operation is not listed": replaceBody("/v1/rates/best", `"operation":"sell"`, `"operation":"buy"`)},
		"S10": {"fees are included": replaceBody("/v1/convert", `"feesIncluded":false`, `"feesIncluded":true`), "no notice": replaceBody("/v1/convert", `"feeNotice":"[^"]*"`, `"feeNotice":""`)},
		"P1":  {"pages overlap": replaceBody("/v1/rates", `"nextCursor":7,`, `"nextCursor":6,`), "the cursor is not looked at": replaceRequest("/v1/rates", setParameter("cursor", "*", "0"))},
		"P2":  {"one too many": replaceBody("/v1/institutions", `"total":1`, `"total":2`)},
		"P4":  {"rates turned round": reverseItems("/v1/rates"), "history turned round": replaceBody("/v1/rates/history", `"date":"2026-02-2`, `"date":"2026-03-2`)},
		"P5":  {"parts of seconds": replaceBody("/v1/rates", `("generatedAt":"[^"]*)Z"`, `$1.5Z"`), "another zone": replaceBody("/v1/institutions", `("generatedAt":"[^"]*)Z"`, `$1+00:00"`)},
		"P6":  {"counts without expired ones": replaceBody("/v1/currencies", `"quoteCount":2,`, `"quoteCount":1,`), "institutions count all": replaceBody("/v1/institutions", `"currentQuoteCount":0`, `"currentQuoteCount":2`)},
		"P7":  {"an unknown institution is 200": replaceStatus(404, 200, "/v1/institutions/"), "one is not listed": replaceBody("/v1/institutions", `"id":"ambar"`, `"id":"ambre"`)},
		"P8":  {"the currency is not looked at": replaceRequest("/v1/institutions", setParameter("currency", "*", ""))},
		"P9": {"nothing is 404": breakAnswers(always, func(res *http.Response, body []byte) []byte {
			if bytes.Contains(body, []byte(`"total":0`)) {
				res.StatusCode = 404
			}
			return body
		})},
		"P10": {"ids without the kind": replaceBody("/v1/rates", `:commercial"`, `"`)},
		"T1":  {"never stale": replaceBody("/v1/rates", `"stale":true`, `"stale":false`), "always stale": replaceBody("/v1/rates", `"stale":false`, `"stale":true`)},
		"T4":  {"never checked": replaceBody("/v1/rates", `"lastCheckedAt":"2026`, `"lastCheckedAt":"2025`)},
		"T5":  {"rows twice": replaceBody("/v1/rates/history", `("data":\[)(\{[^}]*\})`, `$1$2,$2`)},
		"T6": {"the default is another week": replaceRequest("/v1/rates/history", func(r *http.Request) {
			if r.URL.Query().Get("from") == "" && r.URL.Query().Get("to") == "" {
				setParameter("from", "*", "2026-03-01")(r)
			}
		})},
		"T7": {"a range is turned round": replaceRequest("/v1/rates/history", func(r *http.Request) {
			if q := r.URL.Query(); q.Get("from") > q.Get("to") && q.Get("to") != "" {
				setParameter("from", "*", q.Get("to"))(r)
			}
		})},
		"T8":  {"a range is cut": replaceRequest("/v1/rates/history", setParameter("from", "2024-01-01", "2024-06-01"))},
		"T9":  {"days ahead are an error": setStatus(func(r *http.Request, _ int) bool { return strings.Contains(r.URL.RawQuery, "from=2027") }, 400)},
		"T10": {"a day that there is not": replaceRequest("/v1/rates/history", setParameter("from", "2025-02-29", "2025-03-01"))},
	}
}

// moreMutations break requests, limits and headers.
func moreMutations() map[string]map[string]*mutation {
	data := withPath("/v1/rates")
	account := func(r *http.Request, _ int) bool { return strings.HasPrefix(r.URL.Path, "/v1/account/") }
	return map[string]map[string]*mutation{
		"Q1": {"unknown ones are ignored": replaceRequest("/v1/rates", setParameter("curency", "*", "")), "no hint": replaceBody("/v1/rates", `currency`, `something`)},
		"Q2": {"the last one counts": replaceRequest("/v1/rates", func(r *http.Request) {
			if len(r.URL.Query()["currency"]) > 1 {
				setParameter("currency", "*", "USD")(r)
			}
		})},
		"Q3": {"small letters are as good": replaceRequest("/v1/rates", setParameter("currency", "usd", "USD")), "201 is 200": replaceRequest("/v1/rates", setParameter("limit", "201", "200"))},
		"Q4": {"a key in the URL opens": replaceRequest("/v1/rates", setParameter("api_key", "anything", ""))},
		"Q5": {"HEAD has another tag": replaceHeader(func(r *http.Request, _ int) bool { return r.Method == "HEAD" }, "ETag", `W/"x"`), "OPTIONS is 200": replaceStatus(204, 200, "/v1/rates")},
		"Q6": {"POST is GET": replaceRequest("/v1/rates", func(r *http.Request) {
			r.Method = strings.Replace(r.Method, "POST", "GET", 1)
		}), "no Allow": replaceHeader(withStatus(405), "Allow", "")},
		"Q7":  {"an unknown path is 400": replaceStatus(404, 400, "/v1/nothing")},
		"Q8":  {"a slash at the end is forgiven": replaceRequest("/v1/rates/", func(r *http.Request) { r.URL.Path = "/v1/rates" })},
		"Q9":  {"long ids are 404": replaceStatus(400, 404, "/v1/institutions/")},
		"Q10": {"plain text": replaceHeader(withStatus(404), "Content-Type", "text/plain"), "sniffing": replaceHeader(withStatus(200), "X-Content-Type-Options", "")},
		"Q11": {"never compressed": {changeRequest: func(r *http.Request) { r.Header.Set("Accept-Encoding", "identity") }}},
		"Q12": {"never 304": {changeRequest: func(r *http.Request) { r.Header.Del("If-None-Match") }}, "strong": replaceHeader(withStatus(200), "ETag", `"x"`)},
		"Q13": {"kept for an hour": replaceHeader(data, "Cache-Control", "private, max-age=3600"), "shared": replaceHeader(data, "Cache-Control", "public, max-age=1, stale-while-revalidate=1"), "errors are kept": replaceHeader(withStatus(404), "Cache-Control", "private, max-age=5")},
		"Q14": {"no CORS on errors": replaceHeader(withStatus(400), "Access-Control-Allow-Origin", ""), "CORS on accounts": replaceHeader(account, "Access-Control-Allow-Origin", "*")},
		"Q15": {"with credentials": replaceHeader(func(r *http.Request, _ int) bool { return r.Method == "OPTIONS" }, "Access-Control-Allow-Credentials", "true")},
		"Q16": {"one id for all": replaceHeader(always, "X-Request-Id", "1"), "none on errors": replaceHeader(withStatus(405), "X-Request-Id", "")},
		"E1":  {"another code": replaceInStatus(405, `"code":"method_not_allowed"`, `"code":"wrong_method"`)},
		"E2":  {"details on 404": replaceInStatus(404, `}}`, `,"details":[{"path":["a"],"message":"b"}]}}`)},
		"L2":  {"one more is left than is granted": replaceHeader(withStatus(429), "X-RateLimit-Remaining", "1")},
		"L3":  {"the wider window": replaceHeader(withStatus(200), "X-RateLimit-Limit", "100000"), "milliseconds": replaceHeader(withStatus(200), "X-RateLimit-Reset", "1772467260000")},
		"L5":  {"not when to come again": replaceHeader(withStatus(429), "Retry-After", "0")},
		"L6": {"an error costs nothing": {changeRequest: func(r *http.Request) {
			if r.URL.RawQuery == "limit=0" {
				r.URL.Path, r.URL.RawQuery = "/v1/nothing", ""
			}
		}}},
		"L7": {"parameters before the method": replaceStatus(405, 400, "/v1/rates")},
		"L9": {"no limits on 304": replaceHeader(withStatus(304), "RateLimit", "")},
		"K1": {"a key opens the account": replaceStatus(401, 200, "/v1/account/keys"), "no Location": replaceHeader(withStatus(201), "Location", "")},
		"K2": {"wrong codes are distinguished": replaceInStatus(401, "invalid_code", "invalid_key")},
		"K3": {"a second code at once": replaceStatus(429, 202, "/v1/account/codes")},
		"K5": {"a third key": replaceStatus(409, 201, "/v1/account/keys")},
		"K8": {"a field more": replaceBody("/v1/rates", `"stale":`, `"fresh":true,"stale":`), "a field less": replaceBody("/v1/convert", `,"feesIncluded":false`, ``), "a meta on currencies": replaceBody("/v1/currencies", `\]\}$`, `],"meta":{}}`)},
		"K9": {"there are events": replaceStatus(404, 200, "/v1/events")},
	}
}

// TestMutationsAreFound checks that each mutation is found by its rule, that there is one for each rule, and that no
// rule fails without one.
func TestMutationsAreFound(t *testing.T) {
	listed := map[string]bool{}
	for _, table := range []map[string]map[string]*mutation{mutations(), moreMutations()} {
		for rule, mistakes := range table {
			listed[rule] = true
			for name, mistake := range mistakes {
				t.Run(rule+" "+name, func(t *testing.T) {
					t.Parallel()
					srv := apitest.Start(t, apitest.Seed("standard"), apitest.Quota(100_000, 0))
					options := optionsOf(srv)
					mistake.next = srv.Client.Transport
					options.Client, options.Rules = &http.Client{Transport: mistake}, []string{rule}
					if slices.Contains([]string{"Q10", "Q14", "Q16", "E1", "E2", "L5", "L9", "K8"}, rule) { // they need the answers of others
						options.Rules = append(options.Rules, "S10", "P1", "P6", "P7", "Q1", "Q6", "Q12", "L2", "K1")
					}
					findings := conformance.Check(t.Context(), srv.URL, options)
					at := slices.IndexFunc(findings, func(f conformance.Finding) bool { return f.Rule == rule })
					if at < 0 || len(findings[at].Problems) == 0 {
						t.Errorf("not found: %+v", findings)
					}
				})
			}
		}
	}
	srv := apitest.Start(t, apitest.Seed("standard"), apitest.Quota(100_000, 0))
	for _, finding := range conformance.Check(t.Context(), srv.URL, optionsOf(srv)) {
		if !listed[finding.Rule] || len(finding.Problems) > 0 {
			t.Errorf("%s: a breach is planted: %v; without a breach it tells %q", finding.Rule, listed[finding.Rule], finding.Problems)
		}
	}
}
