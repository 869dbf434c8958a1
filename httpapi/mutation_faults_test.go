//go:build faults

package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/conn"
)

const (
	mutationsInMemory = 850_000
	mutationsOverTCP  = 150_000
	// mutationPatience is how long a request may take: the goal's five seconds.
	mutationPatience = 5 * time.Second
	// mutationsPerServer is after how many cases a server in memory is replaced: its fakes remember what they were
	// asked.
	mutationsPerServer = 400
)

// TestFaultsO7_MutationsInMemory spoils good requests at random, cuts them anywhere, and judges every byte of the
// answers.
func TestFaultsO7_MutationsInMemory(t *testing.T) {
	seed := mutationSeed(t)
	run := &mutationRun{seed: seed, count: mutationsInMemory, patience: mutationPatience, player: func() mutantPlayer { return newMemoryPlayer(t, nil) }}
	run.play(t)
	run.report(t, "in memory")
}

// TestFaultsO7_MutationsOverTCP does it with the connections of a node: what gathers, watches and times them is theirs.
func TestFaultsO7_MutationsOverTCP(t *testing.T) {
	seed := mutationSeed(t)
	s := serve(t, func(c *Config) {
		c.Limits = Limits{ReadTimeout: 2 * mutationPatience}
		c.Accounts = newFakeAccounts(c.Clock)
	})
	var source atomic.Uint32
	run := &mutationRun{seed: seed, count: mutationsOverTCP, patience: 2 * mutationPatience, player: func() mutantPlayer {
		return &tcpPlayer{address: s.address, worker: byte(1 + source.Add(1))}
	}}
	run.play(t)
	run.report(t, "over TCP")
}

// TestFaultsO7_Control plants what the runs above are there for; each must be found.
func TestFaultsO7_Control(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	plant := func(wrong func(*fasthttp.RequestCtx)) func(testing.TB) mutantPlayer {
		return func(t testing.TB) mutantPlayer {
			return newMemoryPlayer(t, func(inner fasthttp.RequestHandler) fasthttp.RequestHandler {
				return func(ctx *fasthttp.RequestCtx) {
					inner(ctx)
					if bytes.IndexByte(ctx.RequestURI(), '%') >= 0 {
						wrong(ctx)
					}
				}
			})
		}
	}
	for name, planted := range map[string]func(testing.TB) mutantPlayer{
		"panic": plant(func(*fasthttp.RequestCtx) { panic("planted") }),
		"hang":  plant(func(*fasthttp.RequestCtx) { <-release }),
		"5xx":   plant(func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(fasthttp.StatusBadGateway) }),
		"body":  plant(func(ctx *fasthttp.RequestCtx) { ctx.Response.SetBodyString("oops") }),
		"no id": plant(func(ctx *fasthttp.RequestCtx) { ctx.Response.Header.Del(headerRequestID) }),
	} {
		t.Run(name, func(t *testing.T) {
			run := &mutationRun{seed: 1, count: 4000, patience: 200 * time.Millisecond, player: func() mutantPlayer { return planted(t) }}
			run.play(t)
			if run.found == nil {
				t.Fatal("it is not found")
			}
			t.Logf("FIGURE planted %s: found at case %d, %s", name, run.found.number, run.found.problem)
		})
	}
}

// mutantPlayer plays a mutant and tells what was wrong, or "".
type mutantPlayer interface {
	play(m mutant) (problem string, answers int)
	fresh() mutantPlayer
}

// mutationRun is many mutants, shared out to a worker for each processor.
type mutationRun struct {
	seed, count uint64
	patience    time.Duration
	player      func() mutantPlayer
	hung        chan bool // a case has outlasted the patience

	next, played, answers atomic.Uint64
	mu                    sync.Mutex
	found                 *finding
	took                  time.Duration
}

type finding struct {
	number  uint64
	problem string
	m       mutant
}

// play ends with the last case, the first failure, or a case that outlasts the patience. The worker of that one is
// left behind.
func (r *mutationRun) play(t *testing.T) {
	t.Helper()
	began, ended := bubbleNow(), make(chan bool)
	var workers sync.WaitGroup
	r.hung = make(chan bool, runtime.GOMAXPROCS(0))
	for range cap(r.hung) {
		workers.Go(r.work)
	}
	go func() {
		workers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-r.hung:
	}
	r.took = bubbleNow().Sub(began)
}

func (r *mutationRun) note(f *finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == nil {
		r.found = f
	}
	r.next.Store(r.count) // no other begins
}

