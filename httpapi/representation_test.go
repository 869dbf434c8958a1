package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	for length := range 36 { // of an amount: more forms than a page keeps
		target := "/v1/convert?currency=USD&operation=buy&amount=" + strings.Repeat("1", 1+length/3) + []string{"", ".2", ".22"}[length%3]
		if packed, plain := f.get(t, target, "Accept-Encoding: gzip").plain(t), f.get(t, target).body; !bytes.Equal(packed, plain) {
			t.Errorf("%s: compressed: %s, plain: %s", target, packed, plain)
		}
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

// refuses wants a target to be answered 400 with one problem of that path, whose message has that part.
func (f *fixture) refuses(t *testing.T, target, path, part string) {
	t.Helper()
	problems := f.get(t, target).problems(t)
	if len(problems) != 1 || !strings.HasPrefix(problems[0], "["+path+"]: ") || !strings.Contains(problems[0], part) {
		t.Errorf("%s: problems %q, want one of %s with %q", target, problems, path, part)
	}
}

func (f *fixture) takes(t *testing.T, targets ...string) {
	t.Helper()
	for _, target := range targets {
		if a := f.get(t, target); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", target, a.status, a.body)
		}
	}
}

// TestQ1_Q2_T8_Refused checks the messages for wrong parameters. FuzzQuery and TestDocument check the grammar.
func TestQ1_Q2_T8_Refused(t *testing.T) {
	f := newFixture(t, nil)
	for _, c := range []struct{ target, path, part string }{
		{"/v1/rates?Limit=3", "Limit", "nearest known name is limit"},
		{"/v1/rates?x=1&x=2", "x", ""},
		{"/v1/rates?curency=USD", "curency", "nearest known name is currency"},
		{"/v1/rates?operation=buy", "operation", "not known"},
		{"/v1/rates?amount=1", "amount", "not known"},
		{"/v1/rates/best?currency=USD&operation=buy&form=2025-01-01", "form", "nearest"},
		{"/v1/rates?currency=USD&currency=USD", "currency 1", "repeated"},
		{"/v1/rates?limit", "limit", "must be"},
		{"/v1/rates?currency=%", "currency", "hexadecimal"},
		{"/v1/rates/history?from=%2", "from", "hexadecimal"},
		{"/v1/rates/history?from=2024-01-01&to=2025-01-01", "from", "365 days"},
		{"/v1/currencies?limit=1", "limit", "takes no parameters"},
		{"/v1/institutions/bhd?currency=USD", "currency", "takes no parameters"},
		{"/v1/institutions?kind=reference", "kind", "nearest known name is limit"},
		{"/v1/rates?=1", "", ""},
		{"/v1/rates?" + strings.Repeat("n", 200) + "=1", strings.Repeat("n", params.NameBytesMax), "nearest"},
		{"/v1/rates?currency=USD&%63urrency=EUR", "currency 1", "repeated"},
		{"/v1/rates?currency=US", "currency", "the nearest known one is USD"},
		{"/v1/rates?currency=euro", "currency", "the nearest known one is EUR"},
		{"/v1/rates?currency=123", "currency", "as USD"},
		{"/v1/rates?institution=BHD", "institution", "the nearest known one is bhd"},
		{"/v1/rates?limit=%zz", "limit", "hexadecimal"},
		{"/v1/rates/history?from=2025-02-02&to=2025-02-01", "from", "later than to"},
		{"/v1/rates/history?from=2020-01-01", "from", "365 days"},
		{"/v1/rates/history?to=0000-01-01", "to", "calendar date"},
		{"/v1/rates/history?from=x&to=2025-01-01", "from", "calendar date"},
	} {
		f.refuses(t, c.target, c.path, c.part)
	}
	f.takes(t, "/v1/rates?", "/v1/rates?&", "/v1/rates?limit=1&&cursor=2&", "/v1/rates?%6cimit=1", "/v1/rates?limit=1&cursor=0", "/v1/rates?limit=200&cursor=100000",
		"/v1/rates?currency=%55SD&kind=reference&channel=cash&institution=bhd", "/v1/convert?currency=USD&operation=buy&amount=999999999999.99",
		"/v1/rates/history?from=2024-02-29&to=2024-02-29", "/v1/rates/history?from=2023-01-01&to=2024-01-01", "/v1/rates/history?from=2024-11-21")
	lenient := newFixture(t, func(c *Config) { c.AllowUnknownParameters = true })
	lenient.takes(t, "/v1/currencies?utm_source=x&limit=0")
	lenient.refuses(t, "/v1/rates?utm_source=x&limit=0", "limit", "whole number")
	for _, name := range []string{"api_key", "apikey", "access_key", "key", "token", "API_KEY", "Token"} { // Q4; TestS6_SecretElsewhere has the rest of it
		f.refuses(t, "/v1/rates?"+name+"=x", name, "Authorization header")
		lenient.refuses(t, "/v1/currencies?"+name+"=x", name, "Authorization header")
	}
	var many strings.Builder
	for i := range 500 {
		many.WriteString("n" + strconv.Itoa(i) + "=1&")
	}
	if problems := f.get(t, "/v1/rates?"+many.String()).problems(t); len(problems) != params.ProblemsMax {
		t.Errorf("%d problems, want %d", len(problems), params.ProblemsMax)
	}
	for target, want := range map[string]string{
		"/v1/convert?limit=0&operation=x&limit=1&colour=red&cursor=%zz&apikey=s&amount=1,5": "[limit] [operation] [limit 1] [colour] [cursor] [apikey] [amount] [currency]",
		"/v1/rates?limit=1&limit=2&limit=x":                                                 "[limit 1] [limit 2]",
	} {
		if got := f.get(t, target).paths(t); got != want {
			t.Errorf("%s: all problems together: %s, want %s", target, got, want)
		}
	}
	for _, query := range []string{"from=2030-01-01", "from=2030-01-01&to=2030-02-01", "to=2030-02-01", "to=0001-01-01"} { // T9
		if list := f.get(t, "/v1/rates/history?"+query).list(t); list.Meta.Total != 0 {
			t.Errorf("%s: %d rows", query, list.Meta.Total)
		}
	}
}

