package httpapi

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
)

// plantHeader says where in a handler a panic is planted: before it, or behind it, when the answer is made and
// perhaps sent aside.
const plantHeader = "X-Plant"

// plantPanics puts handlers that panic when asked to in the place of all that are routed to. reached has their
// patterns.
func plantPanics(s *Server) (patterns []string, reached *sync.Map) {
	planted := map[string]endpoint{}
	reached = &sync.Map{}
	for pattern, real := range s.paths {
		patterns = append(patterns, pattern)
		planted[pattern] = endpoint{real.routeID, func(ctx *fasthttp.RequestCtx, a *requestState) {
			where := string(ctx.Request.Header.Peek(plantHeader))
			if where == "before" {
				reached.Store(pattern, true)
				panic("planted before " + pattern)
			}
			real.answer(ctx, a)
			if where == "behind" {
				panic("planted behind " + pattern)
			}
		}}
	}
	s.paths = planted
	return patterns, reached
}

// panicExchanges reach each pattern of a path.
func panicExchanges() []exchange {
	exchanges := []exchange{{method: "GET", target: livezPath}, {method: "GET", target: healthzPath}, {method: "GET", target: readyzPath}}
	for _, target := range goldenTargets() {
		exchanges = append(exchanges, exchange{method: "GET", target: target}, exchange{method: "HEAD", target: target})
	}
	for _, e := range accountGood() {
		exchanges = append(exchanges, e)
	}
	return exchanges
}

// TestO9_PanicInAnyHandler: a panic in any handler of a path, before it has begun or when its answer is made,
// is a 500 with the id of its line in the log; its own connection and all others go on, and nothing is charged for
// it (decision L6).
func TestO9_PanicInAnyHandler(t *testing.T) {
	var log lockedBuffer
	s := serve(t, withLimits(func(c *Config) {
		c.Admitter.(*fakeAdmitter).allowance = account.Quota{Day: 1 << 20, Minute: 1 << 20}
		c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	}))
	patterns, reached := plantPanics(s.server)
	stop := make(chan struct{})
	var others sync.WaitGroup
	var asked [3]int
	for i := range asked {
		conn, wire := s.dial(t)
		others.Go(func() { asked[i] = askOthers(t, conn, wire, stop) })
	}
	conn, wire := s.dial(t)
	ask := func(e exchange) answer {
		write(t, conn, string(e.bytes()))
		a := parseAnswer(t, wire, e.method)
		if e.body != "" {
			conn, wire = s.dial(t)
		}
		return a
	}
	fired, answered := 0, 0 // answered: and charged, before the panic behind it
	for _, where := range []string{"before", "behind", "before", "behind"} {
		for _, e := range panicExchanges() {
			e.lines = append(slices.Clone(e.lines), plantHeader+": "+where, "TE: trailers") // past the express path, whose panics TestExpress_SameAnswers has
			a := ask(e)
			fired++
			if where == "behind" && strings.HasPrefix(e.target, "/v1/") && !strings.HasPrefix(e.target, accountPrefix) {
				answered++
			}
			for _, problem := range panicProblems(e.method, e.body != "", a, log.text()) {
				t.Errorf("%s %s, %s: %s", e.method, e.target, where, problem)
			}
			if again := ask(exchange{method: "GET", target: "/v1/currencies"}); again.status != http.StatusOK || len(again.body) == 0 {
				t.Fatalf("behind %s %s the connection answers %d %s", e.method, e.target, again.status, again.body)
			}
		}
	}
	close(stop)
	others.Wait()
	s.stop(t)
	toOthers := asked[0] + asked[1] + asked[2]
	if got := s.admitter.charged("127.0.0.1"); got != fired+answered+toOthers {
		t.Errorf("%d charged for %d good answers", got, fired+answered+toOthers)
	}
	for _, pattern := range patterns {
		if _, known := reached.Load(pattern); !known {
			t.Errorf("nothing panicked in %s", pattern)
		}
	}
	if lines := strings.Count(log.text(), "a request ended in a panic"); lines != fired || len(patterns) < 12 || asked[0] == 0 {
		t.Errorf("%d panics, %d lines, %d patterns, %d others", fired, lines, len(patterns), asked[0])
	}
}

// askOthers sends requests on its own connection until stop is closed, and wants all answers to equal the first.
func askOthers(t *testing.T, conn net.Conn, wire *bufio.Reader, stop <-chan struct{}) (count int) {
	first := map[string][]byte{}
	for {
		for _, target := range goldenTargets() {
			if _, err := io.WriteString(conn, request(target)); err != nil {
				t.Error(err)
				return count
			}
			a := parseAnswer(t, wire, "GET")
			if first[target] == nil {
				first[target] = a.body
			}
			if a.status != http.StatusOK || !bytes.Equal(a.body, first[target]) {
				t.Errorf("%s is answered %d %.200s while others panic", target, a.status, a.body)
			}
			count++
		}
		select {
		case <-stop:
			return count
		default:
		}
	}
}

// panicProblems holds the answer to a request that panicked against what it must be.
func panicProblems(method string, closes bool, a answer, log string) (problems []string) {
	id := a.header.Get(headerRequestID)
	if a.status != http.StatusInternalServerError || len(id) != len(RequestID{}) || a.closes != closes {
		problems = append(problems, "not a 500 with an id on a connection that goes on, unless it had a body")
	}
	if !strings.Contains(log, `"a request ended in a panic","requestId":"`+id+`"`) {
		problems = append(problems, "no line in the log has the id "+id)
	}
	if method != http.MethodHead && !bytes.Contains(a.body, []byte(`{"error":{"code":"internal_error","message":"`+internalMessage+`","requestId":"`+id+`"}}`)) {
		problems = append(problems, "the body is "+string(a.body))
	}
	if bytes.Contains(a.body, []byte("planted")) {
		problems = append(problems, "the body tells the cause")
	}
	return problems
}
