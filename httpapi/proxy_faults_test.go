//go:build faults

package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	proxyShards = 4
	// proxyQuiet is how long nothing must come for a connection to have been answered.
	proxyQuiet  = 120 * time.Millisecond
	unreadWord  = "unread"
	proxyAnswer = "/behind/"
)

// back is what the node behind a proxy saw: the method of each request, or unreadWord.
type back struct {
	mu   sync.Mutex
	seen []string
}

func (b *back) note(method string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, method)
}

func (b *back) list() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

// startBack serves as the corpus is played against, and notes what it sees.
func startBack(t *testing.T) (address string, b *back) {
	t.Helper()
	b = &back{}
	server := rawServer(guarded)
	handler, unread := server.Handler, server.ErrorHandler
	server.Handler = func(ctx *fasthttp.RequestCtx) {
		b.note(string(ctx.Method()))
		handler(ctx)
	}
	server.ErrorHandler = func(ctx *fasthttp.RequestCtx, err error) {
		b.note(unreadWord)
		unread(ctx, err)
	}
	return startRawServer(t, server, patiently), b
}

// startForgetful is a back with a planted bug: it answers heads, and takes what follows one for the next request.
func startForgetful(t *testing.T) (address string, b *back) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b = &back{}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { forget(conn, b) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		conns.Wait()
	})
	return ln.Addr().String(), b
}

func forget(conn net.Conn, b *back) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(proxyPatience)) //nolint:forbidigo // a network deadline is real time
	br := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		b.note(request.Method)
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nX-Target: %s\r\nContent-Length: 0\r\n\r\n", request.RequestURI)
	}
}

// proxied is what came of the cases that one proxy was sent.
type proxied struct {
	cases, whole, broken, seen, answers        int
	refusedByUs, refusedByProxy, mended, other int
	wrong                                      []string
}

func (p *proxied) add(other proxied) {
	p.cases += other.cases
	p.whole += other.whole
	p.broken += other.broken
	p.seen += other.seen
	p.answers += other.answers
	p.refusedByUs += other.refusedByUs
	p.refusedByProxy += other.refusedByProxy
	p.mended += other.mended
	p.other += other.other
	p.wrong = append(p.wrong, other.wrong...)
}

// TestFaultsO6_BehindProxies plays the corpus through nginx and haproxy, whose connections to the node are shared by all clients: the node
// sees as many requests as the proxy sent, and of the same methods, and behind each case a stranger's request gets its own answer.
func TestFaultsO6_BehindProxies(t *testing.T) {
	for _, kind := range proxyKinds() {
		t.Run(kind.name, func(t *testing.T) {
			total := playShards(t, kind, readRawCorpus(t), startBack)
			for _, wrong := range total.wrong {
				t.Error(wrong)
			}
			t.Logf("FIGURE %s: %d cases, %d requests sent to the node whole and %d broken off, %d counted there, %d answers; refused by the "+
				"node %d, by the proxy %d, made good by the proxy %d, in another protocol %d; disagreements %d",
				kind.name, total.cases, total.whole, total.broken, total.seen, total.answers, total.refusedByUs, total.refusedByProxy,
				total.mended, total.other, len(total.wrong))
			if total.cases < 200 || total.whole < total.cases || total.refusedByUs == 0 || total.refusedByProxy == 0 {
				t.Errorf("too little was played: %+v", total)
			}
		})
	}
}

// TestFaultsO6_Control: a node that forgets that requests have bodies disagrees with its proxy, and is found out.
func TestFaultsO6_Control(t *testing.T) {
	bodies := slices.DeleteFunc(readRawCorpus(t), func(c rawCase) bool { return !strings.HasPrefix(c.name, "good/post-") })
	for _, kind := range proxyKinds() {
		t.Run(kind.name, func(t *testing.T) {
			total := playShards(t, kind, bodies, startForgetful)
			t.Logf("FIGURE %s before a node that forgets bodies: %d cases, %d disagreements", kind.name, total.cases, len(total.wrong))
			if len(total.wrong) == 0 {
				t.Error("nothing is found")
			}
		})
	}
}

// playShards shares cases out to several proxies of a kind, each with a back of its own.
func playShards(t *testing.T, kind proxyKind, cases []rawCase, start func(*testing.T) (string, *back)) proxied {
	t.Helper()
	var shards [proxyShards]proxied
	var playing sync.WaitGroup
	for shard := range shards {
		address, b := start(t)
		p := startProxy(t, kind, address)
		playing.Go(func() {
			for i := shard; i < len(cases); i += proxyShards {
				shards[shard].add(playProxied(t, p, b, cases[i], i))
			}
		})
	}
	playing.Wait()
	var total proxied
	for _, shard := range shards {
		total.add(shard)
	}
	return total
}

