//go:build !nocluster

package cluster

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/cluster/clustertest"
)

// logBuffer is a log that goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startGate starts the server of a node that has no others.
func startGate(t *testing.T, c Config) (*embeddedServer, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	c.Dir, c.Listen, c.Logger = t.TempDir(), clustertest.Addresses(t, 1)[0], slog.New(slog.NewTextHandler(log, nil))
	c, err := c.complete()
	if err != nil {
		t.Fatal(err)
	}
	e, err := startServer(&c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.stop(stopTimeout); err != nil {
			t.Error(err)
		}
	})
	return e, log
}

// greeting connects as a node with a configuration does, and returns the beginning of the server's first message.
func greeting(t *testing.T, address string, c Config) (string, error) {
	t.Helper()
	config, err := c.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: waitTimeout}, "tcp", address, config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	text := make([]byte, 5)
	_, err = io.ReadFull(conn, text)
	return string(text), err
}

// TestGate_Flood: connections that do not authenticate themselves take few file descriptors and little log, and leave
// room for a node with the same address.
func TestGate_Flood(t *testing.T) {
	t.Parallel()
	c := valid()
	e, log := startGate(t, c)
	for i := range 20 * pendingPerAddress {
		conn, err := net.Dial("tcp", e.gate.config.Listen)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 { // a handshake that fails in the server
			_, _ = fmt.Fprintf(conn, "\x16 connection %d", i)
		}
	}
	counts := func() (pending, open int) {
		e.gate.mu.Lock()
		defer e.gate.mu.Unlock()
		return len(e.gate.pending), len(e.gate.open)
	}
	eventually(t, "few connections", func() bool { _, open := counts(); return open <= pendingPerAddress })
	if text, err := greeting(t, e.gate.config.Listen, c); err != nil || text != "INFO " {
		t.Errorf("during the flood a node is greeted with %q, %v", text, err)
	}
	eventually(t, "no connections", func() bool { pending, open := counts(); return pending+open == 0 })
	if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > 20 {
		t.Errorf("%d lines of log:\n%.3000s", lines, log)
	}
	if !strings.Contains(log.String(), "too many connections") {
		t.Errorf("the flood is not in the log:\n%.3000s", log)
	}
}

// TestGate_OtherSecret: nodes of another secret do not even get to the password, in both directions.
func TestGate_OtherSecret(t *testing.T) {
	t.Parallel()
	c := valid()
	e, _ := startGate(t, c)
	c.Secret = strings.ToUpper(testSecret)
	if text, err := greeting(t, e.gate.config.Listen, c); err == nil {
		t.Errorf("greeted with %q", text)
	}
}

// TestGate_OtherPurpose: the server asks the gate about the certificate of each connection, and closes it if the
// authority has signed it for another host.
func TestGate_OtherPurpose(t *testing.T) {
	t.Parallel()
	c := valid()
	c.Insecure, c.Secret, c.TLS = false, "", newCertificate(t)
	e, log := startGate(t, c)
	member, err := c.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	authority := member.Certificates[0]
	leaf := &x509.Certificate{SerialNumber: authority.Leaf.SerialNumber, DNSNames: []string{"www.example"}, NotAfter: authority.Leaf.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority.Leaf, authority.Leaf.PublicKey, authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	other := member.Clone()
	other.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: authority.PrivateKey}}
	for config, words := range map[*tls.Config]string{member: "PONG", other: "Authorization Violation"} {
		conn, err := tls.Dial("tcp", e.gate.config.Listen, config)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "CONNECT {\"user\":\"node\",\"name\":\"x\",\"cluster\":\"c\"}\r\nPING\r\n")
		text := &bytes.Buffer{}
		for buffer := make([]byte, 4096); err == nil && !strings.Contains(text.String(), words); {
			var n int
			n, err = conn.Read(buffer)
			text.Write(buffer[:n])
		}
		conn.Close()
		if err != nil {
			t.Errorf("no %q in the answer %q: %v", words, text, err)
		}
	}
	if !strings.Contains(log.String(), "another node refused") {
		t.Errorf("the refusal is not in the log:\n%.3000s", log)
	}
}

// TestGate_ClosedEarly: a node that closes its connection at once, because it has connected to itself, causes no record
// of the log.
func TestGate_ClosedEarly(t *testing.T) {
	t.Parallel()
	c := valid()
	e, log := startGate(t, c)
	config, err := c.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		conn, err := tls.Dial("tcp", e.gate.config.Listen, config)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "CONNECT {\"user\":\"node\",\"pass\":%q,\"name\":\"x\",\"cluster\":\"c\"}\r\n", c.routePassword())
		conn.Close()
	}
	eventually(t, "no connections", func() bool {
		e.gate.mu.Lock()
		defer e.gate.mu.Unlock()
		return len(e.gate.open) == 0
	})
	if strings.Contains(log.String(), "authentication") {
		t.Errorf("logged:\n%.2000s", log)
	}
}

// TestCheckPeer: a certificate of the authority is not enough.
func TestCheckPeer(t *testing.T) {
	c := valid()
	c.TLS, c.Members[1].Address, c.Guests = TLS{"a", "b", "c"}, "db.example:6222", []string{"guest.example"}
	for _, tt := range []struct {
		name, secret, password, words string
		certificate                   *x509.Certificate
	}{
		{"a member", "", "", "", &x509.Certificate{DNSNames: []string{"x.example", "db.example"}}},
		{"a member by its IP address", "", "", "", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}},
		{"a guest", "s", "s", "", &x509.Certificate{DNSNames: []string{"guest.example"}}},
		{"for another purpose", "", "", "the certificate is for www.example, 10.0.0.9, which is neither", &x509.Certificate{
			DNSNames: []string{"www.example"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 9)},
		}},
		{"another secret", "s", "t", "its secret", &x509.Certificate{DNSNames: []string{"db.example"}}},
		{"no secret", "s", "", "its secret", &x509.Certificate{DNSNames: []string{"db.example"}}},
	} {
		err := c.checkPeer(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{tt.certificate}}, tt.secret, tt.password)
		if (err == nil) != (tt.words == "") || err != nil && !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.words)
		}
	}
}

// TestLimitedLog: what repeats is logged once a minute, with a count.
func TestLimitedLog(t *testing.T) {
	now, out := realClock(), &logBuffer{}
	l := &limitedLog{logger: slog.New(slog.NewTextHandler(out, nil)), clock: func() time.Time { return now }}
	for i := range 1000 {
		l.write(slog.LevelWarn, fmt.Sprintf("10.0.0.%d:%d is down", i%200, i))
	}
	l.write(slog.LevelWarn, "another message")
	now = now.Add(repeatInterval)
	l.write(slog.LevelWarn, "10.0.0.7:1 is down")
	if got := out.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, "omitted=999") {
		t.Errorf("logged:\n%s", got)
	}
}
