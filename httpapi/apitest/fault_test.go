package apitest

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestFail checks that each status and code has the body and headers of a real one, and costs nothing.
func TestFail(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits())
	key := srv.Key()
	remaining := ""
	for status, answers := range faultErrors() {
		for _, answer := range answers {
			srv.Fault(Fault{Route: "/v1/rates/best", Status: status, Code: answer.Code, RetryAfter: 7 * time.Second, Times: 1})
			got, body, header := get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+key)
			if got != status || errorCode(t, body) != string(answer.Code) || header.Get("Cache-Control") != "no-store" || header.Get("X-Request-Id") == "" {
				t.Errorf("%d %s: %d %s %v", status, answer.Code, got, body, header)
			}
			if want := map[bool]string{true: "7"}[status != 500]; header.Get("Retry-After") != want {
				t.Errorf("%s: Retry-After %q, want %q", answer.Code, header.Get("Retry-After"), want)
			}
			if zero := header.Get("X-RateLimit-Remaining") == "0"; zero != (status == 429) {
				t.Errorf("%s: %s remaining", answer.Code, header.Get("X-RateLimit-Remaining"))
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

// TestFault_Route: a fault that could never happen is refused, and one that did not happen is known at the end.
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
	srv.Fail("/v1/rates", 503, 1)
	get(t, srv.Client, srv.URL+"/v1/rates")
	if unused := srv.faults.neverUsed(); len(unused) != 11 {
		t.Errorf("%d faults happened to no request: %v", len(unused), unused)
	}
}

// TestFail_Times checks how often faults apply: once, n times, until they are cleared, by a share.
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
	var shares []int
	for _, seed := range []uint64{1, 1, 2} {
		srv.Fault(Fault{Status: 503, PerMillion: 250_000, Seed: seed})
		shares = append(shares, failures(200))
		srv.ClearFaults()
	}
	if shares[0] != shares[1] || shares[0] < 25 || shares[0] > 75 {
		t.Errorf("a quarter of 200: %v", shares)
	}
}

// TestDropAndTruncate checks that a broken connection is an error of the client, and that the next request is
// answered.
func TestDropAndTruncate(t *testing.T) {
	srv := Start(t, Seed("standard"))
	_, whole, _ := get(t, srv.Client, srv.URL+best, "Accept-Encoding", "identity")
	srv.Truncate("/v1/rates/best", 100, 1)
	status, body, _, err := tryGet(t, srv.Client, srv.URL+best, "Accept-Encoding", "identity")
	if err == nil || status != http.StatusOK || body != whole[:100] {
		t.Errorf("truncated: %d %v %q", status, err, body)
	}
	srv.Drop("/v1/rates/best", 0)
	if status, body, _, err := tryGet(t, srv.Client, srv.URL+best); err == nil {
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
		if _, _, _, err := tryGet(t, &impatient, srv.URL+best); err == nil {
			t.Error("nothing was delayed")
		}
		if status, _, _ := get(t, srv.Client, srv.URL+"/v1/currencies"); status != http.StatusOK {
			t.Error(status)
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

// TestRequests checks that requests are recorded as they were sent.
func TestRequests(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	srv.Fail("/v1/rates", 503, 1)
	get(t, srv.Client, srv.URL+best, "X-Mine", "yes")
	get(t, srv.Client, srv.URL+"/v1/rates?limit=2")
	got := srv.Requests()
	if len(got) != 2 || got[0].Path != "/v1/rates/best" || got[0].Query != "currency=USD&operation=buy" || got[0].Header.Get("X-Mine") != "yes" ||
		got[0].Status != 200 || got[1].Status != 503 || got[1].Method != http.MethodGet || !got[0].At.Equal(Epoch()) {
		t.Errorf("%+v", got)
	}
	srv.ClearRequests()
	if len(srv.Requests()) != 0 {
		t.Error("they are still there")
	}
	for range requestsMax + 1 {
		srv.requests.add(Request{})
	}
	if got := len(srv.Requests()); got != requestsMax/2+1 {
		t.Errorf("%d are kept", got)
	}
}
