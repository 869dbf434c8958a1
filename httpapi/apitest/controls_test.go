package apitest

import (
	"net/http"
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
	first := srv.KeyOf("ana@example.do")
	for _, want := range []int{200, 200, 429} {
		mustAnswer(t, srv, srv.Client, first, want, "")
	}
	srv.Clock.Advance(time.Minute)
	second := srv.KeyOf("ana@example.do")
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
