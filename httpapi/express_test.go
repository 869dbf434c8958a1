package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// scriptedConn is a client in memory that sends one piece for each Read, keeps the answers, and does something
// before one of the pieces.
type scriptedConn struct {
	addressedConn
	pieces [][]byte
	before func(left int) // left pieces are to come
	out    bytes.Buffer
}

// RemoteAddr is the address of a client, not of a proxy, unless the server trusts it.
func (*scriptedConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 40000}
}

func (c *scriptedConn) Write(b []byte) (int, error) { return c.out.Write(b) }

func (c *scriptedConn) Read(b []byte) (int, error) {
	if len(c.pieces) == 0 {
		return 0, io.EOF
	}
	c.before(len(c.pieces))
	n := copy(b, c.pieces[0])
	if c.pieces[0] = c.pieces[0][n:]; len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	return n, nil
}

// twoWays plays the same requests through the express path and past it, on one server.
type twoWays struct {
	*fixture
	start     time.Time // when a case begins
	express   func(*conn.Conn, []byte) (int, error)
	expressed int      // requests that the express path answered
	wrongDate int      // of these, those with a date that is not the clock's
	out       []byte   // the answers of the newest play
	methods   []string // of the requests that it answered, as far as they are known
	answers   int      // in all plays
}

func newTwoWays(t testing.TB, proxied bool) *twoWays {
	w := &twoWays{start: fakeNow()}
	w.fixture = newFixtureWithLimits(t, func(c *Config) {
		c.RequestID = func() RequestID { return RequestID([]byte("0123456789abcdef")) } // ids differ, whatever the way
		if proxied {
			c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		}
	})
	w.express = w.server.express
	w.around(func(ctx *fasthttp.RequestCtx, next fasthttp.RequestHandler) {
		w.methods = append(w.methods, string(ctx.Method()))
		next(ctx)
	})
	return w
}

// around puts a handler around that of the server.
func (w *twoWays) around(handler func(ctx *fasthttp.RequestCtx, next fasthttp.RequestHandler)) {
	next := w.server.http.Handler
	w.server.http.Handler = func(ctx *fasthttp.RequestCtx) { handler(ctx, next) }
}

func (w *twoWays) reset() {
	w.wrongDate, w.methods = 0, nil
	w.clock.set(w.start)
	w.service.published, w.service.fault, w.service.panics = slices.Repeat(fakeRates(w.service.catalogue), 3), nil, nil // more than one write takes
	clear(w.service.pages)
	fresh := newFakeAdmitter(w.clock.now)
	w.admitter.transition, w.admitter.off, w.admitter.fault, w.admitter.panics = account.KeyPolicy{}, false, nil, nil
	w.admitter.accounts, w.admitter.refused, w.admitter.quota, w.admitter.charges = fresh.accounts, fresh.refused, fresh.quota, fresh.charges
	w.admitter.callers, w.admitter.granted, w.admitter.refunds = nil, 0, 0
	w.server.load.draining.Store(nil)
}

// nodeChanges are what may happen to a node between two requests.
func nodeChanges() []func(*twoWays) {
	return []func(*twoWays){
		func(w *twoWays) { w.clock.set(fakeNow().Add(1500 * time.Millisecond)) },
		func(w *twoWays) { w.clock.set(engine.NextMidnight(fakeNow())) },
		func(w *twoWays) { w.clock.set(engine.NextRefresh(fakeNow()).Add(-1)) },
		func(w *twoWays) { w.service.published = w.service.published[1:]; clear(w.service.pages) },
		func(w *twoWays) { w.service.published = nil; clear(w.service.pages) },
		func(w *twoWays) {
			w.service.fault = &engine.Error{Code: engine.CodeDataUnavailable, Message: "Nothing is loaded."}
		},
		func(w *twoWays) { w.service.panics = "planted" },
		func(w *twoWays) { clear(w.admitter.accounts) },
		func(w *twoWays) { w.admitter.spend(account1, 60, fakeNow()) },
		func(w *twoWays) { w.admitter.spend("192.0.2.7", 1000, fakeNow().Add(-2*time.Hour)) },
		func(w *twoWays) {
			w.admitter.fault = &engine.Error{Code: engine.CodeOverloaded, Message: "Too much is asked."}
		},
		func(w *twoWays) { w.admitter.panics = "planted" },
		func(w *twoWays) { w.admitter.off = true },
		func(w *twoWays) { w.admitter.transition = keysRequiredIn(10 * 24 * time.Hour) },
		func(w *twoWays) { w.admitter.transition = keysRequiredIn(-time.Hour) },
		func(w *twoWays) { w.admitter.transition, w.admitter.off = keysRequiredIn(-time.Hour), true },
		func(w *twoWays) { w.server.Drain() },
	}
}

