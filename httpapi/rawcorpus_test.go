package httpapi

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/conn"
)

// rawCase is a case of the corpus of raw requests, testdata/raw/*.json.
type rawCase struct {
	Remark     string
	Name       string
	Request    rawText // the request's bytes as characters below 256; [[3 ab]] is ababab
	Want       [][]int // for each answer, in order, the statuses that are right
	Connection string  // keep (it serves another request), close (it ends, without a further answer) or any
	EOF        bool    // the client has closed its side after the last byte
	RFC        string  // number and paragraph that the expectation stands on
	Category   string
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
	cases := must(readRawCorpus())
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
				t.Errorf("%s, %s: RFC %s: %s, %v", c.Name, way, c.RFC, problem, err)
			}
		}
		categories[c.Category] = true
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
	for _, c := range must(readRawCorpus()) {
		if !c.mustRefuse() {
			continue
		}
		answers, err := serveRaw(server, c, rawBufferBytes)
		if err != nil || len(answers) == 0 || answers[0].status != http.StatusOK {
			continue
		}
		taken++
		if extra := len(withoutProbe(answers)); extra > len(c.Want) {
			doubled++
		}
	}
	if taken < 20 || doubled == 0 {
		t.Errorf("%d wrongly served, %d answered too often: the control finds too little", taken, doubled)
	}
}

// mustRefuse reports whether a 2xx for the first request would be wrong.
func (c rawCase) mustRefuse() bool {
	return len(c.Want) > 0 && !slices.Contains(c.Want[0], http.StatusOK)
}

// problems compares the answers to the case, with that to the probe behind them if there is one.
func (c rawCase) problems(answers []rawAnswer) []string {
	var found []string
	own := withoutProbe(answers)
	if len(own) != len(c.Want) {
		found = append(found, fmt.Sprintf("%d answers %v, want %d", len(own), own, len(c.Want)))
	}
	for i := range min(len(own), len(c.Want)) {
		if a := own[i]; !slices.Contains(c.Want[i], a.status) {
			found = append(found, fmt.Sprintf("answer %d is %d, want %v", i+1, a.status, c.Want[i]))
		} else if target := c.target(); i == 0 && a.target != "" && a.status == http.StatusOK && a.target != target {
			found = append(found, fmt.Sprintf("the target became %q, want %q", a.target, target))
		} else if a.status >= 400 && (a.code == "" || !a.closes) {
			found = append(found, fmt.Sprintf("answer %d has code %q, announces the close: %v", i+1, a.code, a.closes))
		}
	}
	kept := len(own) < len(answers)
	if c.Connection == "keep" && !kept || c.Connection == "close" && kept {
		found = append(found, fmt.Sprintf("connection kept: %v, want %s", kept, c.Connection))
	}
	return found
}

