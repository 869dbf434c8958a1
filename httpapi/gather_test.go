package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"

	"github.com/tasard/tasard/engine"
)

// gatherRequests are requests of every kind of answer and length, and the method that they are read back with.
func gatherRequests() [][2]string {
	const tail = " HTTP/1.1\r\nHost: a\r\n"
	const full, short = "/v1/rates/best?currency=USD&operation=buy", "/v1/rates/best?currency=USD&operation=buy&limit=1"
	return [][2]string{
		{"GET", "GET " + full + tail + "\r\n"},
		{"GET", "GET " + short + tail + "\r\n"},
		{"GET", "GET /v1/rates?limit=100" + tail + "\r\n"},
		{"GET", "GET /v1/convert?currency=USD&operation=buy&amount=12.5" + tail + "\r\n"},
		{"GET", "GET " + full + tail + "Accept-Encoding: gzip\r\n\r\n"},
		{"GET", "GET " + full + tail + "If-None-Match: *\r\n\r\n"},
		{"HEAD", "HEAD " + full + tail + "\r\n"},
		{"OPTIONS", "OPTIONS " + full + tail + "\r\n"},
		{"GET", "GET /nothing" + tail + "\r\n"},
		{"GET", "GET " + short + "&limit=2" + tail + "\r\n"},
		{"POST", "POST " + full + tail + "Content-Length: 5\r\n\r\nhello"},
		{"POST", "POST " + full + tail + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		// Lengths that the count gets wrong.
		{"GET", "\r\nGET " + short + tail + "\r\n"},
		{"GET", "\r\n\r\nGET " + short + tail + "\r\n"},
	}
}

// servedBy answers on a port, as a node does.
func servedBy(t *testing.T, server *Server) (address string, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	return ln.Addr().String(), func() {
		if err := errors.Join(server.Shutdown(context.WithoutCancel(t.Context())), <-ended); err != nil {
			t.Error(err)
		}
	}
}

// told is an answer without what differs each time.
func told(answer *http.Response) (string, error) {
	body, err := io.ReadAll(answer.Body)
	for _, name := range []string{"Date", headerRequestID} {
		answer.Header.Del(name)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		body = []byte(fmt.Sprint(len(body))) // it holds the id
	}
	return fmt.Sprint(answer.StatusCode, answer.ContentLength, answer.Header, string(body)), err
}

// TestP5_GatheredAnswersStayInOrder: whatever is asked, one behind the other and cut into whatever pieces, the answers are those that each
// request gets alone, in order, byte for byte.
func TestP5_GatheredAnswersStayInOrder(t *testing.T) {
	for name, server := range awakeAndAsleep(t) {
		t.Run(name, func(t *testing.T) { answersInOrder(t, server) })
	}
}

func answersInOrder(t *testing.T, server *Server) {
	t.Helper()
	address, stop := servedBy(t, server)
	defer stop()
	requests := gatherRequests()
	ask := func(fatal func(...any), text string, cuts []int, methods []string) (answers []string) {
		conn, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:forbidigo // a network deadline is real time
		go func() {
			for _, cut := range append(cuts, len(text)) {
				cut = min(cut, len(text))
				_, _ = io.WriteString(conn, text[:cut])
				text = text[cut:]
			}
		}()
		reader := bufio.NewReader(conn)
		for _, method := range methods {
			response, err := http.ReadResponse(reader, &http.Request{Method: method})
			if err != nil {
				fatal(err)
			}
			answer, err := told(response)
			if err = errors.Join(err, response.Body.Close()); err != nil {
				fatal(err)
			}
			answers = append(answers, answer)
		}
		return answers
	}
	alone := make([]string, len(requests))
	for i, request := range requests {
		alone[i] = ask(t.Fatal, request[1], nil, []string{request[0]})[0]
	}
	// A head that does not fit behind the answers that wait is written in two pieces.
	for before := range 24 {
		methods := slices.Repeat([]string{"GET"}, before+1)
		answers := ask(t.Fatal, strings.Repeat(requests[5][1], before)+requests[0][1], nil, methods)
		if answers[before] != alone[0] {
			t.Fatalf("behind %d answers: %.300s", before, answers[before])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var text bytes.Buffer
		var methods, want []string
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(requests)-1), 1, 12).Draw(t, "requests") {
			text.WriteString(requests[i][1])
			methods, want = append(methods, requests[i][0]), append(want, alone[i])
		}
		cuts := rapid.SliceOfN(rapid.IntRange(1, 400), 0, 8).Draw(t, "pieces")
		for i, got := range ask(t.Fatal, text.String(), cuts, methods) {
			if got != want[i] {
				t.Fatalf("answer %d of %d:\ngot  %.300s\nwant %.300s", i+1, len(want), got, want[i])
			}
		}
	})
}

