package apitest

import (
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// TestStart checks one line of setup, an answer under every host name, and a clock that stands still.
func TestStart(t *testing.T) {
	srv := Start(t, Rates(standardRate), At(Epoch().In(time.FixedZone("here", 3600))))
	if !strings.Contains(srv.URL, "use-the-client") {
		t.Errorf("the error of another client shows only %s", srv.URL)
	}
	if at := srv.Clock.Now(); at.Location() != time.UTC {
		t.Error(at)
	}
	for _, host := range []string{srv.URL, "http://anything.example:8080", "https://api.example.do"} {
		status, body, header := get(t, srv.Client, host+best)
		if status != http.StatusOK || !slices.Equal(rateIDs(t, body), []string{"bhd:USD:unspecified:commercial"}) {
			t.Errorf("%s: %d %s", host, status, body)
		}
		if header.Get("Date") != Epoch().Format(http.TimeFormat) {
			t.Errorf("%s: Date is %s", host, header.Get("Date"))
		}
	}
	srv.Clock.Advance(26*time.Hour - time.Nanosecond)
	if got := rankedIDs(t, srv); len(got) != 1 {
		t.Errorf("just before the expiry: %s", got)
	}
	srv.Clock.Advance(time.Nanosecond)
	if got := rankedIDs(t, srv); len(got) != 0 {
		t.Errorf("at the expiry: %s", got)
	}
	if _, body, _ := get(t, srv.Client, srv.URL+"/v1/rates"); !strings.Contains(body, `"stale":true`) {
		t.Error(body)
	}
	srv.Clock.Set(Epoch())
	if got := rankedIDs(t, srv); len(got) != 1 {
		t.Errorf("back at the start: %s", got)
	}
}

// TestStart_LeavesNothing checks that a node creates no file and leaves no goroutine, and that Close can be repeated.
func TestStart_LeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	before := goleak.IgnoreCurrent()
	srv := Start(t, Seed("standard"))
	mustAnswer(t, srv, srv.Client, "", http.StatusOK, "")
	srv.Restart()
	srv.Crash()
	for range 2 {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}
	goleak.VerifyNone(t, before)
}

// TestStart_Bubble checks that everything works inside a bubble of testing/synctest, in its time.
func TestStart_Bubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, FollowClock(now), Seed("standard"), Limits())
		if header := mustAnswer(t, srv, srv.Client, "", http.StatusOK, ""); header.Get("Date") != "Mon, 02 Mar 2026 16:00:00 GMT" {
			t.Error(header.Get("Date"))
		}
		srv.Fault(Fault{Route: "/v1/currencies", Delay: time.Hour, Times: 1})
		began := now()
		if status, _, _ := get(t, srv.Client, srv.URL+"/v1/currencies"); status != http.StatusOK || now().Sub(began) != time.Hour {
			t.Errorf("delayed: %d after %s", status, now().Sub(began))
		}
		<-time.NewTimer(20 * time.Hour).C
		srv.Clock.Advance(5 * time.Hour)
		if _, _, header := get(t, srv.Client, srv.URL+"/v1/currencies"); header.Get("Date") != "Tue, 03 Mar 2026 18:00:00 GMT" {
			t.Error(header.Get("Date"))
		}
		if got := rankedIDs(t, srv); len(got) != 0 {
			t.Errorf("after 26 hours: %s", got)
		}
		keys := append(srv.Keys(10), srv.Key())
		srv.Restart()
		srv.Crash()
		for _, key := range keys {
			mustAnswer(t, srv, srv.Client, key, http.StatusOK, "")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, FollowClock(now))
		if _, _, header := get(t, srv.Client, srv.URL+"/v1/currencies"); header.Get("Date") != now().UTC().Format(http.TimeFormat) {
			t.Errorf("without a seed: %s", header.Get("Date"))
		}
	})
}

// TestStart_SideBySide checks that nodes with the same seed do not share state.
func TestStart_SideBySide(t *testing.T) {
	var all sync.WaitGroup
	for i := range 20 {
		srv, sell := Start(t, Seed("standard"), Lenient()), "58.0"+string(rune('0'+i%10))
		all.Go(func() {
			srv.Publish(Rate{Institution: "ambar", Currency: "USD", Buy: "57", Sell: sell, Channel: "digital"})
			for range 3 {
				if _, body, _, err := tryGet(t.Context(), t, srv.Client, srv.URL+best); err != nil || !strings.Contains(body, `"sell":"`+sell+`"`) {
					t.Errorf("node %d: %v %s", i, err, body)
				}
			}
		})
	}
	all.Wait()
}

func TestOnPort(t *testing.T) {
	srv := Start(t, OnPort(), Rates(standardRate))
	if !strings.HasPrefix(srv.URL, "http://127.0.0.1:") {
		t.Error(srv.URL)
	}
	mustAnswer(t, srv, srv.Client, "", http.StatusOK, "")
}

// TestOptions_Mistakes: a mistake in the options is named, and equal sides are for Lenient only.
func TestOptions_Mistakes(t *testing.T) {
	equal := Rate{Institution: "popular", Currency: "USD", Buy: "58.20", Sell: "58.20"}
	unknown := Rate{Institution: "acme", Currency: "USD", Buy: "58.20", Sell: "59.20"}
	for part, options := range map[string][]Option{
		"option 2 is nil": {Limits(), nil}, "the option Lenient) turns": {Rates(equal)},
		`"acme" is not in the catalogue; GET /v1/institutions`: {Rates(unknown)},
	} {
		if _, err := Open(options...); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("want %q, found %v", part, err)
		}
	}
	srv := Start(t, Rates(equal), Lenient())
	if err := srv.Do(func(s *Server) { s.Restore(nil) }); !errors.Is(err, errNilState) {
		t.Error(err)
	}
}
