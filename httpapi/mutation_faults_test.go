//go:build faults

package httpapi

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/conn"
)

const (
	mutations = 1_000_000
	// mutationsPerServer is after how many cases a server is replaced: its fakes remember what they were asked.
	mutationsPerServer = 400
)

// TestFaultsO7_Mutations spoils good requests at random, cuts them anywhere, and judges every byte of the answers. A
// crash or a hang ends the test itself.
func TestFaultsO7_Mutations(t *testing.T) {
	if problem, answers := playMutations(t, mutationSeed(t), mutations, nil); problem != "" || answers < mutations/2 {
		t.Fatalf("%d answers to %d mutants: %s", answers, mutations, problem)
	}
}

// TestFaultsO7_Control plants what the run above is there for; each must be found.
func TestFaultsO7_Control(t *testing.T) {
	for name, wrong := range map[string]fasthttp.RequestHandler{
		"5xx":   func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(fasthttp.StatusBadGateway) },
		"body":  func(ctx *fasthttp.RequestCtx) { ctx.Response.SetBodyString("oops") },
		"no id": func(ctx *fasthttp.RequestCtx) { ctx.Response.Header.Del(headerRequestID) },
	} {
		if problem, _ := playMutations(t, 1, 4000, wrong); problem == "" {
			t.Errorf("%s is not found", name)
		}
	}
}

// playMutations plays mutants of a seed, shared out to a worker for each processor, and returns the first problem.
// wrong, unless nil, spoils the answers to some requests.
func playMutations(t *testing.T, seed, count uint64, wrong fasthttp.RequestHandler) (problem string, answers uint64) {
	t.Helper()
	var next, read atomic.Uint64
	var once sync.Once
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			bases, words := mutationBases(t), mutationWords()
			server := mutationServer(t, wrong)
			for number := next.Add(1); number <= count; number = next.Add(1) {
				if number%mutationsPerServer == 0 {
					server = mutationServer(t, wrong)
				}
				m := newMutant(seed, number, bases, words)
				conn := &cutConn{rawConn: rawConn{in: m.request, step: rawBufferBytes}, cuts: m.cuts}
				_ = server.ServeConn(listenedConn(conn)) // the error does not matter, only what was written
				out := conn.out.Bytes()
				read.Add(uint64(bytes.Count(out, []byte("\r\n"+headerRequestID+": "))))
				if found := framingProblem(out, conn.methods); found != "" {
					once.Do(func() {
						problem = fmt.Sprintf("case %d of seed %d: %s\n%q, cut at %v", number, seed, found, m.request, m.cuts)
					})
					next.Store(count) // no other begins
				}
			}
		})
	}
	workers.Wait()
	return problem, read.Load()
}

func mutationServer(t *testing.T, wrong fasthttp.RequestHandler) *fasthttp.Server {
	server := newFixtureWithLimits(t, nil).server.http
	inner := server.Handler
	server.Handler = func(ctx *fasthttp.RequestCtx) {
		cut := ctx.Conn().(*conn.Conn).Conn.(*cutConn)
		cut.methods = append(cut.methods, string(ctx.Method()))
		inner(ctx)
		if wrong != nil && bytes.IndexByte(ctx.RequestURI(), '%') >= 0 {
			wrong(ctx)
		}
	}
	return server
}

// cutConn hands out what came up to the next cut.
type cutConn struct {
	rawConn
	cuts    []int
	read    int
	methods []string // of the requests that were answered
}

func (c *cutConn) Read(p []byte) (int, error) {
	for len(c.cuts) > 0 && c.cuts[0] <= c.read {
		c.cuts = c.cuts[1:]
	}
	if len(c.cuts) > 0 {
		p = p[:min(len(p), c.cuts[0]-c.read)]
	}
	n, err := c.rawConn.Read(p)
	c.read += n
	return n, err
}

// TestFaultsF1_ExpressSameAnswers plays a million requests past the express path and through it: ten minutes.
func TestFaultsF1_ExpressSameAnswers(t *testing.T) { checkExpress(t, mutationSeed(t), 1_000_000) }