// bodiesInOrder asks for pages all at once and holds the body of each answer against what it gives when it is asked for alone.
func bodiesInOrder(t *testing.T, address, text string, want []string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) //nolint:forbidigo // a network deadline is real time
	go func() { _, _ = io.WriteString(conn, text) }()
	reader := bufio.NewReader(conn)
	for i := range want {
		response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodGet})
		if err != nil {
			t.Fatalf("answer %d of %d: %.200s", i+1, len(want), err)
		}
		body, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil || string(body) != want[i] {
			t.Fatalf("answer %d of %d has another body (%d bytes, want %d), %v", i+1, len(want), len(body), len(want[i]), err)
		}
	}
}

// TestP5_WhatWaitsStaysInFront: of an answer that fills the server's buffer more than once a part has gone out while its rest waits. A body
// that is sent aside then would overtake that rest, or the head that it belongs to.
func TestP5_WhatWaitsStaysInFront(t *testing.T) {
	server := New(Config{
		Service: newStillService(t), Catalogue: engine.DefaultCatalogue(), Clock: fakeNow, RequestID: RequestIDs(1),
		Limits: Limits{WriteBufferBytes: 4 << 10},
	})
	address, stop := servedBy(t, server)
	defer stop()
	requests := gatherRequests()
	full, empty := requests[0][1], requests[5][1]
	page := strings.Replace(full, "operation=buy", "operation=buy&limit=10", 1)
	body := func(text string) string {
		ctx := &fasthttp.RequestCtx{}
		readRequest(t, ctx, []byte(text))
		server.Handler()(ctx)
		return string(ctx.Response.Body())
	}
	for before := range 24 {
		want := append(make([]string, before), body(page), body(full))
		bodiesInOrder(t, address, strings.Repeat(empty, before)+page+full, want)
	}
}

// TestP5_EmptyLinesStayInOrder: the length of a request behind an empty line is taken for less than it is. However many of them come,
// nothing passes for a request that nobody has sent anything behind.
func TestP5_EmptyLinesStayInOrder(t *testing.T) {
	server := newStillServer(t)
	address, stop := servedBy(t, server)
	defer stop()
	ctx, full := &fasthttp.RequestCtx{}, gatherRequests()[0][1]
	readRequest(t, ctx, []byte(full))
	server.Handler()(ctx)
	for many := range len(full)/2 + 2 {
		bodiesInOrder(t, address, strings.Repeat("\r\n"+full, many)+full+full, slices.Repeat([]string{string(ctx.Response.Body())}, many+2))
	}
}

// TestP5_OneByteBehindIsSeen: behind such a request one byte alone would make the count come out.
func TestP5_OneByteBehindIsSeen(t *testing.T) {
	for read, want := range map[string]bool{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n":     true,
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nG":    false,
		"GET / HTTP/1.1\nHost: a\r\n\r\n":       false,
		"GET / HTTP/1.1\nHost: a\r\n\r\nG":      false,
		"GET / HTTP/1.1\nHost: a\r\n\r\n\n":     false,
		"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n": false,
	} {
		near, far := net.Pipe()
		g := &gatherer{lazyDeadlines: lazyDeadlines{Conn: near}}
		go func() { _, _ = io.WriteString(far, read) }()
		if _, err := g.Read(make([]byte, 1<<10)); err != nil {
			t.Fatal(err)
		}
		if g.begin(len("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); g.alone != want {
			t.Errorf("%q: alone is %t", read, g.alone)
		}
		_ = errors.Join(near.Close(), far.Close())
	}
}

// TestF2_BodiesAreNotCopied: a client that waits for its answers gets each body from where it lies.
func TestF2_BodiesAreNotCopied(t *testing.T) {
	server := newStillServer(t)
	aside, inner := 0, server.http.Handler
	server.http.Handler = func(ctx *fasthttp.RequestCtx) {
		inner(ctx)
		if ctx.Response.SkipBody {
			aside++
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	const requests = 5
	for range requests {
		response, err := client.Get("http://" + ln.Addr().String() + "/v1/rates/best?currency=USD&operation=buy")
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(response.Body); err != nil || len(body) < 20_000 {
			t.Fatal(len(body), err)
		}
		response.Body.Close()
	}
	client.CloseIdleConnections()
	if err := errors.Join(server.Shutdown(t.Context()), <-ended); err != nil {
		t.Fatal(err)
	}
	if aside != requests {
		t.Errorf("%d of %d bodies sent from where they lie", aside, requests)
	}
}
