package apitest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/client"
)

// TestPublish checks that rates are served when Publish returns, and that rejected values are an error.
func TestPublish(t *testing.T) {
	srv := Start(t)
	mustAnswer(t, srv, srv.Client, "", http.StatusServiceUnavailable, "data_unavailable")
	srv.Publish(standardRate, Rate{Institution: "popular", Currency: "USD", Sell: "59.10", Channel: engine.Cash, EffectiveDate: "2026-03-01"})
	if got := rankedIDs(t, srv); len(got) != 2 || got[0] != "popular:USD:cash:commercial" {
		t.Error(got)
	}
	receipt := srv.Observe(engine.Refresh{SourceID: "x", ObservedAt: srv.Clock.Now(), Observations: []engine.Observation{{InstitutionID: "bhd", Currency: "USD", Buy: "0"}}})
	if len(receipt.Refused) != 1 || receipt.Refused[0].Reason != engine.Zero {
		t.Errorf("%+v", receipt)
	}
	lenient := Start(t, Lenient(), Rates(standardRate))
	lenient.Publish(Rate{Institution: "bhd", Currency: "USD", Buy: "78.50", Sell: "79.30"})
}

func TestRefused(t *testing.T) {
	srv, onPort := Start(t, Rates(standardRate)), Start(t, OnPort())
	with := func(srv *Server, do func(*Server)) func() error { return func() error { return srv.Do(do) } }
	n := func(do func(*Server)) func() error { return with(srv, do) }
	open := func(o Option) func() error { return func() error { _, err := Open(o); return err } }
	equal := Rates(Rate{Institution: "popular", Currency: "USD", Buy: "58.20", Sell: "58.20"})
	Start(t, equal, Lenient())
	for name, try := range map[string]func() error{
		"jump":   n(func(s *Server) { s.Publish(Rate{Institution: "bhd", Currency: "USD", Buy: "68.50", Sell: "69.30"}) }),
		"nobody": n(func(s *Server) { s.Publish(Rate{Institution: "nobody", Currency: "USD", Buy: "58"}) }),
		"date": n(func(s *Server) {
			s.Publish(Rate{Institution: "bhd", Currency: "USD", Buy: "58", EffectiveDate: "2026-02-30"})
		}),
		"days":          n(func(s *Server) { s.Announce(s.Clock.Now().Add(24 * time.Hour)) }),
		"no login code": n(func(s *Server) { s.Code("nobody@example.do") }),
		"nowhere":       n(func(s *Server) { s.ClientFrom("nowhere") }),
		"real address":  with(onPort, func(s *Server) { s.ClientFrom("192.0.2.7") }),
		"standard/v1":   open(Seed("standard/v0")),
		"does nothing":  n(func(s *Server) { s.Fault(Fault{}) }),
		"status 404":    n(func(s *Server) { s.Fault(Fault{Status: 404}) }),
		"429 with":      n(func(s *Server) { s.Fault(Fault{Status: 429, Code: engine.CodeOverloaded}) }),
		"has no status": n(func(s *Server) { s.Fault(Fault{Code: engine.CodeOverloaded}) }),
		"negative":      n(func(s *Server) { s.Fault(Fault{Status: 503, Times: -1}) }),
		"a number is":   n(func(s *Server) { s.Fault(Fault{Delay: -1}) }),
		"is negative":   n(func(s *Server) { s.Fault(Fault{Status: 500, RetryAfter: -1}) }),

		"the option Lenient) turns":                            open(equal),
		`"acme" is not in the catalogue; GET /v1/institutions`: open(Rates(Rate{Institution: "acme", Currency: "USD", Buy: "58.20", Sell: "59.20"})),
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error with %q: %v", name, err)
		}
	}
}

// TestDo checks that other panics pass through Do, and that nothing after a failed control runs.
func TestDo(t *testing.T) {
	srv := Start(t)
	if err := srv.Do(func(s *Server) { s.Fail("", 404, 1); t.Error("the control returned") }); err == nil {
		t.Error("no error")
	}
	defer func() {
		if cause := recover(); cause != "planted" {
			t.Errorf("cause: %v", cause)
		}
	}()
	t.Error(srv.Do(func(*Server) { panic("planted") }))
}

