package fetch

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/collectors/source"
)

// allocatedMax bounds all that a fetch may allocate, garbage too, which does not depend on how busy the machine is.
const allocatedMax = 16 << 20

func wantAllocated(t *testing.T, most uint64, work func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("%d bytes are allocated, want at most %d", used, most)
	}
}

type hostileServer struct {
	name   string
	kind   source.FailureKind
	says   string
	within time.Duration // of virtual time
	method source.Method // "" = HTMLFields
	listen func(w *testNetwork)
}

// slow upstreams keep a fetch until its limits, the others end it at once; only those that may heal are tried again.
const (
	untilBudget = 30 * time.Second
	threeTries  = 9 * time.Second // two waits of 2 s and 4 s, spread, and pauses
	atOnce      = time.Second
)

func hangs(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func says(text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = io.WriteString(conn, text)
		hangs(conn)
	}
}

// pours writes head and then filling, until the client disconnects or all is written.
func pours(head string, filling []byte, times int) func(net.Conn) {
	return func(conn net.Conn) {
		_, err := io.WriteString(conn, head)
		for range times {
			if err != nil {
				return
			}
			_, err = conn.Write(filling)
		}
	}
}

// bomb is 10 MB of gzip that unpack to 10 GB: one member of 10 MB zeros, a thousand times.
func bomb(t testing.TB) []byte {
	t.Helper()
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = writer.Write(make([]byte, 10<<20))
	if err := errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func onTLS(talk func(net.Conn)) func(*testNetwork) {
	return func(w *testNetwork) { w.rawTLS("bad.example.do", talk) }
}

func onPort(talk func(net.Conn)) func(*testNetwork) {
	return func(w *testNetwork) { w.raw("bad.example.do:443", talk) }
}

func onSite(handler http.HandlerFunc) func(*testNetwork) {
	return func(w *testNetwork) { w.site("bad.example.do", handler) }
}

// trickles writes a byte a second, for ever.
func trickles(head string) func(net.Conn) {
	return func(conn net.Conn) {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		_, err := io.WriteString(conn, head)
		for err == nil {
			<-ticker.C
			_, err = conn.Write([]byte("a"))
		}
	}
}

// TestD4_Hostile: the fetch ends in bounded time and memory with a failure that names the harm; another host is
// fetched meanwhile.
func TestD4_Hostile(t *testing.T) {
	for _, h := range slices.Concat(silent(), floods(bomb(t)), broken(), elsewhere(), unbelieved()) {
		t.Run(h.name, func(t *testing.T) {
			wantAllocated(t, allocatedMax, func() { inBubble(t, h.check) })
		})
	}
}

func (h hostileServer) check(t *testing.T, w *testNetwork) {
	h.listen(w)
	w.site("good.example.do", text("58.90"))
	c, d := w.client(), getWithoutRobots("https://bad.example.do/")
	d.Pages[0].Extract.Method = cmp.Or(h.method, source.HTMLFields)
	good := make(chan time.Duration, 1)
	go func() {
		began := clock()
		_, err := c.Fetch(t.Context(), get("https://good.example.do/"), 0)
		if err != nil {
			t.Errorf("the other host: %v", err)
		}
		good <- clock().Sub(began)
	}()
	began := clock()
	wantFailure(t, c, d, h.kind, h.says)
	if took := clock().Sub(began); took > h.within {
		t.Errorf("took %v, at most %v", took, h.within)
	}
	if took := <-good; took > atOnce {
		t.Errorf("the other host took %v", took)
	}
}

// TestD4_Body: within the limit a body is whole, beyond it there is none; with cut its beginning is.
func TestD4_Body(t *testing.T) {
	for _, size := range []int{0, 1, smallBodyBytes, smallBodyBytes + 1, 1 << 18, 1<<20 - 1, 1 << 20, 1<<20 + 1} {
		for _, declared := range []int64{-1, int64(size)} {
			for _, cut := range []bool{false, true} {
				const limit = 1 << 20
				whole := bytes.Repeat([]byte("b"), size)
				body, err := readBody(smallReads{bytes.NewReader(whole)}, declared, limit, cut)
				switch {
				case size > limit && !cut:
					if err == nil {
						t.Errorf("%d bytes are taken, at most %d", size, limit)
					}
				case err != nil || !bytes.Equal(body, whole[:min(size, limit)]):
					t.Errorf("%d bytes (declared %d, cut %v): got %d, %v", size, declared, cut, len(body), err)
				case cap(body) > limit+2*smallBodyBytes:
					t.Errorf("%d bytes take room for %d", size, cap(body))
				}
			}
		}
	}
}

type smallReads struct{ io.Reader }

func (r smallReads) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1013)]) }

