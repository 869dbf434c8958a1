package httpapi

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// stillGate admits everybody at no cost: what is measured is httpapi.
type stillGate struct {
	grant      engine.Grant
	transition engine.Transition
}

func newStillGate() *stillGate {
	return &stillGate{grant: engine.Grant{Account: 1, Verdict: engine.Verdict{
		Admitted: true,
		Day:      engine.Window{Limit: 1000, Remaining: 734, Reset: engine.NextMidnight(fakeNow())},
		Minute:   engine.Window{Limit: 60, Remaining: 31, Reset: fakeNow().Add(41 * time.Second)},
	}}}
}

func (g *stillGate) Admit(engine.Caller) (engine.Grant, error) { return g.grant, nil }
func (g *stillGate) Refund(engine.Grant)                       {}
func (g *stillGate) Enforced() bool                            { return true }
func (g *stillGate) Transition() engine.Transition             { return g.transition }

// newGatedStillServer is a still server with a gate, behind a proxy.
func newGatedStillServer(t testing.TB, gate engine.Gate) *Server {
	t.Helper()
	return New(Config{
		Service: newStillService(t), Catalogue: engine.DefaultCatalogue(), Clock: fakeNow, RequestID: RequestIDs(1), Gate: gate,
		Accounts: newFakeAccounts(fakeNow), Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		DeprecationLink: "https://tasard.example/keys",
	})
}

// steadyConn is feedConn with an address of its own, as a connection has it.
type steadyConn struct {
	feedConn
	remote net.Addr
}

func (c *steadyConn) RemoteAddr() net.Addr { return c.remote }

func newSteadyConn(request []byte, count int) *steadyConn {
	return &steadyConn{feedConn{request: request, count: count}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}}
}

const admissionTarget = "/v1/rates/best?currency=USD&operation=buy&limit=10"

// admissionLines are what a client with a key sends through a proxy.
func admissionLines() string {
	return bearer(testKey(1)) + "\r\nX-Forwarded-For: 198.51.100.7, 127.0.0.3\r\n"
}

// TestF4_AdmissionAllocatesNothing: with a key, two windows, a proxy and an announcement a warm page still costs no allocation.
func TestF4_AdmissionAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	announcing := newStillGate()
	announcing.transition = announced(time.Hour)
	for name, gate := range map[string]*stillGate{"gate": newStillGate(), "announcement": announcing} {
		for _, lines := range []string{"", admissionLines(), "Authorization: Basic YTpi\r\n", admissionLines() + "If-None-Match: *\r\nAccept-Encoding: gzip\r\n"} {
			server := newGatedStillServer(t, gate)
			ctx := new(fasthttp.RequestCtx)
			ctx.Init2(newSteadyConn(nil, 0), nil, false)
			readRequest(t, ctx, benchRequest(admissionTarget, lines))
			allocations := testing.AllocsPerRun(300, func() {
				ctx.Response.Reset()
				server.Handler()(ctx)
			})
			if head := ctx.Response.Header.Header(); allocations > 0 || !bytes.Contains(head, []byte("\r\nRateLimit: ")) {
				t.Errorf("%s, %q: %v allocations, %s", name, lines, allocations, head)
			}
		}
	}
}

// BenchmarkAdmission measures the way with a key through the gate, the same request without a gate, and a handler that answers the
// bytes of the first.
func BenchmarkAdmission(b *testing.B) {
	request := benchRequest(admissionTarget, admissionLines())
	gated := newGatedStillServer(b, newStillGate())
	ctx := new(fasthttp.RequestCtx)
	ctx.Init2(newSteadyConn(nil, 0), nil, false)
	readRequest(b, ctx, request)
	gated.Handler()(ctx)
	bare := newStillServer(b)
	bare.http.Handler = bareHandler(&ctx.Response)
	for _, run := range []struct {
		name string
		http *fasthttp.Server
	}{{"gate", gated.http}, {"nogate", newStillServer(b).http}, {"bare", bare.http}} {
		b.Run(run.name, func(b *testing.B) {
			b.ReportAllocs()
			conn := newSteadyConn(request, b.N)
			if err := run.http.ServeConn(conn); err != nil {
				b.Fatal(err)
			}
		})
	}
}