// expressCase are pieces that a client sends on a connection, and what happens to the node before the last of them.
type expressCase struct {
	pieces [][]byte
	change func(*twoWays) // nil: nothing
}

// play returns the answers to a case, without their dates, and the charges of each caller.
func (w *twoWays) play(t testing.TB, c *expressCase, express func(*conn.Conn, []byte) (int, error)) string {
	t.Helper()
	w.reset()
	config := w.server.connConfig()
	config.Express = express
	client := &scriptedConn{pieces: slices.Clone(c.pieces), before: func(left int) {
		if left == 1 && c.change != nil {
			c.change(w)
		}
	}}
	accepted := must(conn.Listen(&oneListener{conn: client}, config).Accept())
	_ = w.server.http.ServeConn(accepted) // how it ends is in the answers
	_ = accepted.Close()
	out := client.out.Bytes()
	for at := 0; at >= 0; {
		rest := out[at:]
		next := bytes.Index(rest, []byte("\r\nDate: "))
		if next < 0 {
			break
		}
		at += next + len("\r\nDate: ")
		copy(out[at:], "Fri, 01 Jan 2000 00:00:00")
	}
	w.out, w.answers = out, w.answers+len(w.methods)
	return fmt.Sprint(w.admitter.charges, "\n", client.out.String())
}

// expressProblem tells where the two ways differ, "" when they don't.
func (w *twoWays) expressProblem(t testing.TB, c *expressCase) string {
	t.Helper()
	ordinary := w.play(t, c, nil)
	express := w.play(t, c, func(c *conn.Conn, read []byte) (int, error) {
		out := &c.Conn.(*scriptedConn).out
		before := out.Len()
		used, err := w.express(c, read)
		if used > 0 {
			w.expressed++
			date := []byte("\r\nDate: ")
			answers := out.Bytes()[before:]
			w.methods = append(w.methods, slices.Repeat([]string{"GET"}, bytes.Count(answers, date))...)
			w.wrongDate += bytes.Count(answers, date) - bytes.Count(answers, fasthttp.AppendHTTPDate(date, w.clock.now()))
		}
		return used, err
	})
	if w.wrongDate > 0 {
		return fmt.Sprintf("%q: an answer has not the date of the clock", c.pieces)
	}
	if express == ordinary {
		if c.change == nil {
			return framingProblem(w.out, w.methods)
		}
		return ""
	}
	at := 0
	for at < min(len(express), len(ordinary)) && express[at] == ordinary[at] {
		at++
	}
	from := max(0, at-200)
	return fmt.Sprintf("%q\nexpress:  %.400q\nordinary: %.400q", c.pieces, express[from:], ordinary[from:])
}