const okHeader = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

func silent() []hostileServer {
	hang := func(name string, listen func(*testNetwork)) hostileServer {
		return hostileServer{name: name, kind: source.Timeout, within: untilBudget, listen: listen}
	}
	return []hostileServer{
		{name: "no listener", kind: source.Network, says: "refused", within: threeTries, listen: func(*testNetwork) {}},
		hang("hangs in the handshake", onPort(hangs)),
		hang("hangs before the header", onTLS(hangs)),
		hang("hangs in the header", onTLS(says("HTTP/1.1 200 OK\r\nContent-"))),
		hang("hangs in the body", onTLS(says(okHeader+"Content-Length: 100\r\n\r\nhalf"))),
		hang("trickles", onTLS(trickles(okHeader+"\r\n"))),
		hang("trickles its header", onTLS(trickles(""))),
		hang("reads nothing", onPort(func(conn net.Conn) {
			_ = conn.SetReadDeadline(clock().Add(time.Hour))
			<-time.NewTimer(time.Minute).C
		})),
	}
}

func floods(bomb []byte) []hostileServer {
	megabyte := bytes.Repeat([]byte("a"), 1<<20)
	tooMuch := func(name, says, head string, filling []byte, times int) hostileServer {
		return hostileServer{name: name, kind: source.WrongContent, says: says, within: atOnce, listen: onTLS(pours(head, filling, times))}
	}
	unreadable := func(name, says, head string, filling []byte, times int) hostileServer {
		return hostileServer{name: name, kind: source.Network, says: says, within: threeTries, listen: onTLS(pours(head, filling, times))}
	}
	const packed, plain = okHeader + "Content-Encoding: gzip\r\n\r\n", okHeader + "\r\n"
	workbook := tooMuch("1 GiB of a workbook", "10485760", "HTTP/1.1 200 OK\r\n\r\n", megabyte, 1024)
	workbook.method = source.XLSXRows
	return []hostileServer{
		workbook,
		tooMuch("1 GiB", "larger", plain, megabyte, 1024),
		tooMuch("1 GiB, as it says", "larger", okHeader+"Content-Length: 1073741824\r\n\r\n", nil, 0),
		tooMuch("gzip bomb", "larger", packed, bomb, 1000),
		tooMuch("another packing", "Content-Encoding br", okHeader+"Content-Encoding: br\r\n\r\n", []byte("x"), 1),
		unreadable("damaged gzip", "gzip", packed, []byte("not packed at all"), 1),
		unreadable("header flood", "header", "HTTP/1.1 200 OK\r\n", []byte("X-A: "+strings.Repeat("a", 1000)+"\r\n"), 1<<20),
		unreadable("a large header", "header", okHeader+strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 80)+"\r\n58.90", nil, 0),
		unreadable("flood of interim answers", "header", "", []byte("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), 1<<20),
		{name: "1 GiB of an error", kind: source.HTTPStatus, says: "404", within: atOnce,
			listen: onTLS(pours("HTTP/1.1 404 Not Found\r\n\r\n", megabyte, 1024))},
		{name: "half a gzip", kind: source.Network, says: "broke off", within: threeTries, listen: onTLS(pours(packed, bomb[:50], 1))},
	}
}

func broken() []hostileServer {
	ends := func(name, says string, listen func(*testNetwork)) hostileServer {
		return hostileServer{name: name, kind: source.Network, says: says, within: threeTries, listen: listen}
	}
	return []hostileServer{
		{name: "changes the protocol", kind: source.HTTPStatus, says: "101", within: atOnce,
			listen: onTLS(says("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello"))},
		{name: "a handshake refused", kind: source.TLS, says: "handshake failure", within: atOnce,
			listen: onPort(says("\x15\x03\x03\x00\x02\x02\x28"))},
		ends("reset in the handshake", "", onPort(func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })),
		ends("reset by the network in the handshake", "reset by peer", func(w *testNetwork) {
			w.raw("bad.example.do:443", hangs)
			w.resets = "bad.example.do:443"
		}),
		ends("half a handshake", "", onPort(pours("\x16\x03\x03\x00\x7a\x02", nil, 0))),
		ends("reset in the header", "", onTLS(pours("HTTP/1.1 200", nil, 0))),
		ends("reset in the middle", "broke off", onTLS(pours(okHeader+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello", nil, 0))),
		ends("length lie", "broke off", onTLS(pours(okHeader+"Content-Length: 100\r\n\r\nhalf", nil, 0))),
		ends("no HTTP", "", onTLS(pours("SSH-2.0-x\r\n\r\n", nil, 0))),
	}
}

func elsewhere() []hostileServer {
	away := func(name, says, location string) hostileServer {
		return hostileServer{name: "redirect " + name, kind: source.HTTPStatus, says: says, within: atOnce,
			listen: onSite(func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("Location", location)
				out.WriteHeader(http.StatusFound)
			})}
	}
	return []hostileServer{
		{name: "100 redirects", kind: source.HTTPStatus, says: "more than 5 redirects, the last one to https://bad.example.do/aaaaaa,", within: 5 * time.Second,
			listen: onSite(func(out http.ResponseWriter, r *http.Request) {
				http.Redirect(out, r, r.URL.Path+"a", http.StatusMovedPermanently)
			})},
		away("to another site", "https://other.com.do/x", "https://other.com.do/x"),
		away("without TLS", "from https to http", "http://bad.example.do/"),
		away("to another port", "port", "https://bad.example.do:22/"),
		away("to a file", "file:///etc/passwd", "file:///etc/passwd"),
		away("to nothing", "names no target", ""),
		away("to no address", "not a URL", "https://["),
	}
}

func unbelieved() []hostileServer {
	with := func(name, says string, issue func(w *testNetwork) tls.Certificate) hostileServer {
		return hostileServer{name: name, kind: source.TLS, says: says, within: atOnce,
			listen: func(w *testNetwork) { w.siteWith("bad.example.do", text("58.90"), issue(w)) }}
	}
	return []hostileServer{
		with("wrong name", "is valid for good.example.do", func(w *testNetwork) tls.Certificate { return w.authority.issue(w.t, "good.example.do") }),
		with("expired", "expired", func(w *testNetwork) tls.Certificate {
			return w.authority.issue(w.t, "bad.example.do", func(c *x509.Certificate) { c.NotAfter = c.NotBefore.AddDate(5, 0, 0) })
		}),
		with("self-signed", "unknown authority", func(w *testNetwork) tls.Certificate {
			return newAuthority(w.t, "self", nil).issue(w.t, "bad.example.do")
		}),
		{name: "plain HTTP on the port of TLS", kind: source.TLS, says: "TLS", within: atOnce,
			listen: func(w *testNetwork) { w.listen("bad.example.do:443", text("58.90"), nil) }},
		{name: "old TLS", kind: source.TLS, says: "protocol version", within: atOnce, listen: func(w *testNetwork) {
			certificates := []tls.Certificate{w.authority.issue(w.t, "bad.example.do")}
			w.listen("bad.example.do:443", text("58.90"), &tls.Config{
				Certificates: certificates, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
			})
		}},
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is the bubble's inside synctest.
func clock() time.Time {
	return time.Now() //nolint:forbidigo // the one door of the tests to the clock
}

// pipe is a connection in memory, which the bubble's clock knows. Some data may be under way, so that both ends can
// write at once.
func pipe() (client, server net.Conn) {
	client, near := net.Pipe()
	far, server := net.Pipe()
	carry(near, far)
	carry(far, near)
	return client, server
}

// carry brings what is read from one end to the other, until either is closed.
func carry(from, to net.Conn) {
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	}()
}

// testNetwork is the network of a test: what listens where. Nothing else can be reached.
type testNetwork struct {
	t         *testing.T
	authority *authority
	done      sync.WaitGroup
	open      sync.WaitGroup // connections that the client has not closed

	mu        sync.Mutex
	listening map[string]func(net.Conn) // by host:port
	dialed    []string
	resets    string // where the network ends every connection, once something was sent
	ends      []io.Closer
}

func newTestNetwork(t *testing.T) *testNetwork {
	w := &testNetwork{t: t, authority: newAuthority(t, "root", nil), listening: map[string]func(net.Conn){}}
	t.Cleanup(func() {
		w.mu.Lock()
		for _, end := range w.ends {
			_ = end.Close()
		}
		w.mu.Unlock()
		w.done.Wait()
		w.open.Wait()
	})
	return w
}

// inBubble runs a test on virtual time, over pipes.
func inBubble(t *testing.T, test func(t *testing.T, w *testNetwork)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newTestNetwork(t)) })
}

