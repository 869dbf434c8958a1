package httpapi

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
)

// newBenchGate is a real node with one account and its key. Its clock goes on by ten milliseconds with each look at it, so that no
// window fills up, and its leases are so long that the log is hardly written.
func newBenchGate(t testing.TB) (gate engine.Gate, key string) {
	t.Helper()
	var looks atomic.Int64
	steady := func() time.Duration { return time.Duration(looks.Add(1)) * 10 * time.Millisecond }
	box := &letterBox{letters: map[engine.Email]engine.Letter{}}
	system, err := actors.Open(actors.Config{
		Dir: t.TempDir(), Clock: func() time.Time { return fakeNow().Add(steady() / 1000) }, Steady: steady, Mailer: box,
		Log: actors.LogConfig{ReserveBytes: -1}, Terms: engine.Terms{Allowance: engine.Allowance{Day: 1e9, Minute: 100_000}, Lease: 100_000},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	<-system.Ready()
	luz, nowhere := email("luz@example.do"), engine.Caller{}.Address
	if err := system.RequestCode(luz, nowhere); err != nil {
		t.Fatal(err)
	}
	token, _, err := system.OpenSession(luz, box.letters[luz].Code.Reveal(), nowhere)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := system.CreateKey(token.Digest(), "bench")
	if err != nil {
		t.Fatal(err)
	}
	return system, secret.Reveal()
}

// BenchmarkAdmissionNode is BenchmarkAdmission with the gate of a real node, for a key and for an address.
func BenchmarkAdmissionNode(b *testing.B) {
	gate, key := newBenchGate(b)
	for name, lines := range map[string]string{"key": bearer(key) + "\r\n", "address": ""} {
		b.Run(name, func(b *testing.B) {
			server := newGatedStillServer(b, gate)
			request := benchRequest(admissionTarget, lines)
			ctx := new(fasthttp.RequestCtx)
			ctx.Init2(newSteadyConn(nil, 0), nil, false)
			readRequest(b, ctx, request)
			server.Handler()(ctx)
			if ctx.Response.StatusCode() != fasthttp.StatusOK {
				b.Fatalf("%d: %s", ctx.Response.StatusCode(), ctx.Response.Body())
			}
			b.ReportAllocs()
			b.ResetTimer()
			if err := server.http.ServeConn(newSteadyConn(request, b.N)); err != nil {
				b.Fatal(err)
			}
		})
	}
}