// TestT2_Today: at 23:59 in Santo Domingo it is tomorrow in UTC.
func TestT2_Today(t *testing.T) {
	midnight := time.Date(2025, 11, 22, 4, 0, 0, 0, time.UTC)
	for want, now := range map[string]time.Time{"2025-11-21": midnight.Add(-time.Second), "2025-11-22": midnight} {
		if got := newCurrentSecond(now).today.String(); got != want {
			t.Errorf("%v: %s, want %s", now, got, want)
		}
	}
}

// TestRendered_Concurrency: many ask for one page while the second turns; each answer is whole, and equal in both
// codings.
func TestRendered_Concurrency(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	const workers = 8
	stamp := regexp.MustCompile(`"generatedAt":"[^"]*"`)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for round := range sampledOrWhole(20, 60) {
				if worker == 0 {
					f.clock.set(fakeNow().Add(time.Duration(round) * 300 * time.Millisecond))
				}
				for _, target := range []string{"/v1/rates", bestTarget, "/v1/convert?currency=USD&operation=buy&amount=" + strconv.Itoa(round)} {
					a := f.get(t, target, "Accept-Encoding: "+[]string{"gzip", "identity"}[worker%2])
					body := a.plain(t)
					plain := f.get(t, target).body
					if !json.Valid(body) || !bytes.Equal(stamp.ReplaceAll(body, nil), stamp.ReplaceAll(plain, nil)) {
						t.Errorf("%s: %s, want %s", target, body, plain)
					}
				}
			}
		})
	}
	group.Wait()
}

func TestRequestIDs(t *testing.T) {
	ids := RequestIDs(7)
	var all sync.Map
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 1000 {
				id := ids()
				if _, repeated := all.LoadOrStore(id, true); repeated || strings.Trim(string(id[:]), "0123456789abcdef") != "" {
					t.Errorf("the id %s", id)
				}
			}
		})
	}
	group.Wait()
	if _, known := all.Load(RequestIDs(7)()); !known {
		t.Error("the ids do not follow from the seed")
	}
	if _, known := all.Load(RequestIDs(8)()); known {
		t.Error("another seed has the same ids")
	}
}

// TestP5_GeneratedAt: whole seconds in UTC, the present one, in every form of every page.
func TestP5_GeneratedAt(t *testing.T) {
	for operation, target := range goldenTargets() {
		if operation == "currencies" || operation == "institution" {
			continue
		}
		f := newFixture(t, nil)
		for _, step := range []time.Duration{0, 999 * time.Millisecond, time.Second, 3 * time.Second, time.Second, 26 * time.Hour} {
			f.clock.set(fakeNow().Add(step))
			want := fakeNow().Add(step).Truncate(time.Second).Format(time.RFC3339)
			for _, coding := range []string{"identity", "gzip"} {
				list := f.get(t, target, "Accept-Encoding: "+coding).list(t)
				if list.Meta.GeneratedAt != want || list.Meta.QuoteCurrency != "DOP" {
					t.Errorf("%s, %s, after %v: %s, want %s", operation, coding, step, list.Meta.GeneratedAt, want)
				}
			}
		}
	}
}
