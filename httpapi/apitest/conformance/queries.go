package conformance

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/httpapi/client"
)

func checkUnknownParameter(k *ruleRun) {
	for target, names := range map[string][2]string{
		"/v1/rates?curency=USD": {"curency", "currency"}, "/v1/rates/best?currency=USD&operation=buy&limt=1": {"limt", "limit"},
		"/v1/rates/history?form=2026-01-01": {"form", "from"},
	} {
		k.wantBadParameter(target, names[0])
		details := decode[errorBody](k, k.last()).Error.Details
		if !slices.ContainsFunc(details, func(d errorDetail) bool { return strings.Contains(d.Message, names[1]) }) {
			k.errorf("GET %s: no message names %q", target, names[1])
		}
	}
	k.wantBadParameter("/v1/currencies?limit=1", "limit")
	k.wantBadParameter("/v1/rates?amount=1", "amount")
}

func checkRepeated(k *ruleRun) {
	f := k.wantError("/v1/rates?currency=USD&currency=USD", http.StatusBadRequest, "invalid_parameters")
	if !slices.ContainsFunc(f.Error.Details, func(d errorDetail) bool { return reflect.DeepEqual(d.Path, []any{"currency", float64(1)}) }) {
		k.errorf("a repeated currency: no detail with the path [\"currency\",1]: %+v", f.Error.Details)
	}
}

func checkValues(k *ruleRun) {
	params := "?currency=" + k.currencies()[0]
	for _, c := range []struct {
		target, name string
		values       []string
	}{
		{"/v1/rates?", "currency", []string{"usd", "", "US", "USDD", "%20USD", "USD%20", "U$D"}},
		{"/v1/rates?", "institution", []string{"", "Popular", "a_b", "a%20b"}},
		{"/v1/rates?", "channel", []string{"", "Branch", "web"}},
		{"/v1/rates?", "kind", []string{"", "Reference", "all"}},
		{"/v1/rates?", "limit", []string{"0", "201", "+5", "010", "5.0", "", "x", "-1", "1e2"}},
		{"/v1/rates?", "cursor", []string{"-1", "100001", "00", "", "1.0"}},
		{"/v1/convert" + params + "&operation=buy&", "amount", []string{"", "-1", "1.", ".5", "1.234", "1e3", "1234567890123", "1,000", "%201"}},
		{"/v1/rates/best" + params + "&", "operation", []string{"", "Buy", "hold"}},
	} {
		for _, value := range c.values {
			k.wantBadParameter(c.target+c.name+"="+value, c.name)
		}
	}
	for target, names := range map[string]string{"/v1/convert": "currency operation amount", "/v1/rates/best?limit=0": "currency operation limit"} {
		for name := range strings.FieldsSeq(names) {
			k.wantBadParameter(target, name)
		}
	}
	k.getOK("/v1/rates?limit=200&cursor=100000")
}

func checkKeyInURL(k *ruleRun) {
	for _, name := range []string{"api_key", "apikey", "access_key", "key", "token"} {
		k.wantBadParameter("/v1/rates?"+name+"=anything", name)
	}
}

// operationPaths returns the path and query of one request for each operation of the API that reads data.
func (k *ruleRun) operationPaths() []string {
	rates := k.rates(client.Filter{})
	if len(rates) == 0 {
		k.fatalf("the server publishes no rates")
	}
	return []string{
		"/v1/currencies", "/v1/institutions", "/v1/institutions/" + rates[0].InstitutionID, "/v1/rates",
		"/v1/rates/best?operation=buy&currency=" + rates[0].Currency, "/v1/rates/history", "/v1/convert?operation=buy&amount=1&currency=" + rates[0].Currency,
	}
}

func checkHeadAndOptions(k *ruleRun) {
	for _, target := range k.operationPaths() {
		get := k.getOK(target)
		head := k.send(request{method: http.MethodHead, target: target, waitForLimit: true})
		if head.status != http.StatusOK || len(head.body) > 0 {
			k.errorf("%s with %d bytes", head, len(head.body))
		}
		k.wantHeader(head, "ETag", get.header.Get("ETag"))
		k.wantHeader(head, "Content-Length", strconv.Itoa(len(get.body)))
		options := k.send(request{method: http.MethodOptions, target: target})
		if options.status != http.StatusNoContent || !allows(options, "GET", "HEAD", "OPTIONS") || options.header.Get("Access-Control-Allow-Methods") == "" {
			k.errorf("%s: Allow %q, Access-Control-Allow-Methods %q", options, options.header.Get("Allow"), options.header.Get("Access-Control-Allow-Methods"))
		}
	}
}

func allows(res *response, methods ...string) bool {
	allowed := strings.Split(res.header.Get("Allow"), ", ")
	return !slices.ContainsFunc(methods, func(m string) bool { return !slices.Contains(allowed, m) })
}

func checkMethods(k *ruleRun) {
	for _, target := range k.operationPaths() {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			res := k.send(request{method: method, target: target})
			k.checkError(res, http.StatusMethodNotAllowed, "method_not_allowed")
			if !allows(res, "GET", "HEAD") {
				k.errorf("%s: Allow is %q", res, res.header.Get("Allow"))
			}
		}
	}
}

func checkPathIDs(k *ruleRun) {
	for _, id := range []string{"no-such-bank", "Popular", "a%20b", "%C3%A9", strings.Repeat("x", 80)} {
		k.wantError("/v1/institutions/"+id, http.StatusNotFound, "institution_not_found")
	}
	k.wantBadParameter("/v1/institutions/"+strings.Repeat("x", 81), "id")
}

