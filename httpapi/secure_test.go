package httpapi

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// authority makes certificates for loopback.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	a.certificate, a.key = signed(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	a.pool.AddCert(a.certificate)
	return a
}

// certify makes a certificate with a number.
func (a *authority) certify(t testing.TB, number int64) *tls.Certificate {
	t.Helper()
	leaf, key := signed(t, &x509.Certificate{SerialNumber: big.NewInt(number), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, a)
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}
}

// signed completes a certificate, which signs itself without an authority.
func signed(t testing.TB, c *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if c.SerialNumber == nil {
		c.SerialNumber = big.NewInt(1)
	}
	now := time.Now() //nolint:forbidigo // certificates are of real time
	c.NotBefore, c.NotAfter = now.Add(-time.Hour), now.Add(time.Hour)
	parent, signer := c, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// always gives one certificate.
func always(c *tls.Certificate) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c, nil }
}

// secureServing is a fixture that speaks TLS on loopback.
func secureServing(t *testing.T, change func(*Config)) (*serving, *authority) {
	t.Helper()
	a := newAuthority(t)
	one := a.certify(t, 2)
	return serve(t, func(c *Config) {
		c.Certificate = always(one)
		if change != nil {
			change(c)
		}
	}), a
}

func (a *authority) dial(address string, change func(*tls.Config)) (*tls.Conn, error) {
	config := &tls.Config{RootCAs: a.pool}
	if change != nil {
		change(config)
	}
	return tls.DialWithDialer(&net.Dialer{Timeout: rawPatience}, "tcp", address, config)
}

// TestTLS_RawCorpus: the guard sees under TLS what it sees without: the whole corpus, smuggled requests included.
func TestTLS_RawCorpus(t *testing.T) {
	a, server := newAuthority(t), rawServer(guarded)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	config := secureConfig(always(a.certify(t, 2)), time.Now) //nolint:forbidigo // certificates are of real time
	go func() { served <- server.Serve(Patient(ln, Patience{TLS: config})) }()
	for _, c := range readRawCorpus(t) {
		t.Run(c.name, func(t *testing.T) {
			conn, err := a.dial(ln.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			answers, err := exchangeOver(conn, c)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range c.problems(answers) {
				t.Errorf("RFC %s: %s", c.paragraph, problem)
			}
		})
	}
	if err := errors.Join(server.Shutdown(), <-served); err != nil {
		t.Error(err)
	}
}

// TestTLS_SameAnswers: every operation answers over TLS what it answers without, on one connection, with either version.
func TestTLS_SameAnswers(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s, a := secureServing(t, nil)
	defer s.stop(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool, MaxVersion: version}, MaxConnsPerHost: 1}
		client := &http.Client{Transport: transport}
		for operation, target := range goldenTargets() {
			for range 3 { // kept, and gathered aside without TLS
				res, err := client.Get("https://" + s.address + target)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if want := s.get(t, target); err != nil || res.StatusCode != want.status || string(body) != string(want.body) {
					t.Errorf("%s: %d, %v, %d bytes; want %d, %d bytes", operation, res.StatusCode, err, len(body), want.status, len(want.body))
				}
				if res.TLS.Version != version || res.TLS.NegotiatedProtocol == "h2" {
					t.Errorf("%s: version %x, protocol %q", operation, res.TLS.Version, res.TLS.NegotiatedProtocol)
				}
			}
		}
		transport.CloseIdleConnections()
	}
}