// TestSnapshotAndRestore restores a state repeatedly, with its accounts and its random source.
func TestSnapshotAndRestore(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits())
	srv.Key()
	state := srv.Snapshot()
	second := srv.Key()
	for range 2 {
		srv.Clock.Advance(time.Hour)
		srv.Publish(Rate{Institution: "popular", Currency: "USD", Buy: "58", Sell: "59"})
		if got := rankedIDs(t, srv); len(got) != 2 {
			t.Error(got)
		}
		srv.Restore(state)
		header := mustAnswer(t, srv, srv.Client, "", http.StatusOK, "")
		if got := rankedIDs(t, srv); len(got) != 1 || header.Get("Date") != Epoch().Format(http.TimeFormat) {
			t.Errorf("%s %s", header.Get("Date"), got)
		}
		if again := srv.Key(); again != second {
			t.Errorf("%s, then %s", second, again)
		}
	}
}

func TestKeys(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(3, 2), KeysRequired())
	mustAnswer(t, srv, srv.Client, "", http.StatusUnauthorized, "missing_key")
	first := srv.Key("ana@example.do")
	for _, want := range []int{200, 200, 429} {
		mustAnswer(t, srv, srv.Client, first, want, "")
	}
	srv.Clock.Advance(time.Minute)
	second := srv.Key("ana@example.do")
	mustAnswer(t, srv, srv.Client, second, http.StatusOK, "")
	mustAnswer(t, srv, srv.Client, first, http.StatusTooManyRequests, "quota_exceeded")
}

func TestClientFrom(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(0, 1))
	other := srv.ClientFrom("203.0.113.7")
	for _, c := range []struct {
		client *http.Client
		want   int
	}{{srv.Client, 200}, {srv.Client, 429}, {other, 200}, {other, 429}, {srv.ClientFrom("2001:db8::1"), 200}, {srv.ClientFrom("2001:db8::2"), 429}} {
		mustAnswer(t, srv, c.client, "", c.want, "")
	}
}

// TestAnnounce checks that the announcement is on every answer, and in force from its time on.
func TestAnnounce(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	at := srv.Clock.Now().Add(account.KeyNoticeMin)
	srv.Announce(at)
	if header := mustAnswer(t, srv, srv.Client, "", http.StatusOK, ""); header.Get("Sunset") != at.Format(http.TimeFormat) {
		t.Errorf("%v", header)
	}
	srv.Clock.Set(at)
	mustAnswer(t, srv, srv.Client, "", http.StatusUnauthorized, "missing_key")
}

// TestClock_Backwards checks that a node goes on when days come again.
func TestClock_Backwards(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits(), FollowClock(now))
	key := srv.Key()
	for _, by := range []time.Duration{0, 48 * time.Hour, -48 * time.Hour, 30 * 24 * time.Hour, -90 * 24 * time.Hour, 90 * 24 * time.Hour} {
		srv.Clock.Advance(by)
		for range 20 {
			get(t, srv.Client, srv.URL+"/v1/currencies", "Authorization", "Bearer "+key)
		}
		if by > 0 {
			srv.Crash()
		}
	}
}

// TestClose_Unread checks that a client that never reads its answer does not delay the end of the test.
func TestClose_Unread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Seed("standard"), FollowClock(now))
		res, err := srv.Client.Get(srv.URL + "/v1/rates/history?limit=200&from=2026-02-21")
		must(t, err)
		began := now()
		if err := srv.Close(); err != nil || now().Sub(began) > drainTimeout {
			t.Errorf("%v after %s", err, now().Sub(began))
		}
		_ = res.Body.Close()
	})
}

