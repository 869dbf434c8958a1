package apitest

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine"
)

// TestPublish: what institutions say is in force when Publish returns; what the rules hold back is told.
func TestPublish(t *testing.T) {
	srv := Start(t)
	if status, body, _ := get(t, srv.Client, srv.URL+"/v1/rates"); status != 503 || code(t, body) != "data_unavailable" {
		t.Errorf("an empty node: %d %s", status, body)
	}
	srv.Publish(standardRate, Rate{Institution: "popular", Currency: "USD", Sell: "59.10", Channel: engine.Cash, EffectiveDate: "2026-03-01"})
	if _, body, _ := get(t, srv.Client, srv.URL+best); len(ids(t, body)) != 2 || ids(t, body)[0] != "popular:USD:cash:commercial" {
		t.Error(body)
	}
	err := srv.Node.Publish(Rate{Institution: "bhd", Currency: "USD", Buy: "68.50", Sell: "69.30"})
	if err == nil || !strings.Contains(err.Error(), "jump") {
		t.Errorf("a jump: %v", err)
	}
	for _, wrong := range []Rate{{Institution: "nobody", Currency: "USD", Buy: "58"}, {Institution: "bhd", Currency: "USD", Buy: "58", EffectiveDate: "2026-02-30"}} {
		if err := srv.Node.Publish(wrong); err == nil {
			t.Errorf("%+v is published", wrong)
		}
	}
	receipt := srv.Observe(engine.Refresh{SourceID: "x", ObservedAt: srv.Clock.Now(), Observations: []engine.Observation{{InstitutionID: "bhd", Currency: "USD", Buy: "0"}}})
	if len(receipt.Refused) != 1 || receipt.Refused[0].Reason != engine.Zero {
		t.Errorf("%+v", receipt)
	}
	lenient := Start(t, Lenient(), Rates(standardRate))
	lenient.Publish(Rate{Institution: "bhd", Currency: "USD", Buy: "78.50", Sell: "79.30"})
}

// TestExpireAndRefresh: one institution's rates run out, and all are current again.
func TestExpireAndRefresh(t *testing.T) {
	srv := Start(t, Seed("standard"))
	count := func() int {
		_, body, _ := get(t, srv.Client, srv.URL+best)
		return len(ids(t, body))
	}
	before := count()
	srv.Expire("larimar", "USD")
	if got := count(); got != before-2 {
		t.Errorf("%d, then %d", before, got)
	}
	srv.Expire("", "USD")
	if got := count(); got != 0 {
		t.Errorf("all expired: %d", got)
	}
	srv.Clock.Advance(time.Hour)
	srv.Refresh()
	if got := count(); got < before {
		t.Errorf("refreshed: %d of %d", got, before)
	}
	if err := srv.Node.Expire("nobody", ""); err == nil {
		t.Error("nothing expires, and nobody says so")
	}
}

// TestRestartAndCrash: keys, spent quota and rates outlive both; nothing is over-granted (L1).
func TestRestartAndCrash(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(40, 60))
	key := "Bearer " + srv.Key()
	ask := func() (int, string) {
		status, _, header := get(t, srv.Client, srv.URL+best, "Authorization", key)
		return status, header.Get("X-RateLimit-Remaining")
	}
	for range 5 {
		ask()
	}
	srv.Restart()
	if status, left := ask(); status != http.StatusOK || left != "34" {
		t.Errorf("after a restart: %d, %s left", status, left)
	}
	srv.Crash()
	granted := 0
	for range 60 {
		if status, _ := ask(); status == http.StatusOK {
			granted++
		}
	}
	if granted > 34 || granted < 34-2*engine.LeaseDefault {
		t.Errorf("after a crash: %d granted of 34", granted)
	}
}

// TestSnapshotAndRestore: back to a moment, as often as one likes, also in another node.
func TestSnapshotAndRestore(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	state := srv.Snapshot()
	for range 2 {
		srv.Clock.Advance(time.Hour)
		srv.Publish(Rate{Institution: "popular", Currency: "USD", Buy: "58", Sell: "59"})
		if _, body, _ := get(t, srv.Client, srv.URL+best); len(ids(t, body)) != 2 {
			t.Error(body)
		}
		srv.Restore(state)
		if _, body, header := get(t, srv.Client, srv.URL+best); len(ids(t, body)) != 1 || header.Get("Date") != Epoch().Format(http.TimeFormat) {
			t.Errorf("%s %s", header.Get("Date"), body)
		}
	}
	other := Start(t, From(state))
	if _, body, _ := get(t, other.Client, other.URL+best); len(ids(t, body)) != 1 || !other.Clock.Now().Equal(Epoch()) {
		t.Error(body)
	}
}

