package httpapi

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/conn"
)

// The corpus of raw requests, testdata/raw/*.txt. One case:
//
//	# A remark.
//	case NAME: STATUS... CONNECTION [eof] PARAGRAPH CATEGORY
//	    bytes of the request, escaped as in a Go string
//	    the ends of these lines count for nothing, [[3 ab]] is ababab
//
// There is one STATUS for each answer, in order ("200|400": either; "none": no
// answer at all). CONNECTION says what follows: keep (the connection serves
// another request), close (it ends, without a further answer) or any. With eof
// the client has closed its side after the last byte. Then come the paragraph that
// the expectation stands on, rfcNUMBER-SECTION, and the category of the case.

type rawCase struct {
	name       string
	request    []byte
	want       [][]int
	connection string
	eof        bool
	paragraph  string
	category   string
}

type rawAnswer struct {
	status int
	target string // of the request, as the test handler understood it; "" from the express path, see FuzzParsePlainGet
	code   string // of the error object
	closes bool   // it announces the end of the connection
}

const (
	rawProbe        = "GET /probe HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n"
	rawProbeTarget  = "/probe"
	rawBufferBytes  = 4096
	rawBodyBytesMax = 4096
	// rawPatience bounds the wait for a server that neither answers nor closes.
	rawPatience = 5 * time.Second
)

// TestO6_RawCorpus sends every case to a whole server, over TCP, over TLS, and in memory in pieces of several lengths.
func TestO6_RawCorpus(t *testing.T) {
	t.Parallel()
	cases := readRawCorpus(t)
	memory, a := rawFixture(t, nil).server.http, newCertificateAuthority()
	plain := serveFixture(t, rawFixture(t, nil))
	secure := serveFixture(t, rawFixture(t, fixedCertificate(a.certify(2))))
	ways := map[string]func(c rawCase) ([]rawAnswer, error){
		"TCP": func(c rawCase) ([]rawAnswer, error) { return exchangeOver(must(net.Dial("tcp", plain.address)), c) },
		"TLS": func(c rawCase) ([]rawAnswer, error) { return exchangeOver(must(a.dial(secure.address, nil)), c) },
	}
	for _, step := range []int{1, 7, rawBufferBytes} {
		ways[strconv.Itoa(step)+" bytes at a time"] = func(c rawCase) ([]rawAnswer, error) { return serveRaw(memory, c, step) }
	}
	refused, categories := 0, map[string]bool{}
	for _, c := range cases {
		for way, play := range ways {
			answers, err := play(c)
			for _, problem := range c.problems(answers) {
				t.Errorf("%s, %s: RFC %s: %s, %v", c.name, way, c.paragraph, problem, err)
			}
		}
		categories[c.category] = true
		if c.mustRefuse() {
			refused++
		}
	}
	if len(cases) < 200 || refused < 100 || len(categories) < 5 {
		t.Errorf("only %d cases, %d of them to be refused, of %v: the corpus is not whole", len(cases), refused, categories)
	}
}

// TestO6_RawCorpusControl: without the guard the same corpus must find faults, or it proves nothing about the guard.
func TestO6_RawCorpusControl(t *testing.T) {
	server := rawFixture(t, nil).server.http
	server.Handler = echoTarget
	taken, doubled := 0, 0
	for _, c := range readRawCorpus(t) {
		if !c.mustRefuse() {
			continue
		}
		answers, err := serveRaw(server, c, rawBufferBytes)
		if err != nil || len(answers) == 0 || answers[0].status != http.StatusOK {
			continue
		}
		taken++
		if extra := len(withoutProbe(answers)); extra > len(c.want) {
			doubled++
		}
	}
	if taken < 20 || doubled == 0 {
		t.Errorf("%d wrongly served, %d answered too often: the control finds too little", taken, doubled)
	}
}

// mustRefuse reports whether a 2xx for the first request would be wrong.
func (c rawCase) mustRefuse() bool {
	return len(c.want) > 0 && !slices.Contains(c.want[0], http.StatusOK)
}

// problems compares the answers to the case, with that to the probe behind them if there is one.
func (c rawCase) problems(answers []rawAnswer) []string {
	var found []string
	own := withoutProbe(answers)
	if len(own) != len(c.want) {
		found = append(found, fmt.Sprintf("%d answers %v, want %d", len(own), own, len(c.want)))
	}
	for i := range min(len(own), len(c.want)) {
		if a := own[i]; !slices.Contains(c.want[i], a.status) {
			found = append(found, fmt.Sprintf("answer %d is %d, want %v", i+1, a.status, c.want[i]))
		} else if target := c.target(); i == 0 && a.target != "" && a.status == http.StatusOK && a.target != target {
			found = append(found, fmt.Sprintf("the target became %q, want %q", a.target, target))
		} else if a.status >= 400 && (a.code == "" || !a.closes) {
			found = append(found, fmt.Sprintf("answer %d has code %q, announces the close: %v", i+1, a.code, a.closes))
		}
	}
	kept := len(own) < len(answers)
	if c.connection == "keep" && !kept || c.connection == "close" && kept {
		found = append(found, fmt.Sprintf("connection kept: %v, want %s", kept, c.connection))
	}
	return found
}

