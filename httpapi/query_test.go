package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/httpapi/internal/params"
)

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