// expressHead makes the head of a request as clients send it, and as they should not.
func expressHead(random *rand.Rand) []byte {
	one := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	seldom := func(text string) string {
		if random.IntN(8) > 0 {
			return ""
		}
		return text
	}
	target := one("/v1/rates/best?currency=USD&operation=buy", "/v1/rates/best?operation=sell&currency=USD&limit=1", "/v1/rates?limit=3", "/v1/currencies",
		"/v1/institutions", "/v1/institutions/bhd", "/v1/institutions/none", "/v1/rates/history?currency=USD", "/v1/convert?currency=USD&operation=buy&amount=10",
		"/v1/convert?amount=10&currency=USD&operation=sell", "/v1/convert?currency=USD&operation=buy&amount=10&limit=2",
		"/v1/convert?currency=USD&operation=buy&%61mount=10", "/v1/convert?amount=10&currency=USD&operation=buy&amount=10",
		"/v1/convert?xamount=10&currency=USD&operation=buy&amount=10", "/v1/convert?currency=USD&operation=buy",
		"/v1/rates/best?currency=usd", "/livez", "/v1/account/usage", "/v1/rates?key="+testKey(1))
	key := one("", "", bearer(testKey(1)), bearer(testKey(1)), bearer(testKey(2)), bearer(testKey(5)), bearer(testKey(8)), bearer(testKey(9)),
		"authorization:  bearer "+testKey(1), "Authorization: Bearer "+testKey(1)+"x", "Authorization: Bearer "+testKey(1)[1:], "Authorization: Basic YQ==",
		"X-Key: "+testKey(1), "X-A: "+testKey(2)+"\r\n"+bearer(testKey(1)))
	lines := []string{
		"Host: api.example.do", "User-Agent: client/1.0", key, one("", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0", "Accept-Encoding: br\r\nAccept-Encoding: gzip"),
		seldom("If-None-Match: *"), seldom(`If-None-Match: W/"a"`), seldom(seldom("If-None-Match: \"b\"\r\nIf-None-Match: *")), seldom("Connection: close"), seldom("connection: Close"), seldom("Connection: keep-alive"),
		seldom(one("Expect: 100-continue", "Expect: 100-Continue", "Content-Length: 0", "Range: bytes=0-1", "Transfer-Encoding: chunked", "TE: trailers")),
		one("", "Cookie: a=b", "Cookie: session="+fmt.Sprint(random.Uint64())+"; b=\"c d\"", "Cookie: a\r\nCookie: b"), one("", fmt.Sprintf("traceparent: 00-%032x-01", random.Uint64())),
		seldom(one("X-Odd_Name-1: \t value; and \t tabs\t", "X-Empty:", "X-Bytes: \xc3\xb1", "X!#$%&'*+.^`|~: 1")),
		seldom(one("X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 198.51.100.2", "X-Forwarded-For: unknown, 192.0.2.9",
			"X-Forwarded-For: 198.51.100.1\r\nx-forwarded-for: 192.0.2.9", "X-Forwarded-For:")),
	}
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	method, scheme, version := "GET", "", "HTTP/1.1"
	switch random.IntN(24) {
	case 0:
		method = one("HEAD", "OPTIONS", "POST", "get")
	case 1:
		scheme = one("http://api.example.do", "HTTPS://api.example.do:8080")
	case 2:
		version = one("HTTP/1.0", "HTTP/1.2", "http/1.1")
	}
	return []byte(method + " " + scheme + target + " " + version + "\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n")
}

// newExpressCase makes case number of a seed: a head until it is known, then the same one or one a little
// different, most of them the only one in their piece.
func newExpressCase(seed, number uint64) *expressCase {
	random := rand.New(rand.NewPCG(seed, number))
	changes := nodeChanges()
	head := expressHead(random)
	last := bytes.Clone(head)
	switch random.IntN(8) {
	case 0, 1:
		last = mutate(random, last, [][]byte{expressHead(random)}, mutationWords())
	case 2:
		last = expressHead(random)
	case 3:
		key := []byte(testKey(random.IntN(10)))
		if random.IntN(4) == 0 {
			key[len(key)-1-random.IntN(20)] = 'z' // a typo
		}
		last = bytes.Replace(last, []byte(testKey(1)), key, 1)
	case 4:
		amounts := []string{"1", "10.", "10.5", "007.00", "10.555", ".5", "", "1.1.1", "999999999999.99", "1234567890123", "10%2E5", "1e3", "-1", "10+", "10 "}
		last = bytes.Replace(last, []byte("amount=10"), []byte("amount="+amounts[random.IntN(len(amounts))]), 1)
	}
	pieces := [][]byte{[]byte("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"), head, head, head, last, last}
	switch random.IntN(8) {
	case 0:
		pieces[4] = append(bytes.Clone(last), head...)
	case 2:
		pieces[3] = bytes.Repeat(head, 1+random.IntN(5))
		pieces[4] = slices.Concat(head, head, last, head)[:random.IntN(len(head))+2*len(head)]
	case 1:
		at := random.IntN(len(last) + 1)
		pieces = append(pieces[:4], last[:at], last[at:], head)
	}
	var change func(*twoWays)
	if random.IntN(2) == 0 {
		change = changes[random.IntN(len(changes))]
	}
	return &expressCase{slices.DeleteFunc(pieces, func(p []byte) bool { return len(p) == 0 }), change}
}

// spoiltRequests are good requests of every kind and length: those of the raw corpus and of accounts.
var spoiltRequests = sync.OnceValue(func() (requests [][]byte) {
	for _, c := range must(readRawCorpus()) {
		if !c.mustRefuse() {
			requests = append(requests, c.Request)
		}
	}
	for _, e := range accountGood() {
		requests = append(requests, e.bytes())
	}
	return append(requests, []byte("GET /v1/rates HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"), []byte(request("/v1/rates")))
})

// newSpoiltCase makes case number of a seed: one to four requests in a row, spoilt up to four times, cut into pieces.
func newSpoiltCase(seed, number uint64) *expressCase {
	random, bases, words := rand.New(rand.NewPCG(seed, number)), spoiltRequests(), mutationWords()
	var text []byte
	for range 1 + random.IntN(4)*random.IntN(2) {
		text = append(text, bases[random.IntN(len(bases))]...)
	}
	for range random.IntN(5) {
		text = mutate(random, text, bases, words)
	}
	pieces := 1 + random.IntN(4)
	if random.IntN(8) == 0 {
		pieces = len(text) // at every byte
	}
	c := &expressCase{}
	for ; pieces > 1 && len(text) > 0; pieces-- {
		at := 1 + random.IntN(max(1, 2*len(text)/pieces-1))
		c.pieces, text = append(c.pieces, text[:at]), text[at:]
	}
	if len(text) > 0 {
		c.pieces = append(c.pieces, text)
	}
	return c
}

// TestExpress_SameAnswers: what the express path answers is what the ordinary path would have answered, but for id
// and date, at the same charge, and in order (pipelines included). SWEEP=whole plays 100,000 cases, make test-faults a
// million.
func TestExpress_SameAnswers(t *testing.T) {
	cases := uint64(sampledOrWhole(4000, 100_000))
	if expressed, _ := checkExpress(t, cases, newExpressCase); expressed/(cases/100) < 30 {
		t.Errorf("the express path answered %d requests of %d cases", expressed, cases)
	}
	checkExpress(t, cases/4, newSpoiltCase)
}

// checkExpress plays so many cases past the express path and through it.
func checkExpress(t *testing.T, cases uint64, newCase func(seed, number uint64) *expressCase) (expressedAll, answersAll uint64) {
	t.Helper()
	workers, seed := uint64(runtime.GOMAXPROCS(0)), mutationSeed(t)
	var expressed, proxied, answers atomic.Uint64
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			ways := [2]*twoWays{newTwoWays(t, false), newTwoWays(t, true)}
			for number := worker; number < cases && !t.Failed(); number += workers {
				way := ways[number/workers%4/3] // one of four comes from a proxy
				if problem := way.expressProblem(t, newCase(seed, number)); problem != "" {
					t.Errorf("case %d: %s", number, problem)
				}
			}
			expressed.Add(uint64(ways[0].expressed))
			proxied.Add(uint64(ways[1].expressed))
			answers.Add(uint64(ways[0].answers + ways[1].answers))
		})
	}
	all.Wait()
	if cases > 2000 && proxied.Load() == 0 {
		t.Error("the express path answered no request behind a proxy")
	}
	return expressed.Load(), answers.Load()
}