// TestServer_Fails checks that a control of a closed node fails the test, and so does a start that fails.
func TestServer_Fails(t *testing.T) {
	p := &fakeTB{}
	srv := Start(p)
	must(t, srv.Close())
	for _, control := range []func(){func() { srv.Publish() }, func() { srv.Code("ana@example.do") }, srv.Crash} {
		p.fatal = false
		if control(); !p.fatal {
			t.Error("a control of a closed node does not fail the test")
		}
	}
	p = &fakeTB{}
	if Start(p, Seed("none")); !p.fatal {
		t.Error("an unknown seed starts")
	}
}

func TestControl(t *testing.T) {
	srv := Start(t, Seed("standard"), Limits())
	handler, err := srv.ControlHandler()
	must(t, err)
	call := func(method, path, body string) (int, string) {
		request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		switch body {
		case "plain":
		case "same-site", "cross-site": // as fetch sends it: without a body it needs no content type
			request.Body, request.ContentLength = http.NoBody, 0
			request.Header.Set("Sec-Fetch-Site", body)
		default:
			request.Header.Set("Content-Type", "application/json")
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Code, strings.TrimSpace(answer.Body.String())
	}
	for _, step := range []struct {
		method, path, body string
		status             int
		part               string
	}{
		{"GET", "/_mock/clock", "", 200, `{"now":"2026-03-02T16:00:00Z"}`},
		{"POST", "/_mock/clock", `{"advance":"1h"}`, 200, `17:00:00Z`},
		{"POST", "/_mock/clock", `{"set":"2026-03-02T16:30:00Z"}`, 200, `16:30:00Z`},
		{"POST", "/_mock/clock", `{}`, 400, `either`},
		{"POST", "/_mock/clock", `{"advance":"soon"}`, 400, `advance`},
		{"POST", "/_mock/rates", `[{"institution":"cooperativa-norte","currency":"USD","buy":"58.20","sell":"58.80"}]`, 200, `{}`},
		{"POST", "/_mock/rates", `[{"institution":"ambar","currency":"USD","sell":"9"}]`, 400, `out_of_band`},
		{"POST", "/_mock/rates", `[{"institution":"ambar","currency":"USD","buy":"68.20","sell":"69.20"}]`, 400, `tasard mock --lenient`},
		{"POST", "/_mock/rates", `[{"institution":"acme","currency":"USD","sell":"59"}]`, 400, `tasard mock --catalogue FILE`},
		{"POST", "/_mock/rates", `[{"institution":"ambar","colour":"red"}]`, 400, `colour`},
		{"POST", "/_mock/faults", `{"route":"/v1/rates/best","status":503,"times":1,"retryAfter":"9s"}`, 200, `{}`},
		{"POST", "/_mock/faults", `{"status":404}`, 400, `404`},
		{"POST", "/_mock/faults", `{"delay":"long"}`, 400, `delay`},
		{"GET", best, "", 404, ``},
		{"DELETE", "/_mock/faults", "", 200, `{}`},
		{"POST", "/_mock/keys", ``, 200, `{"key":"tasard_test_`},
		{"POST", "/_mock/keys", `{"email":"ana@example.do"}`, 200, `{"key":"tasard_test_`},
		{"GET", "/_mock/codes?email=ana@example.do", "", 200, `{"code":"`},
		{"GET", "/_mock/codes?email=sol@example.do", "", 400, `no login code`},
		{"POST", "/_mock/crash", "plain", 400, `Content-Type`}, // a call that any page could make
		{"POST", "/_mock/reset", "cross-site", 400, `another site`},
		{"POST", "/_mock/reset", "same-site", 200, `{}`},
		{"POST", "/_mock/restart", "", 200, `{}`},
		{"POST", "/_mock/crash", "", 200, `{}`},
		{"POST", "/_mock/reset", "", 200, `{}`},
		{"GET", "/_mock/clock", "", 200, `{"now":"2026-03-02T16:00:00Z"}`},
		{"PUT", "/_mock/clock", "", 405, ``},
		{"GET", "/_mock/", "", 200, `{"controls":[{"description":"the time of the node"`},
		{"POST", "/_mock/faults", `{"route":"/v1/rate/best","status":503}`, 400, `no such route`},
	} {
		if status, body := call(step.method, step.path, step.body); status != step.status || !strings.Contains(body, step.part) {
			t.Errorf("%s %s %s: %d %s", step.method, step.path, step.body, status, body)
		}
	}
}

// TestParseFault checks the texts of --fail.
func TestParseFault(t *testing.T) {
	for text, want := range map[string]Fault{
		"503": {Status: 503}, "429": {Status: 429}, "500@/v1/rates/best": {Status: 500, Route: "/v1/rates/best"}, "503@GET /v1/rates": {Status: 503, Route: "GET /v1/rates"},
	} {
		got, err := ParseFault(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "404", "503:0.5", "0x1f7", ":1"} {
		if got, err := ParseFault(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// TestFail checks that each status and code has the body and headers of a real one, and costs nothing.
func TestFail(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits())
	key := srv.Key()
	remaining := ""
	for status, codes := range map[int][]engine.Code{
		429: {engine.CodeRateLimited, engine.CodeQuotaExceeded, engine.CodeRequestedTooSoon}, 500: {engine.CodeInternalError},
		503: {engine.CodeDataUnavailable, engine.CodeMailUnavailable, engine.CodeOverloaded, engine.CodeReadOnly, engine.CodeNoMajority},
	} {
		for _, code := range codes {
			srv.Fault(Fault{Route: "/v1/rates/best", Status: status, Code: code, RetryAfter: 7 * time.Second, Times: 1})
			got, body, header := get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+key)
			if got != status || errorCode(t, body) != string(code) || header.Get("Cache-Control") != "no-store" || header.Get("X-Request-Id") == "" {
				t.Errorf("%d %s: %d %s %v", status, code, got, body, header)
			}
			if want := map[bool]string{true: "7"}[status != 500]; header.Get("Retry-After") != want {
				t.Errorf("%s: Retry-After %q, want %q", code, header.Get("Retry-After"), want)
			}
			if zero := header.Get("X-RateLimit-Remaining") == "0"; zero != (status == 429) {
				t.Errorf("%s: %s remaining", code, header.Get("X-RateLimit-Remaining"))
			}
			if got, _, header = get(t, srv.Client, srv.URL+"/v1/rates?limit=1", "Authorization", "Bearer "+key); got != http.StatusOK {
				t.Errorf("another route: %d", got)
			}
			if remaining != "" && len(remaining) == len(header.Get("X-RateLimit-Remaining")) && remaining <= header.Get("X-RateLimit-Remaining") {
				t.Errorf("%s then %s remaining", remaining, header.Get("X-RateLimit-Remaining"))
			}
			remaining = header.Get("X-RateLimit-Remaining")
		}
	}
	if remaining != "51" { // after nine answered requests
		t.Errorf("%s remaining", remaining)
	}
}

// TestFault_Route: a fault that could never happen is refused.
func TestFault_Route(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	for route, valid := range map[string]bool{
		"": true, "/v1/rates/best": true, "GET /v1/rates": true, "HEAD /v1/rates": true, "POST /v1/account/codes": true, "/readyz": true,
		"/v1/institutions/{id}": true, "/v1/institutions/popular": true, "DELETE /v1/account/keys/{id}": true, "/account": true, "/openapi.json": true,
		"/v1/rate/best": false, "v1/rates": false, "/v1/rates?currency=USD": false, "get /v1/rates": false, "POST /v1/rates": false, "/v1/rates/": false,
	} {
		err := srv.Do(func(s *Server) { s.Fail(route, 503, 1) })
		if (err == nil) != valid {
			t.Errorf("%q: %v", route, err)
		}
		srv.ClearFaults()
	}
}

// TestFail_Times checks how often faults apply: n times, until they are cleared.
func TestFail_Times(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	failures := func(requests int) (failed int) {
		for range requests {
			if status, _, _ := get(t, srv.Client, srv.URL+best); status != http.StatusOK {
				failed++
			}
		}
		return failed
	}
	srv.Fail("/v1/rates/best", 503, 3)
	if got := failures(10); got != 3 {
		t.Errorf("three: %d", got)
	}
	srv.Fail("", 500, 0)
	if got := failures(10); got != 10 {
		t.Errorf("all: %d", got)
	}
	srv.ClearFaults()
	if got := failures(1); got != 0 {
		t.Errorf("cleared: %d", got)
	}
}

// TestDrop checks that a broken connection is an error of the client, and that the next request is
// answered.
func TestDrop(t *testing.T) {
	srv := Start(t, Seed("standard"))
	_, whole, _ := get(t, srv.Client, srv.URL+best, "Accept-Encoding", "identity")
	srv.Drop("/v1/rates/best", 0)
	if status, body, _, err := tryGet(t.Context(), t, srv.Client, srv.URL+best); err == nil {
		t.Errorf("dropped: %d %q", status, body)
	}
	srv.ClearFaults()
	if status, body, _ := get(t, srv.Client, srv.URL+best, "Accept-Encoding", "identity"); status != http.StatusOK || body != whole {
		t.Errorf("afterwards: %d %q", status, body)
	}
}

// TestDelay checks that a client with a timeout gives up, and that the end of the test does not wait.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Rates(standardRate), FollowClock(now))
		srv.Delay("/v1/rates/best", time.Hour, 0)
		impatient := *srv.Client
		impatient.Timeout = 20 * time.Millisecond
		if _, _, _, err := tryGet(t.Context(), t, &impatient, srv.URL+best); err == nil {
			t.Error("nothing was delayed")
		}
		if status, _, _ := get(t, srv.Client, srv.URL+"/v1/currencies"); status != http.StatusOK {
			t.Error(status)
		}
	})
}