func (c rawCase) target() string {
	line, _, _ := strings.Cut(strings.TrimLeft(string(c.request), "\r\n"), "\n")
	words := strings.Split(strings.TrimSuffix(line, "\r"), " ")
	if len(words) != 3 {
		return ""
	}
	return words[1]
}

// withoutProbe cuts the answer to the probe, which can only be the last.
func withoutProbe(answers []rawAnswer) []rawAnswer {
	if n := len(answers); n > 0 && answers[n-1].target == rawProbeTarget {
		return answers[:n-1]
	}
	return answers
}

// exchangeOver plays a case on a connection, which it closes. A connection that must be closed by the server gets
// no probe.
func exchangeOver(conn net.Conn, c rawCase) ([]rawAnswer, error) {
	defer conn.Close()
	_ = conn.SetDeadline(networkDeadline())
	// Refused half-way, a write may fail; the answers tell.
	_, _ = conn.Write(c.request)
	if c.eof {
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	}
	br := bufio.NewReader(conn)
	var answers []rawAnswer
	for range c.want {
		a, err := readRawAnswer(br, c.isHead(len(answers)))
		if err != nil {
			return answers, fmt.Errorf("answer %d: %w", len(answers)+1, err)
		}
		answers = append(answers, a)
	}
	if c.connection != "close" && !c.eof {
		_, _ = io.WriteString(conn, rawProbe)
	}
	return c.readAll(br, answers)
}

func (c rawCase) readAll(br *bufio.Reader, answers []rawAnswer) ([]rawAnswer, error) {
	for {
		a, err := readRawAnswer(br, c.isHead(len(answers)))
		if isRawEnd(err) {
			return answers, nil
		}
		if err != nil {
			return answers, fmt.Errorf("answer %d: %w", len(answers)+1, err)
		}
		answers = append(answers, a)
	}
}

// serveRaw plays a case in memory, step bytes at a time, with the probe behind it at once, as in a pipeline.
func serveRaw(server *fasthttp.Server, c rawCase, step int) ([]rawAnswer, error) {
	in := slices.Clone(c.request)
	if !c.eof {
		in = append(in, rawProbe...)
	}
	raw := &rawConn{in: in, step: step}
	if err := server.ServeConn(listenedConn(raw)); err != nil && raw.out.Len() == 0 {
		return nil, fmt.Errorf("serve: %w", err)
	}
	return c.readAll(bufio.NewReader(&raw.out), nil)
}

// listenedConn is a connection as the listener gives it: the guard sees what it hands over. Nothing is sent aside
// on it.
func listenedConn(c net.Conn) net.Conn {
	return must(conn.Listen(&oneListener{conn: c}, conn.Config{MaxConns: 1}).Accept())
}

type oneListener struct {
	net.Listener
	conn net.Conn
}

func (l *oneListener) Accept() (net.Conn, error) { return l.conn, nil }

// isHead: the first answer to a HEAD has no body. No case has HEAD further on.
func (c rawCase) isHead(answer int) bool {
	return answer == 0 && bytes.HasPrefix(c.request, []byte("HEAD "))
}

// isRawEnd reports whether the server ended the connection; a reset is what closing with unread bytes amounts to.
func isRawEnd(err error) bool {
	return errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "connection reset")
}