// caseInBubble is inBubble for one case of a table.
func caseInBubble(t *testing.T, name string, test func(t *testing.T, w *testNetwork)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, test) })
}

func (w *testNetwork) dial(_ context.Context, _, address string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialed = append(w.dialed, address)
	listen, ok := w.listening[address]
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused: " + address)}
	}
	client, server := pipe()
	if address == w.resets {
		client = resetConn{client}
	}
	w.open.Add(1)
	client = &countedConn{Conn: client, open: &w.open}
	w.ends = append(w.ends, server)
	w.done.Go(func() { listen(server) })
	return client, nil
}

// countedConn counts itself out when it is closed for the first time.
type countedConn struct {
	net.Conn
	open *sync.WaitGroup
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(c.open.Done)
	return c.Conn.Close()
}

// resetConn is a connection that ends as one of TCP does.
type resetConn struct{ net.Conn }

func (resetConn) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
}

// raw lets a function talk on an address, which has the connection to itself.
func (w *testNetwork) raw(address string, talk func(net.Conn)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listening[address] = func(conn net.Conn) {
		defer conn.Close()
		talk(conn)
	}
}

// rawTLS lets a function talk after the handshake and the header of the request.
func (w *testNetwork) rawTLS(host string, talk func(net.Conn)) {
	certificate := w.authority.issue(w.t, host)
	w.raw(host+":443", func(conn net.Conn) {
		secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
		if readHeader(secured) == nil {
			talk(secured)
		}
	})
}