// TestExpress_WhileABodyIsAwaited: the HTTP library waits for the body of a request with two lengths, which will be
// refused. A known head behind it is not answered before that.
func TestExpress_WhileABodyIsAwaited(t *testing.T) {
	head := []byte("GET /v1/rates?limit=3 HTTP/1.1\r\nHost: a\r\n\r\n")
	twoLengths := []byte("/v1/rates?limit=3 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n")
	c := &expressCase{[][]byte{head, head, head, []byte("GET "), twoLengths, head}, nil}
	if problem := newTwoWays(t, false).expressProblem(t, c); problem != "" {
		t.Error(problem)
	}
}

// TestExpress_WithinASecond: a response half a second before rates are collected must not be cached for the second that
// one half a second earlier may be.
func TestExpress_WithinASecond(t *testing.T) {
	head := []byte("GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n")
	w := newTwoWays(t, false)
	w.start = engine.NextRefresh(fakeNow()).Add(-time.Second)
	c := &expressCase{[][]byte{head, head, head, head, head}, func(w *twoWays) { w.clock.set(w.start.Add(time.Second / 2)) }}
	if problem := w.expressProblem(t, c); problem != "" || w.expressed < 2 {
		t.Errorf("%d answers of the express path: %s", w.expressed, problem)
	}
}

