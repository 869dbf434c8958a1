package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// TestQ7_Q8_ExactPaths: whatever is not a path of the contract, byte for byte, is 404, with the error body.
func TestQ7_Q8_ExactPaths(t *testing.T) {
	f := newFixture(t, nil)
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/rates/", "/V1/rates", "/v1/Rates", "//v1/rates", "/v1//rates", "/v1/./rates", "/v1/x/../rates",
		"/v1/%72ates", "/v1/rates%2Fbest", "/v1/rates/best/", "/v1/rates/worst", "/v1/institutions/", "/v1/institutions/bhd/",
		"/v1/institutions//", "/v1/institutions/bhd/rates", "/v1/convert;v=1", "/v1/currencies.json", "/v2/rates", "/favicon.ico",
		"http://api.example.do", "http://api.example.do?limit=1", "http://api.example.do//v1/rates",
	} {
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			if a := f.do(t, method, path); a.code(t) != "404 not_found" || a.header.Get("Location") != "" {
				t.Errorf("%s %s: %d, Location %q", method, path, a.status, a.header.Get("Location"))
			}
		}
		if a := f.do(t, "HEAD", path); a.status != 404 {
			t.Errorf("HEAD %s: %d", path, a.status)
		}
	}
	f.takes(t, "http://api.example.do/v1/currencies", "https://api.example.do:443/v1/rates?limit=1")
}

// TestQ11_Gzip: the header may have several lines; HEAD and long errors are compressed too. FuzzAcceptEncoding says
// what the header means.
func TestQ11_Gzip(t *testing.T) {
	f := newFixture(t, nil)
	for header, want := range map[string]string{"br\r\nAccept-Encoding: gzip": "gzip", "gzip;q=0\r\nAccept-Encoding: br": "", "*": "gzip", "": ""} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if got := f.do(t, method, "/v1/rates", "Accept-Encoding: "+header).header.Get("Content-Encoding"); got != want {
				t.Errorf("%s with %q: %q, want %q", method, header, got, want)
			}
		}
	}
	long := f.get(t, "/v1/rates?"+strings.Repeat("limit=1&", 40), "Accept-Encoding: gzip")
	if long.header.Get("Content-Encoding") != "gzip" || len(long.fault(t).Error.Details) == 0 {
		t.Errorf("a long error is not compressed: %v", long.header)
	}
}

// TestQ11_From1024Bytes: an answer of 1,024 bytes is compressed, one of 1,023 is not.
func TestQ11_From1024Bytes(t *testing.T) {
	const list = "/v1/rates?limit=1"
	for name, get := range map[string]func(text string, lines ...string) answer{
		"a list": func(text string, lines ...string) answer {
			f := newFixture(t, nil)
			f.service.published[0].SourceName = text
			return f.get(t, list, lines...)
		},
		"a conversion": func(text string, lines ...string) answer {
			f := newFixture(t, func(c *Config) { c.FeeNotice = text })
			return f.get(t, "/v1/convert?currency=USD&operation=sell&amount=1&limit=1", lines...)
		},
		"an error": func(text string, lines ...string) answer {
			f := newFixture(t, nil)
			f.service.fault = fault(engine.CodeDataUnavailable, text, 0)
			return f.get(t, list, lines...)
		},
	} {
		base := len(get("n").body) - 1
		for length, packed := range map[int]bool{1023: false, 1024: true} {
			a := get(strings.Repeat("n", length-base), "Accept-Encoding: gzip")
			if got := len(a.plain(t)); got != length || (a.header.Get("Content-Encoding") == "gzip") != packed {
				t.Errorf("%s of %d bytes, compressed: %t; want %d, %t", name, got, !packed, length, packed)
			}
		}
	}
}

// TestQ12_ETag: If-None-Match may have several lines; other data has another tag, another time has not. FuzzIfNoneMatch
// says what the header means.
func TestQ12_ETag(t *testing.T) {
	f := newFixture(t, nil)
	tag := f.get(t, bestTarget).header.Get("ETag")
	for want, matches := range map[int][]string{
		304: {tag, "*", "\"x\"\r\nIf-None-Match: " + tag},
		200: {`"x"`, "", "*\r\nIf-None-Match: \"x\""},
	} {
		for _, match := range matches {
			if a := f.get(t, bestTarget, "If-None-Match: "+match); a.status != want || a.header.Get("ETag") != tag || len(a.body) > 0 != (want == 200) {
				t.Errorf("If-None-Match %q: %d, want %d", match, a.status, want)
			}
		}
	}
	tags := map[string]string{}
	for _, query := range []string{"buy&amount=1", "buy&amount=1.0", "buy&amount=10", "sell&amount=1"} {
		tag := f.get(t, "/v1/convert?currency=USD&operation="+query).header.Get("ETag")
		if other, twice := tags[tag]; twice {
			t.Errorf("%s and %s have the same ETag", other, query)
		}
		tags[tag] = query
	}
	for operation, target := range goldenTargets() {
		f := newFixture(t, nil)
		tag := f.get(t, target).header.Get("ETag")
		f.clock.set(fakeNow().Add(5 * time.Second))
		if later := f.get(t, target).header.Get("ETag"); later != tag || !strings.HasPrefix(tag, `W/"`) {
			t.Errorf("%s: the ETag changes with generatedAt from %s to %s", operation, tag, later)
		}
		f.service.published, f.service.days, f.service.pages = f.service.published[:4], f.service.days[:60], map[any]any{}
		f.service.published[3].Sell, f.service.published[3].Buy = must(engine.ParseDecimal("59.31")), must(engine.ParseDecimal("58.01"))
		if changed := f.get(t, target); operation != "history" && operation != "currencies" && changed.header.Get("ETag") == tag {
			t.Errorf("%s: the ETag stays when the data changed", operation)
		}
	}
}