// TestClearFaults_FreesDelayed checks that a request goes on at once when the fault that delays it is removed.
func TestClearFaults_FreesDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Seed("standard"), FollowClock(now))
		srv.Delay("/v1/rates/best", time.Hour, 0)
		began, answered := now(), make(chan int)
		go func() {
			status, _, _, _ := tryGet(t.Context(), t, srv.Client, srv.URL+best)
			answered <- status
		}()
		synctest.Wait() // until the request is delayed
		srv.ClearFaults()
		if status := <-answered; status != http.StatusOK || now().Sub(began) > time.Second {
			t.Errorf("%d after %s", status, now().Sub(began))
		}
	})
}

func TestFault_Matches(t *testing.T) {
	for _, c := range []struct {
		route, method, path string
		want                bool
	}{
		{"/v1/institutions/{id}", "GET", "/v1/institutions/bhd", true}, {"/v1/institutions/{id}", "GET", "/v1/institutions/", false},
		{"/v1/institutions", "GET", "/v1/institutions/bhd", false}, {"POST /v1/account/codes", "GET", "/v1/account/codes", false},
		{"POST ", "POST", "/v1/account/codes", true}, {"", "GET", "/", true}, {"/v1/rates", "GET", "/v1/rates/best", false},
	} {
		if f := (Fault{Route: c.route}); f.matches(c.method, c.path) != c.want {
			t.Errorf("%q of %s %s: want %v", c.route, c.method, c.path, c.want)
		}
	}
}