func (c rawCase) target() string {
	line, _, _ := strings.Cut(strings.TrimLeft(string(c.Request), "\r\n"), "\n")
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
	_, _ = conn.Write(c.Request)
	if c.EOF {
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	}
	br := bufio.NewReader(conn)
	var answers []rawAnswer
	for range c.Want {
		a, err := readRawAnswer(br, c.isHead(len(answers)))
		if err != nil {
			return answers, fmt.Errorf("answer %d: %w", len(answers)+1, err)
		}
		answers = append(answers, a)
	}
	if c.Connection != "close" && !c.EOF {
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
	in := slices.Clone(c.Request)
	if !c.EOF {
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
	return answer == 0 && bytes.HasPrefix(c.Request, []byte("HEAD "))
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

// rawText reads the lines of a request.
type rawText []byte

var rawRepeated = regexp.MustCompile(`(?s)\[\[(\d+) (.*?)\]\]`)

// UnmarshalJSON implements json.Unmarshaler.
func (r *rawText) UnmarshalJSON(text []byte) error {
	var lines []string
	err := json.Unmarshal(text, &lines)
	whole := rawRepeated.ReplaceAllStringFunc(strings.Join(lines, ""), func(found string) string {
		parts := rawRepeated.FindStringSubmatch(found)
		return strings.Repeat(parts[2], must(strconv.Atoi(parts[1])))
	})
	for _, char := range whole {
		*r = append(*r, byte(char))
	}
	return err
}

// readRawCorpus returns all cases. A case without paragraph, category or connection is an error.
func readRawCorpus() (all []rawCase, err error) {
	for _, file := range must(filepath.Glob(filepath.Join("testdata", "raw", "*.json"))) {
		var cases []rawCase
		decoder := json.NewDecoder(bytes.NewReader(must(os.ReadFile(file))))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&cases); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, c := range cases {
			if c.Name = strings.TrimSuffix(filepath.Base(file), ".json") + "/" + c.Name; c.RFC == "" || c.Category == "" || c.Connection == "" {
				return nil, fmt.Errorf("%s: no paragraph, category or connection", c.Name)
			}
			all = append(all, c)
		}
	}
	return all, nil
}

type rawVerdict struct {
	refused, method, target string
	body                    string
}

// FuzzGuard feeds raw bytes to a server in memory. Nothing may panic; the
// verdict must depend on neither repetition nor the pieces in which the bytes come;
// a refusal is the last answer; and net/http, where it takes a request
// that the guard lets pass, must see the same method, target and body.
func FuzzGuard(f *testing.F) {
	for _, c := range must(readRawCorpus()) {
		f.Add([]byte(c.Request))
	}
	server := recordingServer(f)
	f.Fuzz(func(t *testing.T, request []byte) {
		whole := &rawConn{in: request, step: rawBufferBytes}
		wholeErr := server.ServeConn(whole)
		pieces := &rawConn{in: request, step: 1}
		piecesErr := server.ServeConn(pieces)
		if !slices.Equal(whole.seen, pieces.seen) {
			t.Fatalf("in one piece %+v (%v), byte by byte %+v (%v)", whole.seen, wholeErr, pieces.seen, piecesErr)
		}
		for i, v := range whole.seen {
			if v.refused != "" && i != len(whole.seen)-1 {
				t.Fatalf("request %d was served after a refusal: %+v", i+2, whole.seen)
			}
		}
		if difference := differenceToNetHTTP(request, whole.seen); difference != "" {
			t.Fatal(difference)
		}
	})
}

// differenceToNetHTTP is the first difference to what the standard library reads, until one of the two refuses
// something.
func differenceToNetHTTP(request []byte, seen []rawVerdict) string {
	br := bufio.NewReader(bytes.NewReader(request))
	for i, v := range seen {
		other, err := http.ReadRequest(br)
		if v.refused != "" || err != nil {
			return ""
		}
		body, err := io.ReadAll(other.Body)
		if err != nil {
			return ""
		}
		if other.Method != v.method || other.RequestURI != v.target || string(body) != v.body {
			return fmt.Sprintf("request %d: here %+v, net/http %s %s %q", i+1, v, other.Method, other.RequestURI, body)
		}
	}
	return ""
}

// recordingServer notes in its rawConn what the handler sees. It panics when the guard contradicts itself.
func recordingServer(t testing.TB) *fasthttp.Server {
	server := rawFixture(t, nil).server.http
	server.Handler = func(ctx *fasthttp.RequestCtx) {
		var head conn.HeadInfo
		first, second := conn.Malformed(ctx, &head), conn.Malformed(ctx, new(conn.HeadInfo))
		if first != second {
			panic("two verdicts: " + first + " / " + second)
		}
		if head.Chunked() && first == "" {
			first = "chunked"
		}
		raw := ctx.Conn().(*rawConn)
		raw.seen = append(raw.seen, rawVerdict{first, string(ctx.Method()), string(ctx.Request.Header.RequestURI()), string(ctx.Request.Body())})
		if first != "" {
			ctx.SetConnectionClose()
		}
	}
	return server
}

// TestExpect_Continue: 100 comes before a body that is wanted, and only then (RFC 9110 10.1.1).
func TestExpect_Continue(t *testing.T) {
	t.Parallel()
	s := serve(t, withLimits(nil))
	const json, length, session = jsonLine + "\r\n", "Content-Length: 26\r\n", keysPath
	token := bearer(testSession(100)) + "\r\n"
	for name, test := range map[string]struct {
		line, lines string
		want        int // the first answer
	}{
		"wanted":               {"POST " + codesPath + " HTTP/1.1", json + length, 100},
		"in capitals":          {"POST " + codesPath + " HTTP/1.1", json + length + "X: 1\r\n", 100},
		"with a session":       {"POST " + session + " HTTP/1.1", json + length + token, 100},
		"HTTP/1.0":             {"POST " + codesPath + " HTTP/1.0", json + length, 0},
		"no body":              {"GET " + bestTarget + " HTTP/1.1", "", 200},
		"nothing is there":     {"POST /v1/none HTTP/1.1", json + length, 404},
		"another method":       {"PUT " + codesPath + " HTTP/1.1", json + length, 405},
		"a data operation":     {"POST " + bestTarget + " HTTP/1.1", json + length, 405},
		"no session":           {"POST " + session + " HTTP/1.1", json + length, 401},
		"a session of nobody":  {"POST " + session + " HTTP/1.1", json + length + bearer(testSession(7)) + "\r\n", 401},
		"another media type":   {"POST " + codesPath + " HTTP/1.1", "Content-Type: text/plain\r\n" + length, 415},
		"another site":         {"POST " + codesPath + " HTTP/1.1", json + length + "Origin: https://evil.example\r\n", 400},
		"too long":             {"POST " + codesPath + " HTTP/1.1", json + "Content-Length: 5000\r\n", 413},
		"chunked":              {"POST " + codesPath + " HTTP/1.1", json + "Transfer-Encoding: chunked\r\n", 501},
		"a body for no reader": {"DELETE " + sessionsPath + " HTTP/1.1", length + token, 400},
	} {
		expect := "Expect: 100-continue\r\n"
		if name == "in capitals" {
			expect = "Expect: 100-Continue\r\n"
		}
		conn, wire := s.dial(t)
		write(t, conn, test.line+"\r\nHost: a\r\n"+test.lines+expect+"\r\n")
		if test.want == 0 { // it waits for the body
			write(t, conn, `{"email":"ana@example.do"}`)
			test.want = http.StatusAccepted
		}
		response, err := http.ReadResponse(wire, &http.Request{Method: "POST"})
		ok(t, err)
		if response.StatusCode != test.want {
			t.Errorf("%s: %d, want %d", name, response.StatusCode, test.want)
		}
		_ = response.Body.Close()
		conn.Close()
	}
}

// TestE1_LongBodyAlwaysGets413: the client is still sending when the answer comes. A closed connection with unread
// bytes would be a reset, which can overtake the answer.
func TestE1_LongBodyAlwaysGets413(t *testing.T) {
	t.Parallel()
	plain := serve(t, withLimits(nil))
	secure, authority := serveTLS(t, withLimits(nil))
	for name, dial := range map[string]func() net.Conn{
		"TCP": func() net.Conn { conn, _ := plain.dial(t); return conn },
		"TLS": func() net.Conn { conn, _ := secure.dialed(t, authority, nil); return conn },
	} {
		for i := range 10 {
			conn, length := dial(), 300_000+i*200_000
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\n%s\r\nContent-Length: %d\r\n\r\n", codesPath, jsonLine, length)
				_, _ = io.Copy(conn, strings.NewReader(strings.Repeat("x", length))) // how it ends is the server's choice
			}()
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != http.StatusRequestEntityTooLarge {
				t.Fatalf("%s, %d bytes: %v, %v", name, length, response, err)
			}
			_ = response.Body.Close()
			<-sent
			conn.Close()
		}
	}
}
