package httpapi

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// problems lists the details of a 400 as "path: message".
func (a answer) problems(t testing.TB) []string {
	t.Helper()
	if a.status != http.StatusBadRequest {
		t.Fatalf("status %d, want 400: %s", a.status, a.body)
	}
	var found []string
	for _, d := range a.fault(t).Error.Details {
		found = append(found, fmt.Sprint(d.Path)+": "+d.Message)
	}
	return found
}

// refuses checks that a target is answered 400 with one problem of that path, whose message has that part.
func (f *fixture) refuses(t *testing.T, target, path, part string) {
	t.Helper()
	problems := f.get(t, target).problems(t)
	if len(problems) != 1 || !strings.HasPrefix(problems[0], path+": ") || !strings.Contains(problems[0], part) {
		t.Errorf("%s: problems %q, want one of %s with %q", target, problems, path, part)
	}
}

func TestQ1_UnknownParameter(t *testing.T) {
	f := newFixture(t, nil)
	f.refuses(t, "/v1/rates?curency=USD", "[curency]", "nearest known name is currency")
	f.refuses(t, "/v1/rates?Limit=3", "[Limit]", "nearest known name is limit")
	f.refuses(t, "/v1/rates?x=1&x=2", "[x]", "")
	f.refuses(t, "/v1/rates?operation=buy", "[operation]", "not known")
	f.refuses(t, "/v1/rates?amount=1", "[amount]", "not known")
	f.refuses(t, "/v1/rates/best?currency=USD&operation=buy&form=2025-01-01", "[form]", "nearest")
	f.refuses(t, "/v1/currencies?limit=1", "[limit]", "takes no parameters")
	f.refuses(t, "/v1/institutions/bhd?currency=USD", "[currency]", "takes no parameters")
	f.refuses(t, "/v1/institutions?kind=reference", "[kind]", "nearest known name is limit")
	f.refuses(t, "/v1/rates?=1", "[]", "")
	f.refuses(t, "/v1/rates?"+strings.Repeat("n", 200)+"=1", "["+strings.Repeat("n", namePartBytes)+"]", "nearest")
	for _, target := range []string{"/v1/rates?", "/v1/rates?&", "/v1/rates?limit=1&&cursor=2&", "/v1/rates?%6cimit=1"} {
		if a := f.get(t, target); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", target, a.status, a.body)
		}
	}
}

func TestQ1_Switch(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.AllowUnknownParameters = true })
	if a := f.get(t, "/v1/currencies?utm_source=x&limit=0"); a.status != http.StatusOK {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	f.refuses(t, "/v1/rates?utm_source=x&limit=0", "[limit]", "whole number")
	f.refuses(t, "/v1/rates?token=x", "[token]", "Authorization")
}

func TestQ1_ManyUnknownAreBounded(t *testing.T) {
	var names []string
	for i := range 500 {
		names = append(names, "n"+strconv.Itoa(i)+"=1")
	}
	if problems := newFixture(t, nil).get(t, "/v1/rates?"+strings.Join(names, "&")).problems(t); len(problems) != problemsMax {
		t.Errorf("%d problems, want %d", len(problems), problemsMax)
	}
}

func TestQ2_Repeated(t *testing.T) {
	f := newFixture(t, nil)
	f.refuses(t, "/v1/rates?currency=USD&currency=USD", "[currency 1]", "repeated")
	f.refuses(t, "/v1/rates?currency=USD&%63urrency=EUR", "[currency 1]", "repeated")
	want := []string{"[limit 1]: limit must not be repeated", "[limit 2]: limit must not be repeated"}
	if got := f.get(t, "/v1/rates?limit=1&limit=2&limit=x").problems(t); !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
}