// TestQ13_CacheControl: max-age ends where the answer may change. Without limits the answer is the same for all, so
// caches may share it, and use it a little longer while they ask for a newer one, but not after it may have changed.
func TestQ13_CacheControl(t *testing.T) {
	at := func(hour, minute, second, nanosecond int) time.Time {
		return time.Date(2025, 11, 21, hour, minute, second, nanosecond, engine.Location())
	}
	for name, test := range map[string]struct {
		now, changesAt time.Time
		want, stale    string
	}{
		"far from everything":        {at(10, 0, 0, 0), time.Time{}, "60", "60"},
		"before a refresh":           {at(11, 59, 30, 0), time.Time{}, "30", "0"},
		"just before a refresh":      {at(11, 59, 59, 1), time.Time{}, "0", "0"},
		"at a refresh":               {at(12, 0, 0, 0), time.Time{}, "60", "60"},
		"before midnight":            {at(23, 59, 15, 0), time.Time{}, "45", "0"},
		"an expiry":                  {at(10, 0, 0, 0), at(10, 0, 20, 0), "20", "0"},
		"an expiry later":            {at(10, 0, 0, 0), at(10, 1, 20, 0), "60", "20"},
		"an expiry in a fraction":    {at(10, 0, 0, 500), at(10, 0, 20, 0), "19", "0"},
		"an expiry passed":           {at(10, 0, 0, 0), at(9, 59, 59, 0), "0", "0"},
		"an expiry after a refresh ": {at(16, 59, 50, 0), at(17, 0, 20, 0), "10", "0"},
	} {
		for f, want := range map[*fixture]string{
			newFixture(t, nil):           "public, max-age=" + test.want + ", stale-while-revalidate=" + test.stale,
			newFixtureWithLimits(t, nil): "private, max-age=" + test.want,
		} {
			f.clock.set(test.now)
			f.get(t, bestTarget)
			for _, page := range f.service.pages {
				page.(*engine.Page[*engine.Rate]).ChangesAt = test.changesAt
			}
			if got := f.get(t, bestTarget).header.Get("Cache-Control"); got != want {
				t.Errorf("%s: %q, want %s", name, got, want)
			}
		}
	}
}

// TestQ15_Switch: browsers may send Authorization where the node allows it. Golden files hold the other headers for
// browsers (decision Q14).
func TestQ15_Switch(t *testing.T) {
	for _, withAuth := range []bool{false, true} {
		f := newFixture(t, func(c *Config) { c.AllowAuthorizationHeader = withAuth })
		allowed := f.do(t, http.MethodOptions, "/v1/rates").header.Get("Access-Control-Allow-Headers")
		if strings.Contains(allowed, "Authorization") != withAuth {
			t.Errorf("with the switch %v the allowed headers are %q", withAuth, allowed)
		}
	}
}

func TestS10_FeeNotice(t *testing.T) {
	for configured, want := range map[string]string{"": engine.FeeNotice, `Sin "comisiones".`: `Sin "comisiones".`} {
		f := newFixture(t, func(c *Config) { c.FeeNotice = configured })
		item := f.get(t, "/v1/convert?currency=USD&operation=sell&amount=1").list(t).Data[0]
		if item["feeNotice"] != want || item["feesIncluded"] != false {
			t.Errorf("%v, want %q", item, want)
		}
	}
}

func TestQ9_PathID(t *testing.T) {
	f := newFixture(t, nil)
	for want, ids := range map[string][]string{
		"200": {"bhd", "%62hd", "b%68%64"},
		"404 institution_not_found": {
			"BHD", "no-such", "progreso", "%20", "a%2Fb", "%2e%2e", "a+b", "%00", "%2562hd", "%ff%fe", "ma%C3%B1ana",
			strings.Repeat("a", 80), strings.Repeat("%C3%B1", 80),
		},
		"400 invalid_parameters": {strings.Repeat("a", 81), strings.Repeat("%C3%B1", 81), "%", "%4", "%zz", "bhd%"},
	} {
		for _, id := range ids {
			a := f.get(t, "/v1/institutions/"+id)
			if a.code(t) != want {
				t.Errorf("%s: %s, want %s", id, a.body, want)
			}
			if a.status == 400 && !slices.Equal(a.problems(t), []string{"[id]: id " + params.ProblemID}) {
				t.Errorf("%s: %q", id, a.problems(t))
			}
		}
	}
}