// TestKeys: required keys, quotas of an account, suspension, callers of other addresses (K6, L8).
func TestKeys(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits(), KeysRequired())
	if status, body, _ := get(t, srv.Client, srv.URL+best); status != 401 || code(t, body) != "missing_key" {
		t.Errorf("%d %s", status, body)
	}
	first := srv.KeyOf("ana@example.do")
	srv.SetQuota(first, 3, 2)
	bearer := func(key string) (int, string) {
		status, body, _ := get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+key)
		return status, body
	}
	for _, want := range []int{200, 200, 429} {
		if status, body := bearer(first); status != want {
			t.Errorf("%d, want %d: %s", status, want, body)
		}
	}
	srv.Clock.Advance(time.Minute)
	second := srv.KeyOf("ana@example.do")
	if status, _ := bearer(second); status != 200 {
		t.Error("the second key")
	}
	if status, body := bearer(first); status != 429 || code(t, body) != "quota_exceeded" {
		t.Errorf("%d %s", status, body)
	}
	srv.Suspend("ana@example.do")
	if status, body := bearer(second); status != 401 || code(t, body) != "account_suspended" {
		t.Errorf("%d %s", status, body)
	}
	srv.Unsuspend(second)
	if status, _ := bearer(second); status != 429 {
		t.Error("restored")
	}
	for _, who := range []string{"nobody@example.do", "tasard_test_x", "a@b"} {
		if err := srv.Node.SetQuota(who, 1, 1); err == nil {
			t.Errorf("%s has a quota", who)
		}
	}
	if _, err := srv.Node.Code("nobody@example.do"); err == nil {
		t.Error("a code that was not sent")
	}
}

// TestClientFrom: callers without a key are counted by address (L8).
func TestClientFrom(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(0, 1))
	other := srv.ClientFrom("203.0.113.7")
	for _, c := range []struct {
		client *http.Client
		want   int
	}{{srv.Client, 200}, {srv.Client, 429}, {other, 200}, {other, 429}, {srv.ClientFrom("2001:db8::1"), 200}, {srv.ClientFrom("2001:db8::2"), 429}} {
		if status, _, _ := get(t, c.client, srv.URL+best); status != c.want {
			t.Errorf("%d, want %d", status, c.want)
		}
	}
	if _, err := srv.Node.ClientFrom("nowhere"); err == nil {
		t.Error("an address that is none")
	}
}

// TestAnnounce: the notice is on every answer, and in force at its instant (K7).
func TestAnnounce(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	if err := srv.Node.Announce(srv.Clock.Now().Add(24 * time.Hour)); err == nil {
		t.Error("a day ahead")
	}
	at := srv.Clock.Now().Add(engine.NoticeMin)
	srv.Announce(at)
	if _, _, header := get(t, srv.Client, srv.URL+best); header.Get("Sunset") != at.Format(http.TimeFormat) {
		t.Errorf("%v", header)
	}
	srv.Clock.Set(at)
	if status, _, _ := get(t, srv.Client, srv.URL+best); status != 401 {
		t.Error(status)
	}
}

// TestReplay_AfterEachTest is the control of the check that nobody asks for: a node that knows what its log does not fails
// its test.
func TestReplay_AfterEachTest(t *testing.T) {
	plant := map[string]func(*testing.T, *Server){
		"nothing": nil,
		"a rate that the log lacks": func(t *testing.T, srv *Server) {
			other := Start(t, Rates(Rate{Institution: "bhd", Currency: "USD", Buy: "58.50", Sell: "59.31"}))
			swapLog(t, srv, other.Snapshot())
		},
		"an account that the log lacks": func(t *testing.T, srv *Server) {
			state := srv.Snapshot()
			srv.Key()
			swapLog(t, srv, state)
		},
		"a damaged log": func(t *testing.T, srv *Server) {
			state := srv.Snapshot()
			for name, data := range state.files {
				if strings.HasPrefix(name, "0000") {
					data[len(data)/2] ^= 1
				}
			}
			swapLog(t, srv, state)
		},
		"a request that was never counted": func(t *testing.T, srv *Server) {
			key, state := srv.Key(), srv.Snapshot()
			for range 3 {
				get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+key)
			}
			swapLog(t, srv, state)
		},
	}
	for name, change := range plant {
		t.Run(name, func(t *testing.T) {
			p := &probe{}
			srv := Start(p, Rates(standardRate), Limits())
			if change != nil {
				change(t, srv)
			}
			if told := p.end(); strings.Contains(told, errReplay.Error()) != (change != nil) {
				t.Errorf("the test is told %q", told)
			}
		})
	}
}

// swapLog puts another log where the check looks. The node has its own open.
func swapLog(t *testing.T, srv *Server, state *State) {
	t.Helper()
	dir, err := directory(state.files)
	if err != nil {
		t.Fatal(err)
	}
	old := srv.life.dir
	srv.life.dir = dir
	t.Cleanup(func() {
		if err := os.RemoveAll(old); err != nil {
			t.Error(err)
		}
	})
}

