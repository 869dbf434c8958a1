package apitest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/actors"
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

// TestKeys_Bulk checks that each of many keys has an account of its own, next to keys that were created one by one.
func TestKeys_Bulk(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(2, 1), KeysRequired())
	keys := append([]string{srv.Key()}, srv.Keys(40)...)
	keys = append(append(keys, srv.Key()), srv.Keys(3)...)
	for _, key := range keys {
		mustAnswer(t, srv, srv.Client, key, http.StatusOK, "")
		mustAnswer(t, srv, srv.Client, key, http.StatusTooManyRequests, "")
	}
}

// TestKeys_Many creates more accounts than the limit of login codes an hour, and than one batch of the log, while the
// clock stands still.
func TestKeys_Many(t *testing.T) {
	const count = 5100
	srv := Start(t, Rates(standardRate), Limits())
	keys := srv.Keys(count)
	if len(keys) != count || !srv.Clock.Now().Equal(Epoch()) {
		t.Errorf("%d keys at %s", len(keys), srv.Clock.Now())
	}
	mustAnswer(t, srv, srv.Client, keys[count-1], http.StatusOK, "")
}

// TestWrite writes states as data directories: of a new node, and of one with a snapshot and records after it. A system
// on the directory has the state of the node, and nothing is overwritten.
func TestWrite(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits())
	for _, add := range []func(){func() {}, func() { srv.Keys(5) }, func() { srv.Key() }} {
		add()
		state, dir := srv.Snapshot(), filepath.Join(t.TempDir(), "data", "node")
		if err := state.Write(dir); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) == 0 {
			t.Fatal(entries, err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v %v", entry.Name(), info.Mode(), err)
			}
		}
		checkDirectory(t, srv, dir)
		err = state.Write(dir)
		if err == nil || !strings.Contains(err.Error(), "empty directory") {
			t.Errorf("over a data directory: %v", err)
		}
		if err := state.Write(filepath.Join(dir, "mark")); err == nil {
			t.Error("into a file")
		}
		if err := state.Write(t.TempDir()); err != nil {
			t.Errorf("into an empty directory: %v", err)
		}
	}
}

// checkDirectory checks that a system on a data directory has the state of the node.
func checkDirectory(t *testing.T, srv *Server, dir string) {
	t.Helper()
	config := srv.systemConfig(nil)
	config.Journal, config.Dir, config.Log.ReserveBytes = nil, dir, -1
	system, err := actors.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := awaitReady(system); err != nil {
		t.Fatal(err)
	}
	var states, accounts [2]any
	for i, s := range []*actors.System{srv.instance.system, system} {
		rates, ratesErr := s.States()
		list, listErr := s.ListAccounts()
		states[i], accounts[i], err = fmt.Sprintf("%+v", rates), fmt.Sprintf("%+v", list), errors.Join(err, ratesErr, listErr)
	}
	if err = errors.Join(err, system.Close()); err != nil || states[0] != states[1] || accounts[0] != accounts[1] {
		t.Errorf("%v; the node has %s %s, the directory %s %s", err, states[0], accounts[0], states[1], accounts[1])
	}
}

// BenchmarkStart starts and closes a node, without rates and with a data set.
func BenchmarkStart(b *testing.B) {
	for name, options := range map[string][]Option{"empty": nil, "standard": {Seed("standard")}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := Start(b, options...).Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpen opens a thousand nodes at once, each of which answers a request. It prints the memory of a node and the
// memory that the process got from the operating system.
func BenchmarkOpen(b *testing.B) {
	const count = 1000
	for b.Loop() {
		b.ReportMetric(float64(nodeBytes(b, count))/(1<<10), "KiB/node")
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		b.ReportMetric(float64(stats.Sys)/(1<<20), "MiB")
	}
}

// TestOpen_Memory checks that an open node takes little memory. The limit is for two processors, because a node has a
// cache of pages for each processor.
func TestOpen_Memory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const nodeBytesMax = 600 << 10 // of which 110 KiB are empty maps of the actor library
	if found := nodeBytes(t, 50); found > nodeBytesMax {
		t.Errorf("an open node takes %d bytes, want at most %d", found, nodeBytesMax)
	}
}

// TestStart_Allocations checks that a start does no more than to decide about each rate of the data set.
func TestStart_Allocations(t *testing.T) {
	const allocationsMax = 20_000
	found := testing.AllocsPerRun(5, func() {
		if err := Start(t, Seed("standard")).Close(); err != nil {
			t.Error(err)
		}
	})
	if found > allocationsMax {
		t.Errorf("a start and the end of a node take %.0f allocations, want at most %d", found, allocationsMax)
	}
}

// nodeBytes returns the memory that each of count open nodes takes after a request.
func nodeBytes(tb testing.TB, count int) int {
	tb.Helper()
	nodes := make([]*Server, count)
	before := usedBytes()
	for i := range nodes {
		nodes[i] = Start(tb, Seed("standard"))
		get(tb, nodes[i].Client, nodes[i].URL+best)
	}
	used := usedBytes() - before
	for _, node := range nodes {
		if err := node.Close(); err != nil {
			tb.Error(err)
		}
	}
	return used / count
}

// usedBytes returns the size of the heap and the stacks after a garbage collection.
func usedBytes() int {
	runtime.GC()
	runtime.GC() // the first one only marks what pools keep
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse)
}
