package apitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
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
		"standard/v1":   func() error { _, err := Open(Seed("standard/v0")); return err },
		"does nothing":  n(func(s *Server) { s.Fault(Fault{}) }),
		"status 404":    n(func(s *Server) { s.Fault(Fault{Status: 404}) }),
		"429 with":      n(func(s *Server) { s.Fault(Fault{Status: 429, Code: engine.CodeOverloaded}) }),
		"has no status": n(func(s *Server) { s.Fault(Fault{Code: engine.CodeOverloaded}) }),
		"negative":      n(func(s *Server) { s.Fault(Fault{Status: 503, Times: -1}) }),
		"a number is":   n(func(s *Server) { s.Fault(Fault{Delay: -1}) }),
		"is negative":   n(func(s *Server) { s.Fault(Fault{Status: 500, RetryAfter: -1}) }),
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
		if err != nil {
			t.Fatal(err)
		}
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
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	call := func(method, path, body string) (int, string) {
		request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		if body != "plain" {
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

// TestControl_Browser: a call without body needs no content type, as fetch sends
// none, but it must not come from a page of another site.
func TestControl_Browser(t *testing.T) {
	handler, err := Start(t).ControlHandler()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, header, value string
		status                      int
		part                        string
	}{
		{"POST", "/_mock/reset", "Sec-Fetch-Site", "same-site", 200, "{}"},
		{"POST", "/_mock/reset", "Sec-Fetch-Site", "cross-site", 400, "another site"},
	} {
		request := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
		request.Header.Set(c.header, c.value)
		answer := httptest.NewRecorder()
		if handler.ServeHTTP(answer, request); answer.Code != c.status || !strings.Contains(answer.Body.String(), c.part) {
			t.Errorf("%s %s, %s %s: %d %s", c.method, c.path, c.header, c.value, answer.Code, answer.Body)
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