func readHeader(conn net.Conn) error {
	var last [4]byte
	for one := make([]byte, 1); string(last[:]) != "\r\n\r\n"; {
		if _, err := conn.Read(one); err != nil {
			return err
		}
		copy(last[:], last[1:])
		last[3] = one[0]
	}
	return nil
}

func (w *testNetwork) site(host string, handler http.HandlerFunc) {
	w.siteWith(host, handler, w.authority.issue(w.t, host))
}

func (w *testNetwork) siteWith(host string, handler http.HandlerFunc, certificate tls.Certificate) {
	w.listen(host+":443", handler, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
}

// listen serves HTTP on an address, without TLS when settings is nil.
func (w *testNetwork) listen(address string, handler http.HandlerFunc, settings *tls.Config) {
	conns := make(listener, 64)
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, server)
	w.listening[address] = func(conn net.Conn) {
		if settings != nil {
			conn = tls.Server(conn, settings)
		}
		conns <- conn
	}
	w.done.Go(func() { _ = server.Serve(conns) })
}

type listener chan net.Conn

func (l listener) Accept() (net.Conn, error) {
	conn, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l listener) Close() error {
	close(l)
	return nil
}

func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

func (w *testNetwork) config() Config {
	return Config{Clock: clock, Dial: w.dial, Roots: w.authority.pool(), UserAgent: "tasard/1.0 (+https://github.com/tasard/tasard; ops@example.do)"}
}

