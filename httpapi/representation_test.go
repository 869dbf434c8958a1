package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func TestQ5_HeadAndOptions(t *testing.T) {
	for operation, target := range goldenTargets() {
		f := newFixture(t, nil)
		get, head := f.get(t, target), f.do(t, http.MethodHead, target)
		for _, a := range []answer{get, head} {
			a.header.Del("X-Request-Id")
			a.header.Del("Date")
		}
		if head.status != get.status || len(head.body) > 0 || fmt.Sprint(head.header) != fmt.Sprint(get.header) {
			t.Errorf("HEAD of %s: %d %v, GET: %d %v", operation, head.status, head.header, get.status, get.header)
		}
		if want := strconv.Itoa(len(get.body)); head.header.Get("Content-Length") != want {
			t.Errorf("HEAD of %s: Content-Length %q, want %s", operation, head.header.Get("Content-Length"), want)
		}
		f.service.panics = "OPTIONS must not ask the service"
		a := f.do(t, http.MethodOptions, target, "Origin: https://example.org", "Access-Control-Request-Method: GET")
		if a.status != http.StatusNoContent || a.header.Get("Allow") != "GET, HEAD, OPTIONS" ||
			a.header.Get("Access-Control-Allow-Methods") != "GET, HEAD, OPTIONS" || len(a.body) > 0 {
			t.Errorf("OPTIONS of %s: %d %v", operation, a.status, a.header)
		}
	}
	f := newFixture(t, nil)
	if a := f.do(t, http.MethodOptions, "*"); a.status != http.StatusNoContent || a.header.Get("Allow") == "" {
		t.Errorf("OPTIONS *: %d %v", a.status, a.header)
	}
	if a := f.do(t, http.MethodOptions, "/v1/nothing"); a.status != http.StatusNotFound {
		t.Errorf("OPTIONS of an unknown path: %d", a.status)
	}
	if a := f.do(t, http.MethodHead, "/v1/rates?limit=0"); a.status != http.StatusBadRequest || len(a.body) > 0 {
		t.Errorf("HEAD with a bad parameter: %d %q", a.status, a.body)
	}
}

func TestQ6_OtherMethods(t *testing.T) {
	for _, target := range goldenTargets() {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "TRACE", "get", "BREW"} {
			a := newFixture(t, nil).do(t, method, target)
			if a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "GET, HEAD, OPTIONS" {
				t.Errorf("%s %s: %d, Allow %q", method, target, a.status, a.header.Get("Allow"))
			}
			if code := a.fault(t).Error.Code; code != "method_not_allowed" {
				t.Errorf("%s %s: code %s", method, target, code)
			}
		}
	}
}

// TestQ7_Q8_ExactPaths: whatever is not a path of the contract, byte for byte, is 404, with the error body.
func TestQ7_Q8_ExactPaths(t *testing.T) {
	f := newFixture(t, nil)
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/rates/", "/V1/rates", "/v1/Rates", "//v1/rates", "/v1//rates", "/v1/./rates", "/v1/x/../rates",
		"/v1/%72ates", "/v1/rates%2Fbest", "/v1/rates/best/", "/v1/rates/worst", "/v1/institutions/", "/v1/institutions/bhd/",
		"/v1/institutions//", "/v1/institutions/bhd/rates", "/v1/convert;v=1", "/v1/currencies.json", "/v2/rates", "/favicon.ico",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS"} {
			a := f.do(t, method, path)
			if a.status != http.StatusNotFound || a.header.Get("Location") != "" {
				t.Errorf("%s %s: %d, Location %q", method, path, a.status, a.header.Get("Location"))
			}
			if method != "HEAD" && a.fault(t).Error.Code != "not_found" {
				t.Errorf("%s %s: %s", method, path, a.body)
			}
		}
	}
	for _, target := range []string{"http://api.example.do/v1/currencies", "https://api.example.do:443/v1/rates?limit=1"} {
		if a := f.get(t, target); a.status != http.StatusOK {
			t.Errorf("%s: %d", target, a.status)
		}
	}
	for _, target := range []string{"http://api.example.do", "http://api.example.do?limit=1", "http://api.example.do//v1/rates"} {
		if a := f.get(t, target); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", target, a.status)
		}
	}
}

