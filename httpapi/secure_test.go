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

	"github.com/valyala/fasthttp"
)

// certificateAuthority makes certificates for loopback, and is the pool that trusts each of them.
type certificateAuthority struct{ pool *x509.CertPool }

func newCertificateAuthority() *certificateAuthority {
	return &certificateAuthority{x509.NewCertPool()}
}

func (a *certificateAuthority) certify(number int64) *tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	made := &x509.Certificate{
		SerialNumber: big.NewInt(number), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: bubbleNow().Add(-time.Hour), NotAfter: bubbleNow().Add(time.Hour),
	}
	raw := must(x509.CreateCertificate(rand.Reader, made, made, key.Public(), key))
	a.pool.AddCert(must(x509.ParseCertificate(raw)))
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func fixedCertificate(c *tls.Certificate) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c, nil }
}

func serveTLS(t *testing.T, change func(*Config)) (*serving, *certificateAuthority) {
	t.Helper()
	a := newCertificateAuthority()
	one := a.certify(2)
	return serve(t, func(c *Config) {
		c.Certificate = fixedCertificate(one)
		if change != nil {
			change(c)
		}
	}), a
}

func (a *certificateAuthority) dial(address string, change func(*tls.Config)) (*tls.Conn, error) {
	config := &tls.Config{RootCAs: a.pool}
	if change != nil {
		change(config)
	}
	return tls.DialWithDialer(&net.Dialer{Timeout: rawPatience}, "tcp", address, config)
}

func (s *serving) dialed(t *testing.T, a *certificateAuthority, change func(*tls.Config)) (*tls.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := a.dial(s.address, change)
	ok(t, err)
	t.Cleanup(func() { conn.Close() })
	ok(t, conn.SetDeadline(networkDeadline()))
	return conn, bufio.NewReader(conn)
}

// TestTLS_SameAnswers: every operation answers over TLS what it answers without, on one connection, with either
// version. Plain requests do not reach the library.
func TestTLS_SameAnswers(t *testing.T) {
	t.Parallel()
	s, a := serveTLS(t, nil)
	s.server.http.Handler = func(*fasthttp.RequestCtx) { t.Error("the library reads a plain request") }
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		conn, wire := s.dialed(t, a, func(c *tls.Config) { c.MaxVersion = version })
		for operation, target := range goldenTargets() {
			for range 3 {
				got, want := askOn(t, conn, wire, target), s.get(t, target)
				if got.status != want.status || string(got.body) != string(want.body) {
					t.Errorf("%s: %d, %d bytes; want %d, %d bytes", operation, got.status, len(got.body), want.status, len(want.body))
				}
			}
		}
		if state := conn.ConnectionState(); state.Version != version || state.NegotiatedProtocol == "h2" {
			t.Errorf("version %x, protocol %q", state.Version, state.NegotiatedProtocol)
		}
	}
}

// TestTLS_Refused: old versions, other protocols and plain clients get an error that they can read; silent clients
// are let go.
func TestTLS_Refused(t *testing.T) {
	t.Parallel()
	s, a := serveTLS(t, func(c *Config) { c.Limits = Limits{ReadTimeout: 200 * time.Millisecond} })
	for want, change := range map[string]func(*tls.Config){
		"protocol version":        func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"no application protocol": func(c *tls.Config) { c.NextProtos = []string{"h2"} },
	} {
		if _, err := a.dial(s.address, change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	conn, wire := s.dial(t)
	got := askOn(t, conn, wire, "/v1/currencies")
	if got.code(t) != "400 malformed_request" || !got.closes || strings.Contains(string(got.body), "USD") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if rest, _ := io.ReadAll(wire); len(rest) > 0 {
		t.Errorf("more: %q", rest)
	}
	var silent []net.Conn
	for _, said := range []string{"", "\x16\x03\x01\x02\x00\x01", "\x16\x03\x01\x00\x04\x01\x00\x00"} {
		conn, _ := s.dial(t)
		_, _ = io.WriteString(conn, said) // on a busy machine it may be let go already
		silent = append(silent, conn)
	}
	for _, conn := range silent {
		if rest, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(rest), "HTTP") {
			t.Errorf("%q, %v", rest, err)
		}
	}
	good, wire := s.dialed(t, a, nil)
	if a := askOn(t, good, wire, "/v1/currencies"); a.status != http.StatusOK {
		t.Errorf("a good client is answered %d afterwards", a.status)
	}
}

// TestTLS_AnswersBehindADeadline: the deadline of an answer that was written long ago ends no later one half-way.
func TestTLS_AnswersBehindADeadline(t *testing.T) {
	t.Parallel()
	s, a := serveTLS(t, func(c *Config) { c.Limits = Limits{WriteTimeout: 100 * time.Millisecond} })
	conn, wire := s.dialed(t, a, nil)
	for range 3 {
		if a := askOn(t, conn, wire, "/v1/currencies"); a.status != http.StatusOK {
			t.Fatalf("status %d", a.status)
		}
		bubbleSleep(150 * time.Millisecond) // the deadline is one of the kernel's sockets: real time
	}
}

// TestTLS_NewCertificate: a certificate that changes is that of the next connection; one that is open goes on.
func TestTLS_NewCertificate(t *testing.T) {
	t.Parallel()
	var present atomic.Pointer[tls.Certificate]
	s, a := serveTLS(t, func(c *Config) {
		c.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return present.Load(), nil }
	})
	present.Store(a.certify(7))
	first, wire := s.dialed(t, a, nil)
	present.Store(a.certify(8))
	second, _ := s.dialed(t, a, nil)
	for number, conn := range map[int64]*tls.Conn{7: first, 8: second} {
		if got := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != number {
			t.Errorf("certificate %d, want %d", got, number)
		}
	}
	if a := askOn(t, first, wire, "/v1/currencies"); a.status != http.StatusOK {
		t.Errorf("status %d on the first connection", a.status)
	}
}

// TestTLS_ShutdownSendsCloseNotify: an idle connection ends with TLS's alert for it, so that its client knows that
// nothing is missing.
func TestTLS_ShutdownSendsCloseNotify(t *testing.T) {
	t.Parallel()
	s, a := serveTLS(t, nil)
	plain, _ := s.dial(t)
	below := &countedReads{Conn: plain}
	conn := tls.Client(below, &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1"})
	wire := bufio.NewReader(conn)
	askOn(t, conn, wire, "/v1/currencies")
	before := below.bytes
	s.stop(t)
	if rest, err := io.ReadAll(wire); err != nil || len(rest) > 0 || below.bytes == before {
		t.Errorf("%q, %v, %d bytes of TLS", rest, err, below.bytes-before)
	}
}

type countedReads struct {
	net.Conn
	bytes int
}

func (c *countedReads) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes += n
	return n, err
}
