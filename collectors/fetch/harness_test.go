package fetch

import (
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
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/collectors/source"
)

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