func TestQ9_PathID(t *testing.T) {
	f := newFixture(t, nil)
	tests := []struct {
		id     string
		status int
	}{
		{"bhd", 200}, {"%62hd", 200}, {"b%68%64", 200},
		{"BHD", 404}, {"no-such", 404}, {"progreso", 404}, {"%20", 404}, {"a%2Fb", 404}, {"%2e%2e", 404}, {"a+b", 404}, {"%00", 404},
		{"%2562hd", 404}, {"%ff%fe", 404}, {"ma%C3%B1ana", 404},
		{strings.Repeat("a", 80), 404}, {strings.Repeat("%C3%B1", 80), 404},
		{strings.Repeat("a", 81), 400}, {strings.Repeat("%C3%B1", 81), 400}, {"%", 400}, {"%4", 400}, {"%zz", 400}, {"bhd%", 400},
	}
	for _, test := range tests {
		a := f.get(t, "/v1/institutions/"+test.id)
		if a.status != test.status {
			t.Errorf("%s: %d, want %d: %s", test.id, a.status, test.status, a.body)
		}
		if a.status == 404 && a.fault(t).Error.Code != "institution_not_found" {
			t.Errorf("%s: %s", test.id, a.body)
		}
		if a.status == 400 && !slices.Equal(a.problems(t), []string{"[id]: id " + problemID}) {
			t.Errorf("%s: %q", test.id, a.problems(t))
		}
	}
}

func TestQ10_ContentType(t *testing.T) {
	f := newFixture(t, nil)
	for _, target := range []string{"/v1/rates", "/v1/nothing", "/v1/rates?limit=0"} {
		for _, accept := range []string{"text/html", "application/xml;q=1", "*/*", "nonsense"} {
			a := f.get(t, target, "Accept: "+accept)
			if a.header.Get("Content-Type") != "application/json; charset=utf-8" || a.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s with Accept %s: %v", target, accept, a.header)
			}
		}
	}
	body := string(f.get(t, "/v1/rates?institution=capla").body)
	for _, verbatim := range []string{`Capla \"Cambio\" <&>`, "Lista \\\"A\\\" <&> \u2028 \\\\ \\u0001 \ufffd fin"} {
		if !strings.Contains(body, verbatim) {
			t.Errorf("no %q in %s", verbatim, body)
		}
	}
}

func TestQ11_Gzip(t *testing.T) {
	for operation, target := range goldenTargets() {
		f := newFixture(t, nil)
		plain := f.get(t, target)
		packed := f.get(t, target, "Accept-Encoding: gzip")
		want := ""
		if len(plain.body) >= gzipBytesMin {
			want = "gzip"
		}
		if packed.header.Get("Content-Encoding") != want || !bytes.Equal(packed.plain(t), plain.body) {
			t.Errorf("%s: %q for %d bytes", operation, packed.header.Get("Content-Encoding"), len(plain.body))
		}
		if plain.header.Get("Vary") != "Accept-Encoding" || plain.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", operation, plain.header)
		}
		f.clock.set(fakeNow().Add(1500 * time.Millisecond))
		if later := f.get(t, target, "Accept-Encoding: gzip"); !bytes.Equal(later.plain(t), f.get(t, target).body) {
			t.Errorf("%s: a second later gzip and plain differ", operation)
		}
		head := f.do(t, http.MethodHead, target, "Accept-Encoding: gzip")
		if head.header.Get("Content-Encoding") != want {
			t.Errorf("HEAD of %s: %v", operation, head.header)
		}
	}
}

