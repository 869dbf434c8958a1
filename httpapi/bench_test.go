package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
)

// addressedConn is what connections in memory share: they have addresses and know no deadline.
type addressedConn struct{}

func (addressedConn) Close() error                     { return nil }
func (addressedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (addressedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (addressedConn) SetDeadline(time.Time) error      { return nil }
func (addressedConn) SetReadDeadline(time.Time) error  { return nil }
func (addressedConn) SetWriteDeadline(time.Time) error { return nil }

func benchRequest(target string, lines string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\nHost: api.example.do\r\nUser-Agent: client/1.0\r\nAccept: */*\r\n" + lines + "\r\n")
}

type lastMail struct{ account.LoginMail }

func (b *lastMail) Send(l account.LoginMail) error {
	b.LoginMail = l
	return nil
}

// tickingClock goes on with each look, so that no window of a quota fills up.
func tickingClock() func() time.Duration {
	var looks atomic.Int64
	return func() time.Duration { return time.Duration(looks.Add(1)) * 10 * time.Millisecond }
}

// newBenchSystem is a node with an account that has a key.
func newBenchSystem(t testing.TB) (system *actors.System, key string) {
	t.Helper()
	box, monotonic := new(lastMail), tickingClock()
	system = must(actors.Open(actors.Config{
		Dir: t.TempDir(), Clock: func() time.Time { return fakeNow().Add(monotonic() / 1000) }, Monotonic: monotonic, Mailer: box,
		Log: actors.LogConfig{ReserveBytes: -1}, QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: 1e9, Minute: 100_000}, LeaseSize: 100_000},
	}))
	t.Cleanup(func() {
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	<-system.Ready()
	ana, from := email("ana@example.do"), netip.MustParseAddr("198.18.0.1")
	ok(t, system.RequestCode(ana, account.Requester{Address: from}))
	token, _, err := system.OpenSession(ana, box.Code.Reveal(), account.Requester{Address: from})
	ok(t, err)
	_, secret, err := system.CreateKey(token.Digest(), "bench")
	ok(t, err)
	return system, secret.Reveal()
}

// benchedRequests are the questions whose cost is watched.
func benchedRequests(key string) map[string][]byte {
	return map[string][]byte{
		"key":          benchRequest("/v1/rates/best?currency=USD&operation=buy&limit=10", bearer(key)+"\r\n"),
		"best":         benchRequest("/v1/rates/best?currency=USD&operation=buy&limit=10", ""),
		"full":         benchRequest("/v1/rates/best?currency=USD&operation=buy", ""),
		"gzip":         benchRequest("/v1/rates/best?currency=USD&operation=buy", "Accept-Encoding: gzip\r\n"),
		"rates":        benchRequest("/v1/rates?limit=100", ""),
		"history":      benchRequest("/v1/rates/history?currency=USD", ""),
		"currencies":   benchRequest("/v1/currencies", ""),
		"institutions": benchRequest("/v1/institutions", ""),
		"institution":  benchRequest("/v1/institutions/bhd", ""),
		"convert":      benchRequest("/v1/convert?currency=USD&operation=buy&amount="+firstAmount, ""),
	}
}

// firstAmount is what convert is first asked about; each request asks about the next one.
const firstAmount = "1000000.00"

// benchedConn is a client in memory: it hands out the same request count times, one for each Read, and drops the
// answers. It never asks about the same amount twice.
type benchedConn struct {
	addressedConn
	request, amount []byte // amount: its place in the request; empty without one
	count           int
	remote          net.Addr
}

func newBenchedConn(request []byte, count int) *benchedConn {
	own := bytes.Clone(request)
	at := max(0, bytes.Index(own, []byte(firstAmount)))
	amount := own[at:at]
	if at > 0 {
		amount = own[at : at+len(firstAmount)]
	}
	return &benchedConn{request: own, amount: amount, count: count, remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}}
}

func (c *benchedConn) RemoteAddr() net.Addr { return c.remote }

func (*benchedConn) Write(b []byte) (int, error) { return len(b), nil }

func (c *benchedConn) Read(b []byte) (int, error) {
	for i := len(c.amount) - 1; i >= 0; i-- {
		if c.amount[i] == '.' {
			continue
		}
		if c.amount[i]++; c.amount[i] <= '9' {
			break
		}
		c.amount[i] = '0'
	}
	if c.count--; c.count < 0 {
		return 0, io.EOF
	}
	return copy(b, c.request), nil
}

// newNodeServer is a server over the real thing, log, actors, 45 institutions that quote dollars, and a key of an
// account. Callers without it are counted by address.
func newNodeServer(t testing.TB) (server *Server, key string) {
	t.Helper()
	system, key := newBenchSystem(t)
	catalogue := engine.DefaultCatalogue()
	for day := range 7 {
		refresh := engine.Refresh{SourceID: "list", ObservedAt: fakeNow().Add(-time.Duration(6-day) * 24 * time.Hour)}
		for i, institution := range catalogue.Institutions() {
			refresh.Observations = append(refresh.Observations, engine.Observation{
				InstitutionID: institution.ID, Currency: "USD", Buy: fmt.Sprintf("57.%02d", i), Sell: fmt.Sprintf("60.%02d", i),
			})
		}
		if receipt, err := system.Observe([]engine.Refresh{refresh}); err != nil || len(receipt.Refused) > 0 {
			t.Fatal(err, receipt.Refused)
		}
	}
	return New(Config{Service: system, Admitter: system.Admitter(), Catalogue: catalogue, Clock: fakeNow, RequestID: RequestIDs(1)}), key
}

// serveConn serves a connection as one that a listener of the server accepted.
func (s *Server) serveConn(c net.Conn) error {
	config := s.connConfig()
	return s.http.ServeConn(must(conn.Listen(&oneListener{conn: c}, config).Accept()))
}

// announcing is an admitter while the end of anonymous access is announced.
type announcing struct{ account.Admitter }

func (announcing) KeyPolicy() account.KeyPolicy { return keysRequiredIn(time.Hour) }

// TestF4_NoAllocations: a warm question costs no allocation anywhere, connection and actors included, also while the
// end of anonymous access is announced. Of an amount that was never seen before, the amount itself is one.
func TestF4_NoAllocations(t *testing.T) {
	if build, _ := debug.ReadBuildInfo(); slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector allocates")
	}
	server, key := newNodeServer(t)
	most, all := map[string]float64{"convert": 1, "convert gzip": 1}, benchedRequests(key)
	all["convert gzip"] = benchRequest("/v1/convert?currency=USD&operation=buy&amount="+firstAmount, "Accept-Encoding: gzip, br\r\n")
	all["not modified"] = benchRequest("/v1/rates?limit=100", "If-None-Match: W/\"x\", *\r\n")
	all["no key"] = benchRequest("/v1/rates/history?currency=USD&from=2025-11-15&to=2025-11-21", "Authorization: Basic YTpi\r\n")
	for name, request := range all {
		for _, admitter := range []account.Admitter{server.config.Admitter, announcing{server.config.Admitter}} {
			server.config.Admitter = admitter
			const requests = 1000 // over a connection, which allocates too
			allocs := testing.AllocsPerRun(5, func() { ok(t, server.serveConn(newBenchedConn(request, requests))) })
			if allocs >= requests*(most[name]+0.5) {
				t.Errorf("%s allocates %v times in %d requests, want at most %v for each", name, allocs, requests, most[name])
			}
		}
	}
}

const (
	// instructionsFile holds the accepted counts, from this folder.
	instructionsFile = "../.ci/costs.json"
	// instructionsRiseMax is how much more instructions a request may take than is accepted, in thousandths. Counts
	// repeat within 5.
	instructionsRiseMax = 30
	// Two processes answer so many requests: the difference has no start in it.
	countedShort, countedLong = 500, 10_500
)

// instructionList is what each request takes, and what that depends on besides the program.
type instructionList struct {
	Go       string         `json:"go"`      // another release makes other instructions
	Counter  string         `json:"counter"` // valgrind, and the features of the processor that it shows to programs
	Requests map[string]int `json:"requests"`
}

// TestInstructions counts the instructions of the hot path: INSTRUCTIONS=check holds them against what is accepted,
// accept writes that file. It is an extra: where the machine can't count, one line says so.
func TestInstructions(t *testing.T) {
	order := os.Getenv("INSTRUCTIONS")
	if order == "" {
		t.Skip("only for make bench-check and bench-accept")
	}
	if _, err := countProcess(t, "best", 1); err != nil { // valgrind is not installed, or does not know the processor
		printf(t, "instructions are not counted here: %v\n", err)
		return
	}
	names := slices.Sorted(maps.Keys(benchedRequests("")))
	switch order {
	case "check":
		checkInstructions(t, countNode(t, names))
	case "accept":
		text, err := json.MarshalIndent(countNode(t, names), "", "  ")
		ok(t, errors.Join(err, os.WriteFile(instructionsFile, append(text, '\n'), 0o600)))
	default:
		t.Fatalf("INSTRUCTIONS is %q, want check or accept", order)
	}
}

func checkInstructions(t *testing.T, found *instructionList) {
	t.Helper()
	text, err := os.ReadFile(instructionsFile)
	accepted := &instructionList{}
	ok(t, errors.Join(err, json.Unmarshal(text, accepted)))
	if accepted.Go != found.Go || accepted.Counter != found.Counter {
		printf(t, "instructions are not compared: accepted with %s, %s; here are %s, %s\n", accepted.Go, accepted.Counter, found.Go, found.Counter)
		return
	}
	printf(t, "%-14s %12s %12s\n", "request", "accepted", "instructions")
	for _, name := range slices.Sorted(maps.Keys(found.Requests)) {
		was, is := accepted.Requests[name], found.Requests[name]
		printf(t, "%-14s %12d %12d\n", name, was, is)
		if (is-was)*1000 > instructionsRiseMax*was {
			t.Errorf("%s: %d instructions, %d are accepted; mend it, or make bench-accept and say in the commit why", name, is, was)
		}
	}
}

// printf writes a line where the caller of make sees it.
func printf(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(os.Stdout, format, args...); err != nil {
		t.Fatal(err)
	}
}

func countNode(t *testing.T, names []string) *instructionList {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "valgrind", "--version").Output()
	ok(t, err)
	found := &instructionList{Go: runtime.Version(), Counter: strings.TrimSpace(string(version)), Requests: map[string]int{}}
	processor, _ := os.ReadFile("/proc/cpuinfo") // without it there are no features
	for _, feature := range []string{"aes", "avx2", "bmi2", "erms", "fma", "popcnt", "sse4_2"} {
		if slices.Contains(strings.Fields(string(processor)), feature) {
			found.Counter += " " + feature
		}
	}
	for i, count := range countAll(t, names) {
		found.Requests[names[i]] = count
	}
	return found
}

// countAll counts the instructions of each request, two at a time: a count does not depend on what else runs.
func countAll(t *testing.T, names []string) []int {
	t.Helper()
	each := make([]int, len(names))
	var waiting sync.WaitGroup
	places := make(chan bool, runtime.NumCPU())
	for i, name := range names {
		waiting.Go(func() {
			places <- true
			defer func() { <-places }()
			short, err := countProcess(t, name, countedShort)
			long, err2 := countProcess(t, name, countedLong)
			if err := errors.Join(err, err2); err != nil {
				t.Error(err)
			}
			each[i] = (long - short) / (countedLong - countedShort)
		})
	}
	waiting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return each
}

var instructionsRead = regexp.MustCompile(`I\s+refs:\s+([0-9,]+)`)

func countProcess(t *testing.T, name string, requests int) (int, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
		os.Args[0], "-test.run=^TestCounted$")
	order := fmt.Sprintf("COUNTED=%s/%d", name, requests)
	command.Env = append(os.Environ(), order, "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	out, err := command.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %.300s", order, err, out)
	}
	found := instructionsRead.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("%s: valgrind says %.300s", order, out)
	}
	return strconv.Atoi(strings.ReplaceAll(string(found[1]), ",", ""))
}

// TestCounted answers a number of requests below valgrind: COUNTED=best/10500.
func TestCounted(t *testing.T) {
	name, number, counted := strings.Cut(os.Getenv("COUNTED"), "/")
	if !counted {
		t.Skip("only for TestInstructions")
	}
	server, key := newNodeServer(t)
	ok(t, server.serveConn(newBenchedConn(benchedRequests(key)[name], must(strconv.Atoi(number)))))
}
