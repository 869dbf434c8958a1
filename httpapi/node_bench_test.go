package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// benchedRequests are the questions whose cost is watched, each against a handler that answers the same bytes from
// memory.
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

// benchedConn is a repeatingConn that never asks about the same amount twice.
type benchedConn struct {
	*repeatingConn
	amount []byte // its place in the request; empty without one
}

func newBenchedConn(request []byte, count int) *benchedConn {
	own := bytes.Clone(request)
	at := max(0, bytes.Index(own, []byte(firstAmount)))
	amount := own[at:at]
	if at > 0 {
		amount = own[at : at+len(firstAmount)]
	}
	return &benchedConn{newRepeatingConn(own, count), amount}
}

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
	return c.repeatingConn.Read(b)
}

// newNodeServer is a server over the real thing, log, actors, 45 institutions that quote dollars, and a key of an
// account. Callers without it are counted by address.
func newNodeServer(t testing.TB) (server *Server, key string) {
	t.Helper()
	server, keys := newNodeServerWith(t, tickingClock(), 1)
	return server, keys[0]
}

func newNodeServerWith(t testing.TB, steady func() time.Duration, accounts int) (server *Server, keys []string) {
	t.Helper()
	gate, keys := newBenchAdmitter(t, steady, accounts)
	system := gate.(*actors.System)
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
	return New(Config{Service: system, Admitter: system, Catalogue: catalogue, Clock: fakeNow, RequestID: RequestIDs(1)}), keys
}

type connServer func(net.Conn) error

// serveConn serves a connection as one that a listener of the server accepted.
func (s *Server) serveConn(c net.Conn) error {
	config := s.connConfig()
	config.LoadShedder = nil // it knows connections of TCP only
	return s.http.ServeConn(must(conn.Listen(&oneListener{conn: c}, config).Accept()))
}

// nodeAndBare is the node and the yardstick for one question, on the same server settings.
func nodeAndBare(t testing.TB, name string) (request []byte, pair map[string]connServer) {
	t.Helper()
	node, key := newNodeServer(t)
	bare := newStaticServer(t)
	request = benchedRequests(key)[name]
	ctx := new(fasthttp.RequestCtx)
	readRequest(t, ctx, request)
	node.Handler()(ctx)
	if ctx.Response.StatusCode() != fasthttp.StatusOK {
		t.Fatalf("status %d: %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
	bare.http.Handler = bareHandler(&ctx.Response)
	return request, map[string]connServer{"node": node.serveConn, "bare": bare.http.ServeConn}
}

// BenchmarkNode compares the node with the bare server; nothing but the ratio within one run means anything.
func BenchmarkNode(b *testing.B) {
	for name := range benchedRequests("") {
		request, pair := nodeAndBare(b, name)
		for side, serve := range pair {
			b.Run(name+"/"+side, func(b *testing.B) {
				b.ReportAllocs()
				if err := serve(newBenchedConn(request, b.N)); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// A warm question costs no allocation anywhere, connection and actors included. Of an amount that was never seen
// before, the amount itself is one.
func TestNodeAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	server, key := newNodeServer(t)
	most := map[string]int{"convert": 1}
	for name, request := range benchedRequests(key) {
		if allocs := allocationsPerRequest(t, server.serveConn, request); allocs > most[name] {
			t.Errorf("%s allocates %d times, want at most %d", name, allocs, most[name])
		}
	}
}

type parallelConn struct {
	*benchedConn
	pb *testing.PB
}

func (c *parallelConn) Read(b []byte) (int, error) {
	if !c.pb.Next() {
		return 0, io.EOF
	}
	return c.benchedConn.Read(b)
}

// processorTime is what the process has used of all processors: steadier than the time on the wall of a machine
// that others use too.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // it can't fail for the process itself
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkCores is the whole path of a request with a key, for a connection of each processor, all of which ask
// for the same page. Run it with -cpu 1,2: two processors should take half the time, and as much CPU time of each
// request.
func BenchmarkCores(b *testing.B) {
	server, keys := newNodeServerWith(b, hurriedClock(), 64)
	var connections atomic.Int64
	b.ReportAllocs()
	before := processorTime()
	defer func() { b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op") }()
	b.RunParallel(func(pb *testing.PB) {
		request := benchedRequests(keys[int(connections.Add(1))%len(keys)])["key"]
		if err := server.serveConn(&parallelConn{newBenchedConn(request, math.MaxInt), pb}); err != nil {
			b.Error(err)
		}
	})
}