const gzipBytesMin = 1 << 10 // smallest body that the server must compress

func checkGzip(k *ruleRun) {
	for _, target := range k.operationPaths() {
		plain, compressed := k.getOK(target), k.getOK(target, "Accept-Encoding", "gzip")
		if !strings.Contains(plain.header.Get("Vary"), "Accept-Encoding") {
			k.errorf("%s: Vary is %q", plain, plain.header.Get("Vary"))
		}
		k.wantHeader(plain, "Content-Encoding", "")
		if isGzip := compressed.header.Get("Content-Encoding") == "gzip"; isGzip != (len(plain.body) >= gzipBytesMin) {
			k.errorf("%s: %d bytes, Content-Encoding %q", compressed, len(plain.body), compressed.header.Get("Content-Encoding"))
			continue
		} else if !isGzip {
			continue
		}
		reader, err := gzip.NewReader(bytes.NewReader(compressed.body))
		if err != nil {
			k.errorf("%s: %v", compressed, err)
			continue
		}
		body, err := io.ReadAll(reader)
		compressed.body = body
		if err != nil || !sameExceptGeneratedAt(plain.body, body) {
			k.errorf("%s: the uncompressed body differs from the plain one: %v", compressed, err)
		}
	}
}

var generatedAtField = regexp.MustCompile(`"generatedAt":"[^"]*"`)

// sameExceptGeneratedAt reports whether two bodies differ in nothing but meta.generatedAt.
func sameExceptGeneratedAt(a, b []byte) bool {
	return bytes.Equal(generatedAtField.ReplaceAll(a, nil), generatedAtField.ReplaceAll(b, nil))
}

func checkETags(k *ruleRun) {
	for _, target := range k.operationPaths() {
		first := k.getOK(target)
		tag := first.header.Get("ETag")
		if !strings.HasPrefix(tag, `W/"`) || !strings.HasSuffix(tag, `"`) {
			k.errorf("%s: ETag is %q, want a weak one", first, tag)
			continue
		}
		for _, condition := range []string{tag, `"other", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
			again := k.get(target, "If-None-Match", condition)
			if again.status != http.StatusNotModified || len(again.body) > 0 || again.header.Get("ETag") != tag || again.header.Get("Cache-Control") == "" {
				k.errorf("%s with If-None-Match %s: ETag %s, %d bytes", again, condition, again.header.Get("ETag"), len(again.body))
			}
		}
		if other := k.get(target, "If-None-Match", `W/"other"`); other.status != http.StatusOK {
			k.errorf("%s with another ETag in If-None-Match", other)
		}
	}
	// Two seconds later the body differs only in generatedAt, and the ETag must be the same.
	first := k.getOK("/v1/rates")
	k.options.Wait(2 * time.Second)
	second := k.getOK("/v1/rates")
	before, after := first.header.Get("ETag"), second.header.Get("ETag")
	if sameExceptGeneratedAt(first.body, second.body) != (before == after) {
		k.errorf("%s: the ETag was %s and is %s; it must change exactly when the data does", second, before, after)
	}
}

const maxAgeLimit = 60 // longest max-age that a response may have, in seconds

// cacheControl returns max-age and stale-while-revalidate, in seconds. Only a response without limits may be public: it
// is the same for all callers.
func cacheControl(header http.Header) (age, stale int, ok bool) {
	text := header.Get("Cache-Control")
	if _, err := fmt.Sscanf(text, "public, max-age=%d, stale-while-revalidate=%d", &age, &stale); err == nil {
		return age, stale, header.Get("X-RateLimit-Limit") == "" && text == fmt.Sprintf("public, max-age=%d, stale-while-revalidate=%d", age, stale)
	}
	_, err := fmt.Sscanf(text, "private, max-age=%d", &age)
	return age, 0, err == nil && text == fmt.Sprintf("private, max-age=%d", age)
}

func checkMaxAge(k *ruleRun) {
	for _, target := range k.operationPaths() {
		res := k.getOK(target)
		age, stale, ok := cacheControl(res.header)
		if !ok || age > maxAgeLimit || stale > maxAgeLimit {
			k.errorf("%s: Cache-Control is %q", res, res.header.Get("Cache-Control"))
			continue
		}
		var body list[json.RawMessage]
		if json.Unmarshal(res.body, &body) != nil || body.Meta.GeneratedAt == "" {
			continue // the list of all currencies and the response about one institution have no field meta
		}
		cachedUntil := k.parseGeneratedAt(body.Meta.GeneratedAt).Add(time.Duration(age+stale) * time.Second)
		for _, raw := range body.Data {
			var r client.Rate
			if json.Unmarshal(raw, &r) == nil && r.ID != "" && !r.ExpiresAt.IsZero() && !r.Stale && cachedUntil.After(r.ExpiresAt.Add(time.Second)) {
				k.errorf("%s: Cache-Control allows caching until %s, but %s expires %s", res, cachedUntil, r.ID, r.ExpiresAt)
			}
		}
	}
	k.wantHeader(k.get("/v1/nothing"), "Cache-Control", "no-store")
}

func checkPreflight(k *ruleRun) {
	res := k.send(request{method: http.MethodOptions, target: "/v1/rates", header: []string{
		"Origin", "https://page.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization",
	}})
	if strings.Contains(strings.ToLower(res.header.Get("Access-Control-Allow-Headers")), "authorization") {
		k.notef("Authorization is allowed: --cors-authorization is on")
	}
	k.wantHeader(res, "Access-Control-Allow-Credentials", "")
}