// TestRestartAndCrash checks that keys, spent quota and rates outlive a restart and a crash, and that nothing is
// over-granted.
func TestRestartAndCrash(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(40, 60))
	key := srv.Key()
	for range 5 {
		mustAnswer(t, srv, srv.Client, key, http.StatusOK, "")
	}
	srv.Restart()
	if header := mustAnswer(t, srv, srv.Client, key, http.StatusOK, ""); header.Get("X-RateLimit-Remaining") != "34" {
		t.Errorf("after a restart: %v", header)
	}
	srv.Crash()
	granted := 0
	for range 60 {
		if status, _, _ := get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+key); status == http.StatusOK {
			granted++
		}
	}
	if granted > 34 || granted < 34-2*account.LeaseSizeDefault {
		t.Errorf("after a crash: %d granted of 34", granted)
	}
}

// TestRestart_UnderWay checks that a request during a restart is answered, unless its connection is new and ends before
// the node reads from it; during a crash it may fail, and the next one is answered.
func TestRestart_UnderWay(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	crashing := atomic.Bool{}
	stop := repeat(4, func() {
		during, fresh := crashing.Load(), false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { fresh = !c.Reused }})
		status, body, _, err := tryGet(ctx, t, srv.Client, srv.URL+best)
		if !during && !crashing.Load() && (err != nil && !fresh || err == nil && status != http.StatusOK) {
			t.Errorf("%d %s %v", status, body, err)
		}
	})
	for range 5 {
		srv.Restart()
	}
	crashing.Store(true)
	for range 3 {
		srv.Crash()
	}
	stop()
	if status, _, _ := get(t, srv.Client, srv.URL+best); status != http.StatusOK {
		t.Error(status)
	}
}

