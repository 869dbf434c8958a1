//go:build unix

package apitest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// TestStart: one line, an answer under every name, and time that moves by itself to nowhere.
func TestStart(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	for _, host := range []string{srv.URL, "http://anything.example:8080", "https://api.example.do"} {
		status, body, header := get(t, srv.Client, host+best)
		if status != http.StatusOK || !slices.Equal(ids(t, body), []string{"bhd:USD:unspecified:commercial"}) {
			t.Errorf("%s: %d %s", host, status, body)
		}
		if header.Get("Date") != Epoch().Format(http.TimeFormat) {
			t.Errorf("%s: Date is %s", host, header.Get("Date"))
		}
	}
	srv.Clock.Advance(26*time.Hour - time.Nanosecond)
	if _, body, _ := get(t, srv.Client, srv.URL+best); len(ids(t, body)) != 1 {
		t.Errorf("just before the expiry: %s", body)
	}
	srv.Clock.Advance(time.Nanosecond)
	if _, body, _ := get(t, srv.Client, srv.URL+best); len(ids(t, body)) != 0 {
		t.Errorf("at the expiry: %s", body)
	}
	if _, body, _ := get(t, srv.Client, srv.URL+"/v1/rates"); !strings.Contains(body, `"stale":true`) {
		t.Error(body)
	}
	srv.Clock.Set(Epoch())
	if _, body, _ := get(t, srv.Client, srv.URL+best); len(ids(t, body)) != 1 {
		t.Errorf("back at the start: %s", body)
	}
}

// TestStart_LeavesNothing: a node that was asked leaves no goroutine behind, and its Close says the same twice.
func TestStart_LeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	node, err := Open(Seed("standard"))
	if err != nil {
		t.Fatal(err)
	}
	if status, _, _ := get(t, node.Client, node.URL+best); status != http.StatusOK {
		t.Error(status)
	}
	dir := node.life.dir
	for range 2 {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	}
	goleak.VerifyNone(t, before)
	if files, err := imageOf(dir); err == nil {
		t.Errorf("the log is still there: %d files", len(files))
	}
	if err := node.Publish(standardRate); err == nil {
		t.Error("a closed node publishes")
	}
}

// TestStart_Bubble: everything works inside a bubble of testing/synctest, in the bubble's time.
func TestStart_Bubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Follow(now), Rates(standardRate), Limits())
		_, body, header := get(t, srv.Client, srv.URL+best)
		if len(ids(t, body)) != 1 || header.Get("Date") != now().UTC().Format(http.TimeFormat) {
			t.Errorf("%s %s", header.Get("Date"), body)
		}
		srv.Fault(Fault{Route: "/v1/currencies", Delay: time.Hour, Times: 1})
		began := now()
		if status, _, _ := get(t, srv.Client, srv.URL+"/v1/currencies"); status != http.StatusOK || now().Sub(began) != time.Hour {
			t.Errorf("delayed: %d after %s", status, now().Sub(began))
		}
		<-time.NewTimer(25 * time.Hour).C
		if _, body, _ := get(t, srv.Client, srv.URL+best); len(ids(t, body)) != 0 {
			t.Errorf("after 26 hours: %s", body)
		}
		key := srv.Key()
		srv.Restart()
		srv.Crash()
		if status, _, _ := get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+key); status != http.StatusOK {
			t.Errorf("after a crash: %d", status)
		}
	})
}

// TestStart_BubbleWithSeed: the seed's moment is where the bubble begins.
func TestStart_BubbleWithSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Follow(now), Seed("standard"))
		_, _, header := get(t, srv.Client, srv.URL+best)
		if header.Get("Date") != "Mon, 02 Mar 2026 16:00:00 GMT" {
			t.Error(header.Get("Date"))
		}
	})
}

const (
	parallelNodes  = 100
	parallelMax    = time.Second
	parallelCores  = 2
	firstAnswerMax = 5 * time.Millisecond
	slowerByRace   = 10

	startsFew, startsMany = 40, 400
)

// TestStart_Parallel: a hundred nodes side by side, each with its own state. What they may take is counted as work of two
// cores: how long that lasts depends on what else the machine does.
func TestStart_Parallel(t *testing.T) {
	began, worked := now(), work(t)
	nodes := make([]*Node, parallelNodes)
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			node, err := Open(Rates(Rate{Institution: "bhd", Currency: "USD", Buy: "58", Sell: "59." + string(rune('0'+i%10))}))
			if err != nil {
				t.Error(err)
				return
			}
			nodes[i] = node
			if _, body, _, err := try(t, node.Client, node.URL+best); err != nil || !strings.Contains(body, `"sell":"59.`+string(rune('0'+i%10))+`"`) {
				t.Errorf("node %d: %v %s", i, err, body)
			}
		})
	}
	all.Wait()
	took, worked := now().Sub(began), work(t)-worked
	for _, node := range nodes {
		all.Go(func() {
			if err := node.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	t.Logf("%d nodes answered after %s, %s of work", parallelNodes, took, worked)
	if limit := parallelCores * parallelMax * slower(); worked > limit {
		t.Errorf("%d nodes took %s of work, want at most %s", parallelNodes, worked, limit)
	}
}

// TestStart_Quick: the fastest of some starts tells what a start costs; the others tell what else the machine does. On a machine that does
// much else it takes more of them until one shows it. It is held in work of a core, and told in time as well.
func TestStart_Quick(t *testing.T) {
	limit := firstAnswerMax * slower()
	fastest, least, starts := time.Hour, time.Hour, 0
	for ; starts < startsFew || least > limit && starts < startsMany; starts++ {
		began, worked := now(), work(t)
		node, err := Open(Rates(standardRate))
		if err != nil {
			t.Fatal(err)
		}
		if status, _, _ := get(t, node.Client, node.URL+best); status != http.StatusOK {
			t.Fatal(status)
		}
		fastest, least = min(fastest, now().Sub(began)), min(least, work(t)-worked)
		if err := node.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("first answer after %s, %s of work, the best of %d", fastest, least, starts)
	if least > limit {
		t.Errorf("the first answer took %s of work, want at most %s", least, limit)
	}
}

// work is the time of all cores that the process has had.
func work(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// slower is how much more time a test takes here.
func slower() time.Duration {
	if raceEnabled {
		return slowerByRace
	}
	return 1
}

// TestOnPort: other processes reach it.
func TestOnPort(t *testing.T) {
	srv := Start(t, OnPort(), Rates(standardRate))
	if !strings.HasPrefix(srv.URL, "http://127.0.0.1:") {
		t.Error(srv.URL)
	}
	if status, body, _ := get(t, srv.Client, srv.URL+best); status != http.StatusOK || len(ids(t, body)) != 1 {
		t.Errorf("%d %s", status, body)
	}
	if _, err := srv.Node.ClientFrom("192.0.2.7"); err == nil {
		t.Error("a client of a port has an address of its own choice")
	}
	if _, err := Open(OnAddress("256.0.0.1:1")); err == nil {
		t.Error("an address that is none")
	}
}