// TestTLS_Refused: old versions and other protocols are refused by TLS, with its own words.
func TestTLS_Refused(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s, a := secureServing(t, nil)
	defer s.stop(t)
	for want, change := range map[string]func(*tls.Config){
		"protocol version":        func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"no application protocol": func(c *tls.Config) { c.NextProtos = []string{"h2"} },
	} {
		conn, err := a.dial(s.address, change)
		if err == nil {
			conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if s.secureStatus(t, a) != http.StatusOK {
		t.Error("a good client is not served afterwards")
	}
}

// secureStatus is that of one request on a connection of its own.
func (s *serving) secureStatus(t *testing.T, a *authority) int {
	t.Helper()
	conn, err := a.dial(s.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return request(t, conn, bufio.NewReader(conn))
}

// request asks once on a connection, which it leaves open.
func request(t *testing.T, conn net.Conn, wire *bufio.Reader) int {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, "GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return parseAnswer(t, wire, "GET").status
}

// TestTLS_PlainClient: who speaks plain HTTP gets an error that it can read, and nothing else.
func TestTLS_PlainClient(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s, _ := secureServing(t, nil)
	defer s.stop(t)
	conn := s.dial(t)
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	wire := bufio.NewReader(conn)
	got := parseAnswer(t, wire, "GET")
	if got.status != 400 || got.fault(t).Error.Code != "malformed_request" || !got.closes || strings.Contains(string(got.body), "USD") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if rest, _ := io.ReadAll(wire); len(rest) > 0 {
		t.Errorf("more: %q", rest)
	}
}

// TestTLS_SilentClients: one that never shakes hands, or stops half-way, is let go when the time for a request is over.
func TestTLS_SilentClients(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s, a := secureServing(t, func(c *Config) { c.Limits = Limits{ReadTimeout: 200 * time.Millisecond} })
	defer s.stop(t)
	for _, said := range []string{"", "\x16\x03\x01\x02\x00\x01", "\x16\x03\x01\x00\x04\x01\x00\x00"} {
		conn := s.dial(t)
		if _, err := io.WriteString(conn, said); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(rest), "HTTP") {
			t.Errorf("%q: %q, %v", said, rest, err)
		}
		conn.Close()
	}
	if s.secureStatus(t, a) != http.StatusOK {
		t.Error("a good client is not served afterwards")
	}
}

// TestTLS_AnswersBehindADeadline: the deadline of an answer that was written long ago ends no later one half-way.
func TestTLS_AnswersBehindADeadline(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s, a := secureServing(t, func(c *Config) { c.Limits = Limits{WriteTimeout: 100 * time.Millisecond} })
	defer s.stop(t)
	conn, err := a.dial(s.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	wire := bufio.NewReader(conn)
	for range 3 {
		if status := request(t, conn, wire); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
		pause := time.NewTimer(150 * time.Millisecond) // the deadline is one of the kernel's sockets: real time
		<-pause.C
	}
}

// TestTLS_NewCertificate: a certificate that changes is that of the next connection; one that is open goes on.
func TestTLS_NewCertificate(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	var present atomic.Pointer[tls.Certificate]
	s, a := secureServing(t, func(c *Config) {
		c.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return present.Load(), nil }
	})
	defer s.stop(t)
	var first *tls.Conn
	var wire *bufio.Reader
	for _, number := range []int64{7, 8} {
		present.Store(a.certify(t, number))
		conn, err := a.dial(s.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != number {
			t.Errorf("certificate %d, want %d", got, number)
		}
		if first == nil {
			first, wire = conn, bufio.NewReader(conn)
		}
		if status := request(t, first, wire); status != http.StatusOK {
			t.Errorf("status %d on the first connection", status)
		}
	}
}

// TestTLS_ShutdownSaysGoodbye: an idle connection ends with the word of TLS for it, so that its client knows that nothing is missing.
func TestTLS_ShutdownSaysGoodbye(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s, a := secureServing(t, nil)
	below := &countedReads{Conn: s.dial(t)}
	conn := tls.Client(below, &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1"})
	wire := bufio.NewReader(conn)
	if status := request(t, conn, wire); status != http.StatusOK {
		t.Fatal(status)
	}
	before := below.bytes
	s.stop(t)
	if rest, err := io.ReadAll(wire); err != nil || len(rest) > 0 || below.bytes == before {
		t.Errorf("%q, %v, %d bytes of TLS", rest, err, below.bytes-before)
	}
}

// countedReads counts what comes in.
type countedReads struct {
	net.Conn
	bytes int
}

func (c *countedReads) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes += n
	return n, err
}

// TestTLS_LeavesAtOnce: a client that takes nothing does not hold up the end.
func TestTLS_LeavesAtOnce(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	near, full := accepted.(*net.TCPConn), make([]byte, 1<<20)
	b := &beneath{lazyDeadlines: &lazyDeadlines{Conn: near}, tcp: near}
	b.leaving.Store(true)
	for {
		if _, err := b.Write(full); err != nil {
			break // the kernel takes no more, and says so instead of waiting
		}
	}
	if _, err := b.Write([]byte("goodbye")); err == nil {
		t.Error("a full connection took more")
	}
}
