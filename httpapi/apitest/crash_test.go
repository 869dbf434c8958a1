package apitest

import (
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/client"
)

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