func TestQ11_AcceptEncoding(t *testing.T) {
	tests := map[string]bool{
		"gzip": true, "GZIP": true, "x-gzip": true, "*": true, "deflate, gzip;q=1.0, *;q=0.5": true, "br;q=1, gzip;q=0.001": true,
		"gzip;q=0": false, "gzip;q=0.000": false, "gzip;q=0, *": false, "*;q=0": false, "br": false, "": false, "identity": false,
		"identity;q=1, gzip;q=0.5": false, "identity;q=0.5, gzip;q=0.5": true, "gzip;q=2": false, "gzip;q=x": false, "gzip;level=9": false,
		"gzip;q=1.001": false, "gzip;q=0.1234": false, "gzip; q=0.5": true, " gzip ,br": true, "gzipped": false, "gzip;q=": false, ",,gzip": true,
	}
	f := newFixture(t, nil)
	for header, want := range tests {
		a := f.get(t, "/v1/rates", "Accept-Encoding: "+header)
		if got := a.header.Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("%q: gzip is %v, want %v", header, got, want)
		}
	}
	if a := f.get(t, "/v1/rates", "Accept-Encoding: br", "Accept-Encoding: gzip"); a.header.Get("Content-Encoding") != "gzip" {
		t.Error("the second line of Accept-Encoding is not read")
	}
	long := f.get(t, "/v1/rates?"+strings.Repeat("limit=1&", 40), "Accept-Encoding: gzip")
	if long.header.Get("Content-Encoding") != "gzip" || len(long.fault(t).Error.Details) == 0 {
		t.Errorf("a long error is not compressed: %v", long.header)
	}
}

func TestQ12_ETag(t *testing.T) {
	for operation, target := range goldenTargets() {
		f := newFixture(t, nil)
		first := f.get(t, target)
		tag := first.header.Get("ETag")
		if !strings.HasPrefix(tag, `W/"`) {
			t.Errorf("%s: ETag %q", operation, tag)
		}
		f.clock.set(fakeNow().Add(5 * time.Second))
		if later := f.get(t, target); later.header.Get("ETag") != tag {
			t.Errorf("%s: the ETag changes with generatedAt", operation)
		}
		for _, match := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*", `W/"a,b" ,` + tag + `, "y"`} {
			a := f.get(t, target, "If-None-Match: "+match)
			if a.status != http.StatusNotModified || len(a.body) > 0 || a.header.Get("ETag") != tag ||
				!strings.HasPrefix(a.header.Get("Cache-Control"), "private") || a.header.Get("Vary") == "" || a.header.Get("X-Request-Id") == "" {
				t.Errorf("%s with %s: %d %v", operation, match, a.status, a.header)
			}
		}
		for _, other := range []string{`"x"`, `W/"x"`, "x", tag[3:], `*, ` + tag, `"broken, ` + tag, tag + "x", ""} {
			if a := f.get(t, target, "If-None-Match: "+other); a.status != http.StatusOK || !bytes.Contains(a.body, []byte(`{"data":`)) {
				t.Errorf("%s with %q: %d", operation, other, a.status)
			}
		}
		// Data that changed is another page, with another tag.
		f.service.published, f.service.days, f.service.pages = f.service.published[:4], f.service.days[:60], map[any]any{}
		f.service.published[3].Sell = mustDecimal("59.31")
		f.service.published[3].Buy = mustDecimal("58.01")
		if changed := f.get(t, target); operation != "history" && operation != "currencies" && changed.header.Get("ETag") == tag {
			t.Errorf("%s: the ETag stays when the data changed", operation)
		}
	}
}

// TestQ12_TwoLines: the lines of a list header are one list, and "*" is none of its items.
func TestQ12_TwoLines(t *testing.T) {
	f := newFixture(t, nil)
	tag := f.get(t, "/v1/rates").header.Get("ETag")
	if a := f.get(t, "/v1/rates", `If-None-Match: "x"`, "If-None-Match: "+tag); a.status != http.StatusNotModified {
		t.Errorf("the tag in the second line: %d", a.status)
	}
	if a := f.get(t, "/v1/rates", "If-None-Match: *", `If-None-Match: "x"`); a.status != http.StatusOK {
		t.Errorf("a star among tags: %d", a.status)
	}
}

// TestQ12_ConvertETag: another amount is another answer.
func TestQ12_ConvertETag(t *testing.T) {
	f := newFixture(t, nil)
	tags := map[string]string{}
	for _, query := range []string{"buy&amount=1", "buy&amount=1.0", "buy&amount=10", "sell&amount=1"} {
		tag := f.get(t, "/v1/convert?currency=USD&operation="+query).header.Get("ETag")
		if other, twice := tags[tag]; twice {
			t.Errorf("%s and %s have the same ETag", other, query)
		}
		tags[tag] = query
	}
}

