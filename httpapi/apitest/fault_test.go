package apitest

import (
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/client"
)

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