func TestQ3_ByteExactValues(t *testing.T) {
	f := newFixture(t, nil)
	refused := map[string][]string{
		"currency":    {"", "usd", "US", "USDX", "US1", "USD%20", "+USD", "%55%53", "US%C3%91"},
		"institution": {"", "BHD", "b_d", "bhd%20", "b.d", "b%C3%B1d", "a+b"},
		"channel":     {"", "Cash", "cash%20", "atm"},
		"kind":        {"", "Reference", "any"},
		"limit":       {"", "0", "201", "+5", "-1", "010", "00", "5.0", "5e0", "%20", "1%00", "0x1", "9999999", "99999999999999999999", "%D9%A1"},
		"cursor":      {"", "-0", "100001", "+0", "00", "01", "1.0", "%20", "1000000"},
	}
	for name, values := range refused {
		for _, value := range values {
			f.refuses(t, "/v1/rates?"+name+"="+value, "["+name+"]", "must be")
		}
		f.refuses(t, "/v1/rates?"+name, "["+name+"]", "must be")
		for _, value := range []string{"%zz", "%", "%2", "US%G0", "%%20"} {
			f.refuses(t, "/v1/rates?"+name+"="+value, "["+name+"]", "hexadecimal")
		}
	}
	for _, operation := range []string{"", "Buy", "buy%20", "compra"} {
		f.refuses(t, "/v1/rates/best?currency=USD&operation="+operation, "[operation]", "buy or sell")
	}
	for _, amount := range []string{"", "1,5", ".5", "5.", "1.234", "-1", "+1", "1e3", "1234567890123", "1%20"} {
		f.refuses(t, "/v1/convert?currency=USD&operation=buy&amount="+amount, "[amount]", "digits")
	}
	for _, target := range []string{
		"/v1/rates?limit=1&cursor=0", "/v1/rates?limit=200&cursor=100000", "/v1/rates?currency=%55SD&kind=reference&channel=cash&institution=bhd",
		"/v1/convert?currency=USD&operation=buy&amount=999999999999.99",
	} {
		if a := f.get(t, target); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", target, a.status, a.body)
		}
	}
}

func TestQ3_AllProblemsTogether(t *testing.T) {
	problems := newFixture(t, nil).get(t, "/v1/convert?limit=0&operation=x&limit=1&colour=red&cursor=%zz&apikey=s").problems(t)
	var paths []string
	for _, problem := range problems {
		path, _, _ := strings.Cut(problem, ": ")
		paths = append(paths, path)
	}
	want := []string{"[limit]", "[operation]", "[limit 1]", "[colour]", "[cursor]", "[apikey]", "[currency]", "[amount]"}
	if !slices.Equal(paths, want) {
		t.Errorf("paths %q, want %q", paths, want)
	}
}

func TestQ4_KeyInURL(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		f := newFixture(t, func(c *Config) { c.AllowUnknownParameters = lenient })
		for _, name := range []string{"api_key", "apikey", "access_key", "key", "token", "API_KEY", "Token"} {
			for _, path := range []string{"/v1/rates", "/v1/currencies", "/v1/institutions/bhd"} {
				f.refuses(t, path+"?"+name+"=s3cret", "["+name+"]", "Authorization header")
				if a := f.get(t, path+"?"+name+"=s3cret"); strings.Contains(string(a.body), "s3cret") {
					t.Errorf("the answer repeats the key: %s", a.body)
				}
			}
		}
	}
}

func TestP9_WellFormedButUnmatched(t *testing.T) {
	f := newFixture(t, nil)
	for _, target := range []string{
		"/v1/rates?currency=XXX", "/v1/rates?institution=no-such-bank", "/v1/rates/best?currency=XXX&operation=buy",
		"/v1/convert?currency=XXX&operation=sell&amount=1", "/v1/rates/history?institution=-", "/v1/institutions?currency=XXX",
		"/v1/rates?institution=" + strings.Repeat("a", 300),
	} {
		list := f.get(t, target).list(t)
		if list.Data == nil || len(list.Data) > 0 || list.Meta.Total != 0 || list.Meta.NextCursor != nil {
			t.Errorf("%s: %+v", target, list)
		}
	}
}

// asks is the history question that a target becomes.
func (f *fixture) asks(t *testing.T, target string) engine.HistoryQuery {
	t.Helper()
	if a := f.get(t, target); a.status != http.StatusOK {
		t.Fatalf("%s: %d %s", target, a.status, a.body)
	}
	question, ok := f.service.lastAsked().(engine.HistoryQuery)
	if !ok {
		t.Fatalf("%s asked %v", target, f.service.lastAsked())
	}
	return question
}