// TestServer_Fails: a button that can't do what it is told fails the test.
func TestServer_Fails(t *testing.T) {
	p := &probe{}
	srv := Start(p)
	srv.Publish(Rate{Institution: "nobody"})
	srv.Fail("/v1/rates", 404, 1)
	srv.Code("nobody@example.do")
	if told := p.end(); !p.fatal || strings.Count(told, "apitest:") != 3 {
		t.Errorf("the test is told %q", told)
	}
	p = &probe{}
	if Start(p, Seed("none")); !p.fatal {
		t.Error("a seed that there is not")
	}
}

// TestClock: it stands, it moves, it follows.
func TestClock(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.FixedZone("here", 3600))
	c := newClock(at, nil)
	c.Advance(time.Hour)
	if want := at.Add(time.Hour); !c.Now().Equal(want) || c.Now().Location() != time.UTC {
		t.Error(c.Now())
	}
	other := at
	f := newClock(time.Time{}, func() time.Time { return other })
	f.Set(at.Add(time.Minute))
	other = other.Add(time.Second)
	f.Advance(time.Minute)
	if want := at.Add(2*time.Minute + time.Second); !f.Now().Equal(want) {
		t.Errorf("%s, want %s", f.Now(), want)
	}
}

// TestRestore_Chance: what a node draws after a return is what it drew then, and the accounts are those of then.
func TestRestore_Chance(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits())
	first := srv.Key()
	state := srv.Snapshot()
	second := srv.Key()
	srv.Restore(state)
	if again := srv.Key(); again != second {
		t.Errorf("%s, then %s", second, again)
	}
	srv.SetQuota(first, 5, 5)
	other := Start(t, From(state), Limits())
	other.SetQuota(first, 1, 1)
	if _, _, header := get(t, other.Client, other.URL+best, "Authorization", "Bearer "+first); header.Get("X-RateLimit-Limit") != "1" {
		t.Errorf("%v", header)
	}
}

// TestRestart_UnderWay: who asks while the node restarts gets an answer all the same; who asks while it crashes, one or an
// error, and the next one is right.
func TestRestart_UnderWay(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	stop := make(chan struct{})
	crashing := atomic.Bool{}
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				during := crashing.Load()
				status, body, _, err := try(t, srv.Client, srv.URL+best)
				if during || crashing.Load() {
					continue
				}
				if err != nil || status != http.StatusOK {
					t.Errorf("%d %s %v", status, body, err)
				}
			}
		})
	}
	for range 10 {
		srv.Restart()
	}
	crashing.Store(true)
	for range 5 {
		srv.Crash()
	}
	close(stop)
	asking.Wait()
	if status, _, _ := get(t, srv.Client, srv.URL+best); status != http.StatusOK {
		t.Error(status)
	}
}

// TestClose_Unread: a client that never reads its answer does not hold up the end of the test for long.
func TestClose_Unread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Seed("standard"), Follow(now))
		res, err := srv.Client.Get(srv.URL + "/v1/rates/history?limit=200&from=2026-02-21")
		if err != nil {
			t.Fatal(err)
		}
		began := now()
		if err := srv.Close(); err != nil || now().Sub(began) > leaveMax {
			t.Errorf("%v after %s", err, now().Sub(began))
		}
		if err := res.Body.Close(); err != nil {
			t.Log(err)
		}
	})
}

// TestCrash_GrantsNothingTwice: requests while the node crashes take nothing from what is counted (L1).
func TestCrash_GrantsNothingTwice(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(200, 1000))
	key := "Bearer " + srv.Key()
	var asking sync.WaitGroup
	var granted atomic.Int64
	stop := make(chan struct{})
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if status, _, _, err := try(t, srv.Client, srv.URL+best, "Authorization", key); err == nil && status == http.StatusOK {
					granted.Add(1)
				}
			}
		})
	}
	for range 8 {
		srv.Crash()
	}
	close(stop)
	asking.Wait()
	for range 300 {
		if status, _, _ := get(t, srv.Client, srv.URL+best, "Authorization", key); status == http.StatusOK {
			granted.Add(1)
		}
	}
	if got := granted.Load(); got > 200 {
		t.Errorf("%d granted of 200", got)
	}
}

// TestClock_Backwards: days that come again are no reason for the check at the end.
func TestClock_Backwards(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits(), Follow(now))
	key := "Bearer " + srv.Key()
	for _, by := range []time.Duration{0, 48 * time.Hour, -48 * time.Hour, 30 * 24 * time.Hour, -90 * 24 * time.Hour, 90 * 24 * time.Hour} {
		srv.Clock.Advance(by)
		for range 20 {
			get(t, srv.Client, srv.URL+"/v1/currencies", "Authorization", key)
		}
		if by > 0 {
			srv.Crash()
		}
	}
}
