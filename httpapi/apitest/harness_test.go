package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/httpapi/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _, _, _ TB = (*testing.T)(nil), (*testing.B)(nil), (*testing.F)(nil)

// now is the only way of these tests to the clock: the real one, or that of the bubble.
func now() time.Time {
	return time.Now() //nolint:forbidigo // see above
}

const best = "/v1/rates/best?currency=USD&operation=buy"

func get(t testing.TB, client *http.Client, url string, header ...string) (int, string, http.Header) {
	t.Helper()
	status, body, received, err := tryGet(t.Context(), t, client, url, header...)
	must(t, err)
	return status, body, received
}

// tryGet is get for answers that may break off.
func tryGet(ctx context.Context, t testing.TB, client *http.Client, url string, header ...string) (int, string, http.Header, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	must(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(request)
	if err != nil {
		return 0, "", nil, err
	}
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), res.Header, errors.Join(err, res.Body.Close())
}

func accountClient(t testing.TB, srv *Server, httpClient *http.Client) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: srv.URL, HTTPClient: httpClient, Retries: client.NoRetries})
	must(t, err)
	return c
}

// signIn opens a session with the code from the e-mail, and returns its token.
func signIn(t testing.TB, srv *Server, c *client.Client, email string) string {
	t.Helper()
	if _, err := c.RequestCode(t.Context(), email); err != nil {
		t.Fatal(err)
	}
	session, err := c.SignIn(t.Context(), email, srv.Code(email))
	must(t, err)
	return session.Token
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// repeat calls a function in several goroutines until the returned function is called.
func repeat(goroutines int, do func()) (stop func()) {
	ended := make(chan struct{})
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					do()
				}
			}
		})
	}
	return func() {
		close(ended)
		all.Wait()
	}
}

// mustAnswer asks for the best rates with a key or "", and wants a status and an error code or "".
func mustAnswer(t testing.TB, srv *Server, client *http.Client, key string, status int, reason string) http.Header {
	t.Helper()
	var header []string
	if key != "" {
		header = []string{"Authorization", "Bearer " + key}
	}
	got, body, received := get(t, client, srv.URL+best, header...)
	if got != status || reason != "" && errorCode(t, body) != reason {
		t.Errorf("%d, want %d %s: %s", got, status, reason, body)
	}
	return received
}

func rankedIDs(t testing.TB, srv *Server) []string {
	t.Helper()
	_, body, _ := get(t, srv.Client, srv.URL+best)
	return rateIDs(t, body)
}

func rateIDs(t testing.TB, body string) []string {
	t.Helper()
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var found []string
	for _, item := range list.Data {
		found = append(found, item.ID)
	}
	return found
}

func errorCode(t testing.TB, body string) string {
	t.Helper()
	var answer struct{ Error struct{ Code string } }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return answer.Error.Code
}

type fakeTB struct {
	cleanups []func()
	errors   []string
	fatal    bool
}

func (*fakeTB) Helper()             {}
func (*fakeTB) Name() string        { return "probe" }
func (*fakeTB) Logf(string, ...any) {}
func (p *fakeTB) Cleanup(f func())  { p.cleanups = append(p.cleanups, f) }
func (p *fakeTB) Errorf(format string, args ...any) {
	p.errors = append(p.errors, fmt.Sprintf(format, args...))
}

// Fatalf returns, unlike that of a test.
func (p *fakeTB) Fatalf(format string, args ...any) {
	p.fatal = true
	p.Errorf(format, args...)
}

var standardRate = Rate{Institution: "bhd", Currency: "USD", Buy: "58.50", Sell: "59.30"}

// sampleOrWhole returns whole when SWEEP=whole asks for complete sweeps, as make check does, and sample otherwise.
func sampleOrWhole(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

// TestClose_Garbage checks that a closed node keeps nothing in memory: tests hold their nodes until the last of them
// ends.
func TestClose_Garbage(t *testing.T) {
	n, err := Open(Seed("standard"))
	must(t, err)
	server := weak.Make(n.instance.server)
	must(t, n.Close())
	for tries := 0; server.Value() != nil && tries < 10; tries++ {
		runtime.GC()
	}
	if server.Value() != nil {
		t.Error("the server of a closed node is still there")
	}
	runtime.KeepAlive(n)
}

// forbiddenImports are packages that a test of a client should not have to build.
func forbiddenImports() []string {
	return []string{
		"testing", "github.com/spf13", "github.com/BurntSushi", "github.com/wneessen", "github.com/PuerkitoBio", "github.com/xuri",
		"golang.org/x/net/html", "go.etcd.io/raft",
		"github.com/tasard/tasard/collectors", "github.com/tasard/tasard/actors/mail", "github.com/tasard/tasard/bench",
	}
}

// forbiddenIn returns the packages that are forbidden, or below a forbidden one.
func forbiddenIn(packages []string) []string {
	return slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		return !slices.ContainsFunc(forbiddenImports(), func(h string) bool { return strings.HasPrefix(p+"/", h+"/") })
	})
}

// packagesMax limits how many packages beside the standard library a test with the harness compiles. It is also in
// docs/testing.md.
const packagesMax = 170

