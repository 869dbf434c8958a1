package httpapi

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
)

// hotRequests are the questions whose cost is watched, each against a handler that answers the same bytes from memory.
func hotRequests(key string) map[string][]byte {
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
	}
}

// newNodeServer is a server over the real thing, log, actors, 45 institutions that quote dollars, and a key of an account. Callers
// without it are counted by address.
func newNodeServer(t testing.TB) (server *Server, key string) {
	t.Helper()
	gate, key := newBenchGate(t)
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
	return New(Config{Service: system, Gate: system, Catalogue: catalogue, Clock: fakeNow, RequestID: RequestIDs(1)}), key
}

// hotPair is the node and the yardstick for one question, on the same server settings.
func hotPair(t testing.TB, name string) (request []byte, pair map[string]*fasthttp.Server) {
	t.Helper()
	node, key := newNodeServer(t)
	bare := newStillServer(t)
	request = hotRequests(key)[name]
	ctx := new(fasthttp.RequestCtx)
	readRequest(t, ctx, request)
	node.Handler()(ctx)
	if ctx.Response.StatusCode() != fasthttp.StatusOK {
		t.Fatalf("status %d: %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
	bare.http.Handler = bareHandler(&ctx.Response)
	return request, map[string]*fasthttp.Server{"node": node.http, "bare": bare.http}
}

// BenchmarkNode compares the node with the bare server; nothing but the ratio within one run means anything.
func BenchmarkNode(b *testing.B) {
	for name := range hotRequests("") {
		request, pair := hotPair(b, name)
		for side, server := range pair {
			b.Run(name+"/"+side, func(b *testing.B) {
				b.ReportAllocs()
				if err := server.ServeConn(newSteadyConn(request, b.N)); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// A warm question costs no allocation anywhere, actors included.
func TestNodeAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	server, key := newNodeServer(t)
	for name, request := range hotRequests(key) {
		ctx := new(fasthttp.RequestCtx)
		ctx.Init2(newSteadyConn(nil, 0), nil, false)
		readRequest(t, ctx, request)
		handler := server.Handler()
		handler(ctx)
		if allocs := testing.AllocsPerRun(1000, func() { ctx.Response.Reset(); handler(ctx) }); allocs != 0 {
			t.Errorf("%s allocates %.1f times", name, allocs)
		}
	}
}

// TestCount answers a number of requests and ends, for the instruction counter: HOTPATH=best/node/12000.
func TestCount(t *testing.T) {
	order := strings.Split(os.Getenv("HOTPATH"), "/")
	if len(order) != 3 {
		t.Skip("only for make bench-instructions")
	}
	count, err := strconv.Atoi(order[2])
	if err != nil {
		t.Fatal(err)
	}
	request, pair := hotPair(t, order[0])
	if err := pair[order[1]].ServeConn(newSteadyConn(request, count)); err != nil {
		t.Fatal(err)
	}
}