func TestQ13_CacheControl(t *testing.T) {
	at := func(hour, minute, second, nanosecond int) time.Time {
		return time.Date(2025, 11, 21, hour, minute, second, nanosecond, engine.Location())
	}
	tests := []struct {
		name           string
		now, changesAt time.Time
		want           string
	}{
		{"far from everything", at(10, 0, 0, 0), time.Time{}, "60"},
		{"before a refresh", at(11, 59, 30, 0), time.Time{}, "30"},
		{"just before a refresh", at(11, 59, 59, 1), time.Time{}, "0"},
		{"at a refresh", at(12, 0, 0, 0), time.Time{}, "60"},
		{"before midnight", at(23, 59, 15, 0), time.Time{}, "45"},
		{"an expiry", at(10, 0, 0, 0), at(10, 0, 20, 0), "20"},
		{"an expiry in a fraction", at(10, 0, 0, 500), at(10, 0, 20, 0), "19"},
		{"an expiry passed", at(10, 0, 0, 0), at(9, 59, 59, 0), "0"},
		{"an expiry after the refresh", at(16, 59, 50, 0), at(17, 0, 20, 0), "10"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.clock.set(test.now)
			target := goldenTargets()["best"]
			f.get(t, target)
			for _, page := range f.service.pages {
				page.(*engine.Page[*engine.Rate]).ChangesAt = test.changesAt
			}
			if got := f.get(t, target).header.Get("Cache-Control"); got != "private, max-age="+test.want {
				t.Errorf("%q, want %s", got, test.want)
			}
		})
	}
	if got := newFixture(t, nil).get(t, "/v1/rates?limit=0").header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("an error may be stored: %q", got)
	}
}

func TestQ14_Q15_CORS(t *testing.T) {
	for _, withAuth := range []bool{false, true} {
		f := newFixture(t, func(c *Config) { c.AllowAuthorizationHeader = withAuth })
		for _, target := range []string{"/v1/rates", "/v1/rates?limit=0", "/v1/institutions/no-such", "/v1/currencies"} {
			a := f.get(t, target, "Origin: https://example.org")
			exposed := strings.Split(a.header.Get("Access-Control-Expose-Headers"), ", ")
			for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After", "Deprecation", "Sunset", "ETag", "X-Request-Id"} {
				if !slices.Contains(exposed, name) {
					t.Errorf("%s is not exposed", name)
				}
			}
			if a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s: %v", target, a.header)
			}
		}
		allowed := f.do(t, http.MethodOptions, "/v1/rates").header.Get("Access-Control-Allow-Headers")
		if strings.Contains(allowed, "Authorization") != withAuth {
			t.Errorf("with the switch %v the allowed headers are %q", withAuth, allowed)
		}
	}
}

// TestS9_Echo: amount and side come back verbatim.
func TestS9_Echo(t *testing.T) {
	f := newFixture(t, nil)
	for _, amount := range []string{"0", "0.00", "007.5", "1", "1.0", "1.10", "999999999999.99"} {
		list := f.get(t, "/v1/convert?currency=USD&operation=buy&amount="+url.QueryEscape(amount)).list(t)
		for _, item := range list.Data {
			rate := item["quote"].(map[string]any)["sell"]
			if item["foreignAmount"] != amount || item["rate"] != rate || item["operation"] != "buy" || item["feesIncluded"] != false {
				t.Errorf("amount %s: %v", amount, item)
			}
			if strings.Trim(amount, "0.") == "" && item["amountDop"] != "0.00" {
				t.Errorf("amount %s gives %v", amount, item["amountDop"])
			}
		}
		if len(list.Data) == 0 {
			t.Error("nothing was converted")
		}
	}
	first := f.get(t, "/v1/convert?currency=USD&operation=buy&amount=2.05").list(t).Data[1]
	if first["rate"] != "59.30" || first["amountDop"] != "121.57" {
		t.Errorf("2.05 × 59.30: %v", first)
	}
}

func TestS10_FeeNotice(t *testing.T) {
	const target = "/v1/convert?currency=USD&operation=sell&amount=1"
	if got := newFixture(t, nil).get(t, target).list(t).Data[0]["feeNotice"]; got != engine.FeeNotice {
		t.Errorf("the default notice is %q", got)
	}
	f := newFixture(t, func(c *Config) { c.FeeNotice = "Sin \"comisiones\"." })
	if got := f.get(t, target).list(t).Data[0]["feeNotice"]; got != "Sin \"comisiones\"." {
		t.Errorf("the configured notice is %q", got)
	}
}