func readRawAnswer(br *bufio.Reader, head bool) (rawAnswer, error) {
	if _, err := br.Peek(1); err != nil {
		return rawAnswer{}, err
	}
	request := &http.Request{Method: http.MethodGet}
	if head {
		request.Method = http.MethodHead
	}
	response, err := http.ReadResponse(br, request)
	if err != nil {
		return rawAnswer{}, fmt.Errorf("parse: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return rawAnswer{}, fmt.Errorf("read body: %w", err)
	}
	if response.StatusCode == http.StatusContinue {
		return readRawAnswer(br, head)
	}
	a := rawAnswer{status: response.StatusCode, target: response.Header.Get("X-Target"), closes: response.Close}
	if _, rest, found := strings.Cut(string(body), `{"error":{"code":"`); found {
		a.code, _, _ = strings.Cut(rest, `"`)
	} else if head && a.status >= 400 {
		a.code = "head"
	}
	return a, nil
}

// rawFixture is a server that tells what it understood: what is neither refused as malformed nor fails is answered
// by echoTarget when its route is through with it.
func rawFixture(t testing.TB, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *fixture {
	t.Helper()
	f := newFixture(t, func(c *Config) {
		c.Certificate = certificate
		c.Limits = Limits{HeaderBytesMax: rawBufferBytes, BodyBytesMax: rawBodyBytesMax, ReadTimeout: rawPatience}
	})
	inner := f.server.http.Handler
	f.server.http.Handler = func(ctx *fasthttp.RequestCtx) {
		inner(ctx)
		if bytes.Contains(ctx.Response.Body(), []byte(`"code":"malformed_request"`)) || ctx.Response.StatusCode() >= http.StatusInternalServerError {
			return
		}
		closes := ctx.Response.ConnectionClose()
		ctx.Response.Reset()
		echoTarget(ctx)
		if closes {
			ctx.SetConnectionClose()
		}
	}
	return f
}

func echoTarget(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetBytesV("X-Target", ctx.RequestURI())
}

// rawConn is a connection in memory: it hands out in, step bytes at a time, then EOF, and keeps what is written.
type rawConn struct {
	addressedConn
	in   []byte
	step int
	out  bytes.Buffer
	seen []rawVerdict // filled by FuzzGuard's handler
}

func (c *rawConn) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.in[:min(c.step, len(c.in))])
	c.in = c.in[n:]
	return n, nil
}

func (c *rawConn) Write(p []byte) (int, error) { return c.out.Write(p) }

func readRawCorpus(t testing.TB) []rawCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "raw", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus in testdata/raw: %v", err)
	}
	var cases []rawCase
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("read corpus: %v", err)
		}
		group := strings.TrimSuffix(filepath.Base(file), ".txt")
		for i, line := range strings.Split(string(text), "\n") {
			cases, err = addRawLine(cases, group, line)
			if err != nil {
				t.Fatalf("%s:%d: %v", file, i+1, err)
			}
		}
	}
	return cases
}

func addRawLine(cases []rawCase, group, line string) ([]rawCase, error) {
	if line == "" || line[0] == '#' {
		return cases, nil
	}
	if text, found := strings.CutPrefix(line, "    "); found && len(cases) > 0 {
		last := &cases[len(cases)-1]
		request, err := appendRawBytes(last.request, text)
		last.request = request
		return cases, err
	}
	name, want, found := strings.Cut(strings.TrimPrefix(line, "case "), ": ")
	if !found {
		return nil, fmt.Errorf("neither a case, a remark nor bytes: %q", line)
	}
	c := rawCase{name: group + "/" + name}
	for _, word := range strings.Fields(want) {
		if err := c.expect(word); err != nil {
			return nil, err
		}
	}
	if c.paragraph == "" || c.category == "" || c.connection == "" {
		return nil, fmt.Errorf("no paragraph, category or connection in %q", line)
	}
	return append(cases, c), nil
}

// expect reads one word behind the name of a case.
func (c *rawCase) expect(word string) error {
	switch word {
	case "none":
	case "eof":
		c.eof = true
	case "keep", "close", "any":
		c.connection = word
	case "compliance", "smuggling", "malformed", "normalisation", "cookies":
		c.category = word
	default:
		if paragraph, found := strings.CutPrefix(word, "rfc"); found {
			c.paragraph = paragraph
			return nil
		}
		var statuses []int
		for text := range strings.SplitSeq(word, "|") {
			status, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("read expectation %q: %w", word, err)
			}
			statuses = append(statuses, status)
		}
		c.want = append(c.want, statuses)
	}
	return nil
}

// appendRawBytes resolves [[n text]] and the escapes.
func appendRawBytes(dst []byte, text string) ([]byte, error) {
	if before, rest, found := strings.Cut(text, "[["); found {
		inside, after, _ := strings.Cut(rest, "]]")
		count, repeated, _ := strings.Cut(inside, " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			return dst, fmt.Errorf("read repetition %q: %w", inside, err)
		}
		text = before + strings.Repeat(repeated, n) + after
	}
	for text != "" {
		char, multibyte, tail, err := strconv.UnquoteChar(text, '"')
		if err != nil {
			return dst, fmt.Errorf("unescape %q: %w", text, err)
		}
		if multibyte {
			return dst, fmt.Errorf("write bytes above 127 as \\x: %q", text)
		}
		dst, text = append(dst, byte(char)), tail
	}
	return dst, nil
}