// TestExpress_Control: an express path that answers what it answered before is found out.
func TestExpress_Control(t *testing.T) {
	w := newTwoWays(t, false)
	last := map[string][]byte{}
	w.express = func(c *conn.Conn, read []byte) (int, error) {
		if kept := last[string(read)]; kept != nil {
			_, err := c.Write(kept)
			return len(read), err
		}
		client := c.Conn.(*scriptedConn)
		before := client.out.Len()
		used, err := w.server.express(c, read)
		if used == len(read) {
			last[string(read)] = bytes.Clone(client.out.Bytes()[before:])
		}
		return used, err
	}
	found := 0
	for number := range uint64(300) {
		if clear(last); w.expressProblem(t, newExpressCase(1, number)) != "" {
			found++
		}
	}
	if found < 30 {
		t.Errorf("%d of 300 cases find it", found)
	}
}

// mutationSeed is printed; TASARD_SEED repeats a run.
func mutationSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(bubbleNow().UnixNano())
	if text := os.Getenv("TASARD_SEED"); text != "" {
		seed = must(strconv.ParseUint(text, 10, 64))
	}
	t.Logf("seed %d; TASARD_SEED=%d repeats it", seed, seed)
	return seed
}

func mutationWords() []string {
	return []string{
		"\r\n", "\n", "\r", "\r\n\r\n", "\x00", " ", "\t", ":", ",", ";", "/", "?", "#", "%", "%00", "%zz", "&", "=", "\x1b", "\x7f", "\xff", "\xe2\x80\xa8",
		"Content-Length: 5\r\n", "Content-Length: 0\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked\r\n",
		"Transfer-Encoding: identity\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n", "Connection: keep-alive\r\n", "Host: b\r\n",
		"Upgrade: h2c\r\n", "Authorization: Basic YQ==\r\n", " HTTP/1.1\r\n", "HTTP/2.0", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "0\r\n\r\n", "1\r\na\r\n",
		"ffffffffffffffff\r\n", "currency=", "limit=-1", "cursor=99999999999999999999", "amount=1e9", "from=0000-00-00", "{", "}", "\"", "[[", "\\u0000", "null",
		strings.Repeat("a", 300), strings.Repeat("X-A: b\r\n", 120), strings.Repeat("a", 9000),
	}
}

func mutate(random *rand.Rand, b []byte, bases [][]byte, words []string) []byte {
	if len(b) == 0 {
		return b
	}
	at := random.IntN(len(b))
	end := min(len(b), at+1+random.IntN(1+random.IntN(64)))
	switch random.IntN(9) {
	case 0: // a bit
		b[at] ^= 1 << random.IntN(8)
	case 1: // a byte
		b[at] = byte(random.IntN(256))
	case 2: // cut off
		b = b[:at]
	case 3: // something missing
		b = slices.Delete(b, at, end)
	case 4: // something twice
		b = slices.Insert(b, end, bytes.Clone(b[at:end])...)
	case 5, 6: // something that does not belong there
		b = slices.Insert(b, at, []byte(words[random.IntN(len(words))])...)
	case 7: // a line of another request
		lines := bytes.SplitAfter(bases[random.IntN(len(bases))], []byte("\r\n"))
		b = slices.Insert(b, at, lines[random.IntN(len(lines))]...)
	case 8: // two places exchanged
		other := random.IntN(len(b))
		b[at], b[other] = b[other], b[at]
	}
	return b
}