// playProxied sends one case and, behind it, a request of somebody else, and compares what both sides counted.
func playProxied(t *testing.T, p *proxy, b *back, c rawCase, number int) proxied {
	result := proxied{cases: 1}
	wrong := func(format string, args ...any) {
		result.wrong = append(result.wrong, fmt.Sprintf("%s, %s: ", p.name, c.name)+fmt.Sprintf(format, args...))
	}
	frontBefore, loggedBefore := p.seen(t)
	backBefore := len(b.list())
	answers, err := askProxy(p.socket, c)
	switch {
	case errors.Is(err, errOtherProtocol) && speaksOtherProtocol(c):
		result.other++
	case err != nil:
		wrong("%v", err)
	}
	target := proxyAnswer + strconv.Itoa(number)
	other, err := askProxy(p.socket, rawCase{request: []byte("GET " + target + " HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n"), connection: "close"})
	if err != nil || len(other) != 1 || other[0].target != target {
		wrong("a stranger's request for %s is answered %+v, %v", target, other, err)
	}
	front, logged, seen := p.settled(t, b, frontBefore, backBefore)
	if !sameRequests(front, seen) {
		wrong("the proxy sent %+v, the node saw %v", front, seen)
	}
	if len(answers) > logged-loggedBefore-1 {
		wrong("%d answers to %d requests", len(answers), logged-loggedBefore-1)
	}
	result.whole, result.broken, result.seen, result.answers = len(front.whole), len(front.broken), len(seen), len(answers)+len(other)
	for i, a := range answers {
		switch ours := a.code != "" || a.target != ""; {
		case a.status >= 500 && ours:
			wrong("an answer of the node is %d", a.status)
		case a.status >= 400 && ours:
			result.refusedByUs++
		case a.status >= 400:
			result.refusedByProxy++
		case i == 0 && c.mustRefuse():
			result.mended++
		}
	}
	return result
}

// settled waits until both sides have counted the same, or for as long as it is reasonable.
func (p *proxy) settled(t *testing.T, b *back, frontBefore sent, backBefore int) (front sent, logged int, seen []string) {
	for deadline := time.Now().Add(3 * time.Second); ; { //nolint:forbidigo // another process is waited for
		all, logged := p.seen(t)
		front, seen = all.since(frontBefore), b.list()[backBefore:]
		if len(front.whole) > 0 && sameRequests(front, seen) || time.Now().After(deadline) { //nolint:forbidigo // another process is waited for
			return front, logged, seen
		}
		pauseFor(2 * time.Millisecond)
	}
}

// sameRequests compares methods as multisets: a proxy logs at the end of an answer. What the node could not read may be of any method.
// Each request that the proxy sent whole is one here, and each here is one there. Of a request that was broken off the node need not
// count anything: it has done nothing for it.
func sameRequests(front sent, seen []string) bool {
	whole, broken := slices.Clone(front.whole), slices.Clone(front.broken)
	unread := 0
	for _, method := range seen {
		if method == unreadWord {
			unread++
		} else if at := slices.Index(whole, method); at >= 0 {
			whole = slices.Delete(whole, at, at+1)
		} else if at := slices.Index(broken, method); at >= 0 {
			broken = slices.Delete(broken, at, at+1)
		} else {
			return false
		}
	}
	return len(whole) <= unread && unread <= len(whole)+len(broken)
}

// errOtherProtocol is an answer that is not HTTP/1.1.
var errOtherProtocol = errors.New("this is another protocol")

// speaksOtherProtocol: to these a proxy may answer by HTTP/0.9 or HTTP/2, which it ends itself.
func speaksOtherProtocol(c rawCase) bool {
	return strings.HasPrefix(c.name, "request-line/http09") || strings.HasPrefix(c.name, "request-line/h2") || c.name == "pipeline/preface-good"
}

// askProxy plays a case over a connection of its own, then the probe, and gives all answers but the probe's.
func askProxy(socket string, c rawCase) ([]rawAnswer, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	_, _ = conn.Write(c.request)
	if c.eof {
		_ = conn.(*net.UnixConn).CloseWrite()
	}
	var got bytes.Buffer
	quiet := proxyQuiet
	if len(c.category) == 0 || c.eof {
		quiet = proxyPatience // it ends by itself
	}
	if !readUntilQuiet(conn, &got, quiet) && !c.eof {
		_, _ = io.WriteString(conn, rawProbe)
		_ = readUntilQuiet(conn, &got, 4*time.Second)
	}
	if got.Len() > 0 && !bytes.HasPrefix(got.Bytes(), []byte("HTTP/1.")) {
		return nil, fmt.Errorf("%w: %.40q", errOtherProtocol, got.Bytes())
	}
	br := bufio.NewReader(&got)
	var answers []rawAnswer
	for {
		a, err := readRawAnswer(br, c.isHead(len(answers)))
		if errors.Is(err, io.EOF) {
			return answers, nil
		}
		if err != nil {
			return answers, fmt.Errorf("answer %d: %w", len(answers)+1, err)
		}
		answers = append(answers, a)
	}
}

// readUntilQuiet reads until the other side closes (true) or nothing came for a while (false).
func readUntilQuiet(conn net.Conn, got *bytes.Buffer, quiet time.Duration) bool {
	buffer := make([]byte, 4096)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(quiet)) //nolint:forbidigo // a network deadline is real time
		n, err := conn.Read(buffer)
		got.Write(buffer[:n])
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return false
		}
		if err != nil {
			return true
		}
	}
}