// TestCrash_KeepsWhatWasAnswered crashes a node while one key after the other is created and revoked: what was answered
// for the newest key is never undone.
func TestCrash_KeepsWhatWasAnswered(t *testing.T) {
	srv := Start(t)
	c := accountClient(t, srv, srv.Client)
	session := signIn(t, srv, c, "ana@example.do")
	var mu sync.Mutex
	newest, revoked := "", false // as answered
	answered := make(chan struct{}, 1)
	stop := repeat(1, func() {
		made, err := c.CreateKey(t.Context(), session, "")
		if err == nil {
			mu.Lock()
			newest, revoked = made.ID, false
			mu.Unlock()
			select {
			case answered <- struct{}{}:
			default:
			}
		}
		list, _ := c.Keys(t.Context(), session)
		for _, key := range list { // also those whose creation was not answered
			if key.Status == "active" && c.RevokeKey(t.Context(), session, key.ID) == nil {
				mu.Lock()
				revoked = revoked || key.ID == newest
				mu.Unlock()
			}
		}
	})
	for range sampleOrWhole(10, 40) {
		<-answered
		srv.Crash()
		mu.Lock()
		id, gone := newest, revoked
		mu.Unlock()
		list, err := c.Keys(t.Context(), session)
		at := slices.IndexFunc(list, func(key client.Key) bool { return key.ID == id })
		if err != nil || at < 0 || gone && list[at].Status != "revoked" {
			t.Errorf("key %s was answered as revoked: %v; it is listed in %+v, %v", id, gone, list, err)
		}
	}
	stop()
}

// TestS3_Node: known, unknown and throttled addresses get the same answers.
func TestS3_Node(t *testing.T) {
	srv := Start(t, Seed("standard"))
	srv.Key("luz@example.do")
	srv.Clock.Advance(2 * time.Minute)
	ask := func(target, email, more string) string {
		t.Helper()
		res, err := srv.Client.Post(srv.URL+target, "application/json", strings.NewReader(`{"email":"`+email+`"`+more+`}`))
		must(t, err)
		body, err := io.ReadAll(res.Body)
		must(t, errors.Join(err, res.Body.Close()))
		res.Header.Del("X-Request-Id")
		text, _, _ := strings.Cut(string(body), `"requestId"`)
		return fmt.Sprint(res.StatusCode, res.Header, text)
	}
	for _, step := range []struct {
		target, more string
		status       int
	}{
		{"/v1/account/codes", "", http.StatusAccepted},
		{"/v1/account/codes", "", http.StatusTooManyRequests},
		{"/v1/account/sessions", `,"code":"00000000"`, http.StatusUnauthorized},
		{"/v1/account/codes", "", http.StatusTooManyRequests},
	} {
		known, unknown := ask(step.target, "luz@example.do", step.more), ask(step.target, "sol@example.do", step.more)
		if known != unknown || !strings.HasPrefix(known, fmt.Sprint(step.status)) {
			t.Errorf("%s: known %s, unknown %s", step.target, known, unknown)
		}
	}
}