// framingProblem reads what a server wrote more strictly than any client: answers and nothing else, each of the
// length that it announces, none behind one that ends the connection, none of the server's own faults. methods are
// those of the requests that were answered, as far as they are known. It returns "" or what is wrong.
func framingProblem(out []byte, methods []string) string {
	answers, closes := 0, false
	for wire := bufio.NewReader(bytes.NewReader(out)); ; {
		if _, err := wire.Peek(1); err != nil {
			break
		}
		if closes {
			return fmt.Sprintf("more behind answer %d, which ends the connection", answers)
		}
		method := ""
		if answers < len(methods) {
			method = methods[answers]
		}
		head, _ := wire.Peek(len("HTTP/1.1 100 Continue\r\n\r\n"))
		if string(head) == "HTTP/1.1 100 Continue\r\n\r\n" {
			_, _ = wire.Discard(len(head))
			continue
		}
		problem := ""
		if closes, problem = oneAnswer(wire, method); problem != "" {
			return fmt.Sprintf("answer %d: %s", answers+1, problem)
		}
		answers++
	}
	if len(methods) > 0 && (answers < len(methods) || answers > len(methods)+1) {
		return fmt.Sprintf("%d answers to %d requests", answers, len(methods))
	}
	return ""
}

// oneAnswer judges one answer. An unknown method is one that the server could not read.
func oneAnswer(wire *bufio.Reader, method string) (closes bool, problem string) {
	response, err := http.ReadResponse(wire, &http.Request{Method: method})
	if err != nil {
		return false, err.Error()
	}
	defer response.Body.Close()
	switch {
	case response.Proto != "HTTP/1.1" || response.StatusCode >= 500 && response.StatusCode != http.StatusNotImplemented || response.StatusCode < 200:
		return false, response.Status
	case len(response.TransferEncoding) > 0 || len(response.Header.Values("Content-Length")) > 1:
		return false, "it is chunked, or has two lengths"
	case len(response.Header.Values(headerRequestID)) != 1:
		return false, fmt.Sprintf("%d request ids", len(response.Header.Values(headerRequestID)))
	case response.StatusCode == 204 || response.StatusCode == 304 || method == "HEAD":
		return response.Close, ""
	}
	body, err := io.ReadAll(response.Body)
	switch {
	case method == "" && response.Close && len(body) == 0:
		return true, "" // to a HEAD that could not be read
	case err != nil || response.ContentLength < 0:
		return false, fmt.Sprintf("%d: length %d, %d bytes are there: %v", response.StatusCode, response.ContentLength, len(body), err)
	}
	return response.Close, bodyProblem(response.StatusCode, body, response.Header.Get("Content-Encoding") == "gzip")
}

// bodyProblem: each body is one JSON value, that of a refusal the error object.
func bodyProblem(status int, body []byte, packed bool) string {
	if packed {
		unpacker, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return err.Error()
		}
		if body, err = io.ReadAll(unpacker); err != nil {
			return err.Error()
		}
	}
	if !json.Valid(body) || status >= 400 && !bytes.HasPrefix(body, []byte(`{"error":{"code":"`)) {
		return fmt.Sprintf("%d with the body %.100q", status, body)
	}
	return ""
}