func (r *mutationRun) work() {
	bases, words := mutationBases(), mutationWords()
	p := r.player()
	for {
		number := r.next.Add(1)
		if number > r.count {
			return
		}
		if number%mutationsPerServer == 0 {
			p = p.fresh()
		}
		m := newMutant(r.seed, number, bases, words)
		watch := time.AfterFunc(r.patience, func() {
			r.note(&finding{number, fmt.Sprintf("no end after %s", r.patience), m})
			r.hung <- true
		})
		problem, answers := guardedPlay(p, m)
		watch.Stop()
		if problem != "" {
			r.note(&finding{number, problem, m})
			return
		}
		r.played.Add(1)
		r.answers.Add(uint64(answers))
	}
}

func guardedPlay(p mutantPlayer, m mutant) (problem string, answers int) {
	defer func() {
		if cause := recover(); cause != nil {
			problem = fmt.Sprintf("crash: %v", cause)
		}
	}()
	return p.play(m)
}

func (r *mutationRun) report(t *testing.T, where string) {
	t.Helper()
	t.Logf("FIGURE %s: %d mutations of %d good requests, %d answers read, %.0f s; seed %d",
		where, r.played.Load(), len(mutationBases()), r.answers.Load(), r.took.Seconds(), r.seed)
	if f := r.found; f != nil {
		t.Fatalf("seed %d, case %d: %s\n%d bytes, cut at %v:\n%q", r.seed, f.number, f.problem, len(f.m.request), f.m.cuts, f.m.request)
	}
	if r.played.Load() != r.count || r.answers.Load() < r.count/2 {
		t.Errorf("%d of %d were played, %d answers", r.played.Load(), r.count, r.answers.Load())
	}
}

type memoryPlayer struct {
	t    testing.TB
	wrap func(fasthttp.RequestHandler) fasthttp.RequestHandler
	http *fasthttp.Server
}

func newMemoryPlayer(t testing.TB, wrap func(fasthttp.RequestHandler) fasthttp.RequestHandler) *memoryPlayer {
	p := &memoryPlayer{t: t, wrap: wrap, http: newFixtureWithLimits(t, nil).server.http}
	inner := p.http.Handler
	if wrap != nil {
		inner = wrap(inner)
	}
	p.http.Handler = func(ctx *fasthttp.RequestCtx) {
		cut := ctx.Conn().(*conn.Conn).Conn.(*cutConn)
		cut.methods = append(cut.methods, string(ctx.Method()))
		inner(ctx)
	}
	return p
}

func (p *memoryPlayer) fresh() mutantPlayer {
	return newMemoryPlayer(p.t, p.wrap)
}

func (p *memoryPlayer) play(m mutant) (problem string, answers int) {
	conn := &cutConn{rawConn: rawConn{in: m.request, step: rawBufferBytes}, cuts: m.cuts}
	_ = p.http.ServeConn(listenedConn(conn)) // the error does not matter, only what was written
	out := conn.out.Bytes()
	return framingProblem(out, conn.methods), bytes.Count(out, []byte("\r\n"+headerRequestID+": "))
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

type tcpPlayer struct {
	address string
	worker  byte
	count   int
}

func (p *tcpPlayer) fresh() mutantPlayer { return p }

func (p *tcpPlayer) play(m mutant) (problem string, answers int) {
	// A complete answer to HEAD can't be distinguished from a half.
	m.request = bytes.ReplaceAll(m.request, []byte("HEAD"), []byte("READ"))
	p.count++ // an address has ports for so many connections a minute
	from := net.IPv4(127, p.worker, byte(p.count/250), byte(1+p.count%250))
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: mutationPatience}
	dialed, err := dialer.Dial("tcp", p.address)
	if err != nil {
		return err.Error(), 0
	}
	conn := dialed.(*net.TCPConn)
	defer conn.Close()
	_ = conn.SetDeadline(after(mutationPatience))
	at := 0
	for _, cut := range append(m.cuts, len(m.request)) {
		if _, err := conn.Write(m.request[at:cut]); err != nil {
			break // refused half-way; the answers tell
		}
		at = cut
	}
	_ = conn.CloseWrite()
	out, err := io.ReadAll(conn)
	answers = bytes.Count(out, []byte("\r\n"+headerRequestID+": "))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Sprintf("no end after %s, %d answers", mutationPatience, answers), answers
	}
	if err != nil {
		return "", answers // reset, because bytes were left unread: what came before may be cut off
	}
	return framingProblem(out, nil), answers
}

// TestFaultsF1_ExpressSameAnswers plays a million requests past the express path and through it: ten minutes.
func TestFaultsF1_ExpressSameAnswers(t *testing.T) { checkExpress(t, mutationSeed(t), 1_000_000) }