func (w *testNetwork) client(change ...func(*Config)) *Client {
	config := w.config()
	for _, f := range change {
		f(&config)
	}
	return New(config)
}

func noPause(c *Config) { c.Pause = -1 }

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	parent      *authority
}

func newAuthority(t testing.TB, name string, parent *authority) *authority {
	t.Helper()
	template := template(name)
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	certificate, key := sign(t, template, parent)
	return &authority{certificate, key, parent}
}

// issue makes a certificate for a host, with the intermediates up to the root.
func (a *authority) issue(t testing.TB, host string, change ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	template := template(host)
	template.DNSNames = []string{host}
	for _, f := range change {
		f(template)
	}
	certificate, key := sign(t, template, a)
	chain := [][]byte{certificate.Raw}
	for above := a; above.parent != nil; above = above.parent {
		chain = append(chain, above.certificate.Raw)
	}
	return tls.Certificate{Certificate: chain, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// template is good on virtual and on real time.
func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		NotBefore: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// sign makes a key and a certificate for it, signed by parent, or by itself where there is none.
func sign(t testing.TB, template *x509.Certificate, parent *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, keyErr := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	issuer, issuerKey := template, key
	if parent != nil {
		issuer, issuerKey = parent.certificate, parent.key
	}
	raw, signErr := x509.CreateCertificate(crand.Reader, template, issuer, &key.PublicKey, issuerKey)
	certificate, err := x509.ParseCertificate(raw)
	if err := errors.Join(keyErr, signErr, err); err != nil {
		t.Fatalf("make a certificate: %v", err)
	}
	return certificate, key
}

func get(address string) *source.Definition {
	return definitionOf(source.Request{Method: "GET", URL: address})
}

func getWithoutRobots(address string) *source.Definition {
	return definitionWithoutRobots(source.Request{Method: "GET", URL: address})
}

func definitionWithoutRobots(requests ...source.Request) *source.Definition {
	d := definitionOf(requests...)
	d.IgnoreRobots = true
	return d
}

func definitionOf(requests ...source.Request) *source.Definition {
	return &source.Definition{
		ID:    "example-site",
		Pages: []source.Page{{Name: "usd", Requests: requests, Extract: source.Extract{Method: source.HTMLFields}}},
	}
}

// text answers every path but robots.txt with the same page.
func text(body string) http.HandlerFunc { return textWith("", body) }

// textWith answers robots.txt too; with 404 when it is "".
func textWith(robots, body string) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/robots.txt":
			_, _ = io.WriteString(out, body)
		case robots != "":
			_, _ = io.WriteString(out, robots)
		default:
			http.NotFound(out, r)
		}
	}
}

// wantDocument fetches page 0 and wants this body.
func wantDocument(t *testing.T, c *Client, d *source.Definition, body string) *source.Document {
	t.Helper()
	document, err := c.Fetch(t.Context(), d, 0)
	if err != nil {
		t.Fatalf("fetch: %v", err)
	}
	if string(document.Body) != body {
		t.Fatalf("got the body %.80q, want %.80q", document.Body, body)
	}
	return document
}

// wantFailure fetches page 0 and wants a failure of this kind that says all of this. It gives the detail.
func wantFailure(t *testing.T, c *Client, d *source.Definition, kind source.FailureKind, says ...string) string {
	t.Helper()
	document, err := c.Fetch(t.Context(), d, 0)
	var f *source.Failure
	if !errors.As(err, &f) || document != nil {
		t.Fatalf("got %v, %v; want a failure", document, err)
	}
	if f.Kind != kind || f.Page != "usd" {
		t.Errorf("got %q, want %s of the page usd", f.Error(), kind)
	}
	for _, word := range says {
		if !strings.Contains(f.Detail, word) {
			t.Errorf("%q does not say %q", f.Detail, word)
		}
	}
	return f.Detail
}

func failureKind(err error) source.FailureKind {
	var f *source.Failure
	if errors.As(err, &f) {
		return f.Kind
	}
	return ""
}