// grammars are the parameters' grammars as the contract writes them: the oracle of FuzzQuery.
func grammars() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"currency":    regexp.MustCompile(`^[A-Z]{3}$`),
		"institution": regexp.MustCompile(`^[a-z0-9-]+$`),
		"channel":     regexp.MustCompile(`^(unspecified|branch|digital|cash|transfer)$`),
		"kind":        regexp.MustCompile(`^(commercial|reference)$`),
		"operation":   regexp.MustCompile(`^(buy|sell)$`),
		"amount":      regexp.MustCompile(`^[0-9]{1,12}([.][0-9]{1,2})?$`),
		"limit":       regexp.MustCompile(`^([1-9]|[1-9][0-9]|1[0-9][0-9]|200)$`),
		"cursor":      regexp.MustCompile(`^(0|[1-9][0-9]{0,4}|100000)$`),
		"from":        regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`),
		"to":          regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`),
	}
}

// grammatical tells by the oracle whether a value is right by itself.
func grammatical(name, value string) bool {
	if !grammars()[name].MatchString(value) || strings.HasSuffix(value, "\n") {
		return false
	}
	if name == "from" || name == "to" {
		date, err := time.Parse(time.DateOnly, value)
		return err == nil && date.Year() > 0
	}
	return true
}

// FuzzQuery: the parser refuses exactly the parameters that are wrong by the grammars, and takes the others as they
// were sent.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"currency=USD&operation=buy&amount=12.50", "currency=usd&limit=0&cursor=00", "limit=200&limit=1&&", "from=2025-02-29&to=2025-01-01",
		"a%62c=%zz&currency=%55SD", "token=x&=1&=", "institution=a-b&channel=cash&kind=reference", "amount=.5&operation=", "from=2020-01-01",
	} {
		for op := range 7 {
			f.Add(seed, uint8(op))
		}
	}
	for name := range grammars() { // each with every value near the edges of a grammar, as it is and escaped
		for _, value := range probes() {
			for op := range 7 {
				f.Add(name+"="+value, uint8(op))
				f.Add(name+"="+url.QueryEscape(value)+"%20", uint8(op))
			}
		}
	}
	table := params.NewTable()
	options := params.Options{Catalogue: fakeCatalogue(), Today: engine.DateOf(fakeNow())}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		op := params.Operation(1) << (which % 7)
		var q params.Query
		problems := table.Read(&q, op, []byte(params.InstitutionPath+"bhd"), []byte(text), options)
		if len(problems) >= params.ProblemsMax {
			return
		}
		want := expectedProblems(&table, op, text)
		var got []string
		for _, p := range problems {
			if p.Message == params.ProblemRangeReversed || p.Message == params.ProblemRangeTooLong {
				continue
			}
			got = append(got, p.Name+" "+strconv.Itoa(p.Index))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q for %d: problems %q, want %q", text, op, got, want)
		}
		if len(problems) == 0 && op == params.History && int(q.To)-int(q.From) > engine.HistoryRangeDaysMax {
			t.Fatalf("%q: %s to %s", text, q.From, q.To)
		}
		if body := appendError(nil, "c", "m", "i", problems); !json.Valid(body) || !utf8.Valid(body) {
			t.Fatalf("%q: the answer is no JSON: %s", text, body)
		}
	})
}

// expectedProblems reads a query with the standard library and the grammars.
func expectedProblems(table *params.Table, op params.Operation, text string) (want []string) {
	seen := map[string]int{}
	for _, pair := range strings.Split(text, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.PathUnescape(rawName)
		if err != nil {
			want = append(want, rawName[:min(len(rawName), params.NameBytesMax)]+" 0")
			continue
		}
		p := slices.IndexFunc(table[:], func(p params.Row) bool { return p.Name == name && p.AllowedBy&op != 0 })
		if p < 0 {
			part := name[:min(len(name), params.NameBytesMax)] + " 0"
			if !slices.Contains(want, part) {
				want = append(want, part)
			}
			continue
		}
		value, err := url.PathUnescape(rawValue)
		if index := seen[name]; index > 0 || err != nil || !grammatical(name, value) {
			want = append(want, name+" "+strconv.Itoa(index))
		}
		seen[name]++
	}
	for _, p := range table {
		if p.RequiredBy&op != 0 && seen[p.Name] == 0 {
			want = append(want, p.Name+" 0")
		}
	}
	return want
}