func TestT6_DefaultRange(t *testing.T) {
	f := newFixture(t, nil)
	tests := []struct{ query, from, to string }{
		{"", "2025-11-15", "2025-11-21"},
		{"?from=2025-11-01", "2025-11-01", "2025-11-21"},
		{"?to=2025-03-03", "2025-02-25", "2025-03-03"},
		{"?from=2025-01-31&to=2025-02-01", "2025-01-31", "2025-02-01"},
		{"?to=2025-02-01&from=2025-02-01", "2025-02-01", "2025-02-01"},
	}
	for _, test := range tests {
		q := f.asks(t, "/v1/rates/history"+test.query)
		if q.From.String() != test.from || q.To.String() != test.to {
			t.Errorf("%q: %s to %s, want %s to %s", test.query, q.From, q.To, test.from, test.to)
		}
	}
	// 23:59 in Santo Domingo is tomorrow in UTC (T2).
	f.clock.set(time.Date(2025, 11, 22, 3, 59, 59, 0, time.UTC))
	if q := f.asks(t, "/v1/rates/history"); q.To.String() != "2025-11-21" {
		t.Errorf("at 23:59:59 the range ends %s", q.To)
	}
	f.clock.set(time.Date(2025, 11, 22, 4, 0, 0, 0, time.UTC))
	if q := f.asks(t, "/v1/rates/history"); q.To.String() != "2025-11-22" {
		t.Errorf("at midnight the range ends %s", q.To)
	}
}

func TestT7_BackwardsRange(t *testing.T) {
	f := newFixture(t, nil)
	f.refuses(t, "/v1/rates/history?from=2025-02-02&to=2025-02-01", "[from]", "later than to")
}

func TestT8_RangeTooLong(t *testing.T) {
	f := newFixture(t, nil)
	f.refuses(t, "/v1/rates/history?from=2024-01-01&to=2025-01-01", "[from]", "365 days")
	f.refuses(t, "/v1/rates/history?from=2020-01-01", "[from]", "365 days")
	f.asks(t, "/v1/rates/history?from=2023-01-01&to=2024-01-01")
	f.asks(t, "/v1/rates/history?from=2024-11-21")
	if problems := f.get(t, "/v1/rates/history?from=x&to=2025-01-01").problems(t); len(problems) != 1 {
		t.Errorf("a range without a beginning is measured: %q", problems)
	}
}

func TestT9_FutureDays(t *testing.T) {
	f := newFixture(t, nil)
	for _, query := range []string{"from=2030-01-01", "from=2030-01-01&to=2030-02-01", "to=2030-02-01", "to=0001-01-01"} {
		if list := f.get(t, "/v1/rates/history?"+query).list(t); list.Meta.Total != 0 {
			t.Errorf("%s: %d rows", query, list.Meta.Total)
		}
	}
}

func TestT10_StrictDates(t *testing.T) {
	f := newFixture(t, nil)
	for _, date := range []string{"", "2025-02-29", "2025-2-01", "25-02-01", "2025-13-01", "2025-00-10", "2025-04-31", "20250401", "2025-04-01T00:00:00Z", "2025-04-01%20", "+025-04-01", "0000-01-01"} {
		f.refuses(t, "/v1/rates/history?from="+date, "[from]", "calendar date")
		f.refuses(t, "/v1/rates/history?to="+date, "[to]", "calendar date")
	}
	f.asks(t, "/v1/rates/history?from=2024-02-29&to=2024-02-29")
}

// TestQuery_OwnsItsMemory: nothing of a query points into the request.
func TestQuery_OwnsItsMemory(t *testing.T) {
	table := parameters()
	text := []byte("currency=USD&operation=sell&amount=12.50&institution=bhd&channel=cash&kind=reference&limit=7&cursor=8")
	options := readOptions{catalogue: fakeCatalogue(), today: engine.DateOf(fakeNow())}
	q, problems := table.read(opConvert, nil, text, options)
	if problems != nil {
		t.Fatal(problems)
	}
	amount, err := engine.ParseAmount("12.50")
	if err != nil {
		t.Fatal(err)
	}
	want := query{currency: "USD", operation: engine.Sell, amount: amount, institution: "bhd", channel: engine.Cash, kind: engine.Reference, limit: 7, cursor: 8}
	for i := range text {
		text[i] = '#'
	}
	if !reflect.DeepEqual(q, want) {
		t.Errorf("the query is %+v, want %+v", q, want)
	}
	path := []byte("/v1/institutions/no-such")
	q, _ = table.read(opInstitution, path, nil, options)
	copy(path, "########################")
	if q.id != "no-such" {
		t.Errorf("the id is %q", q.id)
	}
}