func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	must(t, err)
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "github.com/tasard/tasard/actors") {
		t.Fatalf("go list names %d packages, and not those of the harness", len(packages))
	}
	if found := forbiddenIn(packages); len(found) > 0 {
		t.Errorf("an import of the harness builds %q too", found)
	}
	libraries := slices.DeleteFunc(packages, func(p string) bool { return !strings.Contains(strings.Split(p, "/")[0], ".") })
	if len(libraries) > packagesMax {
		t.Errorf("a test with the harness compiles %d packages beside the standard library, at most %d: which are new?", len(libraries), packagesMax)
	}
	planted := []string{"testing", "github.com/spf13/cobra", "github.com/tasard/tasard/collectors/source", "github.com/PuerkitoBio/goquery"}
	if got := forbiddenIn(append(planted, "net/http")); !slices.Equal(got, planted) {
		t.Errorf("%q, want %q", got, planted)
	}
}

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

// TestKeys_Bulk checks that each of many keys has an account of its own, next to keys that were created one by one.
// They are more than the limit of login codes an hour, and than one batch of the log, while the clock stands still.
func TestKeys_Bulk(t *testing.T) {
	const count = 5100
	srv := Start(t, Rates(standardRate), Quota(2, 1), KeysRequired())
	first, bulk := srv.Key(), srv.Keys(count)
	keys := append([]string{first, bulk[count-1], srv.Key()}, bulk[:40]...)
	for _, key := range append(keys, srv.Keys(3)...) {
		mustAnswer(t, srv, srv.Client, key, http.StatusOK, "")
		mustAnswer(t, srv, srv.Client, key, http.StatusTooManyRequests, "")
	}
	if len(bulk) != count || !srv.Clock.Now().Equal(Epoch()) {
		t.Errorf("%d keys at %s", len(bulk), srv.Clock.Now())
	}
}

// TestWrite writes states as data directories: of a new node, and of one with a snapshot and records after it. A system
// on the directory has the state of the node, and nothing is overwritten.
func TestWrite(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits())
	for _, add := range []func(){func() {}, func() { srv.Keys(5) }, func() { srv.Key() }} {
		add()
		state, dir := srv.Snapshot(), filepath.Join(t.TempDir(), "data", "node")
		must(t, state.Write(dir))
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
	must(t, err)
	must(t, awaitReady(system))
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

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenRequests cover a seed: every operation, every kind of item, and the errors.
func goldenRequests() []string {
	return []string{
		"/v1/currencies", "/v1/institutions", "/v1/institutions?currency=EUR", "/v1/institutions/larimar", "/v1/institutions/ceiba",
		"/v1/rates", "/v1/rates?kind=reference", "/v1/rates?channel=cash&limit=2", best, "/v1/rates/best?currency=USD&operation=sell",
		"/v1/rates/best?currency=CNY&operation=buy", "/v1/rates/best?currency=EUR&operation=buy&kind=reference",
		"/v1/rates/history?currency=USD&institution=ambar", "/v1/rates/history?from=2026-02-21&to=2026-02-22", "/v1/rates/history?limit=200&from=2026-02-21",
		"/v1/convert?currency=JPY&operation=buy&amount=100000.55", "/v1/convert?currency=USD&operation=sell&amount=2.05&limit=2",
		"/v1/rates?currency=usd&limt=5", "/v1/nothing",
	}
}

// seedParts are what a data set must contain for authors of clients: each kind of rate.
func seedParts() []string {
	return []string{
		`"channel":"unspecified"`, `"channel":"branch"`, `"channel":"digital"`, `"channel":"cash"`, `"channel":"transfer"`,
		`"kind":"commercial"`, `"kind":"reference"`, `"buy":null`, `"sell":null`, `"stale":true`, `"stale":false`, `"manual":true`,
		`"datePrecision":"datetime"`, `"datePrecision":"day"`, `"datePrecision":"unknown"`, `"upstreamSource":"A`, `"website":""`,
	}
}

// playGoldenRequests sends all requests and records the bytes on the wire.
func playGoldenRequests(t *testing.T, srv *Server) []byte {
	t.Helper()
	var out bytes.Buffer
	key := srv.Key()
	fmt.Fprintf(&out, "key %s\n", key)
	for _, target := range goldenRequests() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+target, http.NoBody)
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Accept-Encoding", "identity")
		res, err := srv.Client.Do(request)
		must(t, err)
		answer, err := httputil.DumpResponse(res, true)
		must(t, err)
		_ = res.Body.Close()
		fmt.Fprintf(&out, "\nGET %s\n%s\n", target, strings.ReplaceAll(string(answer), "\r\n", "\n"))
	}
	return out.Bytes()
}

// TestGolden_Seeds checks that the answers of a version of a seed never change.
func TestGolden_Seeds(t *testing.T) {
	got := playGoldenRequests(t, Start(t, Seed(newestSeed), Limits()))
	for _, part := range seedParts() {
		if !bytes.Contains(got, []byte(part)) {
			t.Errorf("no rate has %s", part)
		}
	}
	const file = "testdata/standard-v1.golden"
	if *update {
		must(t, os.WriteFile(file, got, 0o600))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if string(want) != string(got) {
		t.Errorf("%s: a version of a seed is for ever; make a new one. It is\n%s", file, got)
	}
}
