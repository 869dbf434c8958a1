package cluster

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
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

// startTransport listens as the first node of a cluster whose others do not run.
func startTransport(t *testing.T, c Config) (*transport, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	c.Dir, c.Listen, c.Logger = t.TempDir(), clustertest.Addresses(t, 1)[0], slog.New(slog.NewTextHandler(log, nil))
	node, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	return node.transport, log
}

// greet connects as another node with a configuration does, and returns the node's hello.
func greet(t *testing.T, address string, config *tls.Config, h hello, c Config) (hello, error) {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: waitTimeout}, "tcp", address, config)
	if err != nil {
		return hello{}, err
	}
	defer conn.Close()
	dialer := &transport{c: &Cluster{config: c}}
	dialer.c.config.Node, dialer.c.process, dialer.c.machine = 2, h.Process, h.Machine
	if err := dialer.writeHello(conn, h.To); err != nil {
		return hello{}, err
	}
	return readHello(bufio.NewReader(conn))
}

func configOf(t *testing.T, c Config) *tls.Config {
	t.Helper()
	config, err := c.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestTransport_Flood: connections that do not authenticate themselves take few file descriptors and little log, and
// leave room for a node with the same address.
func TestTransport_Flood(t *testing.T) {
	t.Parallel()
	c := valid()
	transport, log := startTransport(t, c)
	address := transport.listener.Addr().String()
	for i := range 20 * pendingPerHost {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 { // a handshake that fails
			_, _ = fmt.Fprintf(conn, "\x16 connection %d", i)
		}
	}
	open := func() int {
		transport.mu.Lock()
		defer transport.mu.Unlock()
		return len(transport.pending)
	}
	eventually(t, "few connections", func() bool { return open() <= pendingPerHost })
	if h, err := greet(t, address, configOf(t, c), hello{Name: "node-2", To: c.name()}, c); err != nil || h.Name != c.name() {
		t.Errorf("during the flood a node is greeted with %+v, %v", h, err)
	}
	eventually(t, "no connections", func() bool { return open() == 0 })
	if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > 20 {
		t.Errorf("%d lines of log:\n%.3000s", lines, log)
	}
	if !strings.Contains(log.String(), "too many connections") {
		t.Errorf("the flood is not in the log:\n%.3000s", log)
	}
}

// TestTransport_Refused: only nodes of this cluster that look for this node get an answer.
func TestTransport_Refused(t *testing.T) {
	t.Parallel()
	c := valid()
	c.Insecure, c.Secret, c.TLS = false, "", newCertificate(t)
	transport, log := startTransport(t, c)
	address, member := transport.listener.Addr().String(), configOf(t, c)
	authority := member.Certificates[0]
	leaf := &x509.Certificate{SerialNumber: authority.Leaf.SerialNumber, DNSNames: []string{"www.example"}, NotAfter: authority.Leaf.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority.Leaf, authority.Leaf.PublicKey, authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	otherPurpose := member.Clone()
	otherPurpose.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: authority.PrivateKey}}
	otherCluster, withSecret := c, c
	otherCluster.Cluster, withSecret.Secret = "other", testSecret
	for _, tt := range []struct {
		name  string
		tls   *tls.Config
		hello hello
		c     Config
		words string
	}{
		{"a node", member, hello{Name: "node-2", To: c.name()}, c, ""},
		{"another purpose", otherPurpose, hello{Name: "node-2", To: c.name()}, c, "the certificate is for www.example"},
		{"another secret", member, hello{Name: "node-2", To: c.name()}, withSecret, "its secret is not"},
		{"another cluster", member, hello{Name: "node-2", To: c.name()}, otherCluster, "belongs to the cluster"},
		{"another node", member, hello{Name: "node-2", To: "node-3"}, c, "looks for"},
	} {
		h, err := greet(t, address, tt.tls, tt.hello, tt.c)
		if (err == nil) != (tt.words == "") {
			t.Errorf("%s: %+v, %v", tt.name, h, err)
		}
		eventually(t, tt.name+" in the log", func() bool { return strings.Contains(log.String(), tt.words) })
	}
}

// TestTransport_OtherSecret: nodes of another secret do not even get to the hello.
func TestTransport_OtherSecret(t *testing.T) {
	t.Parallel()
	c := valid()
	transport, _ := startTransport(t, c)
	c.Secret = strings.ToUpper(testSecret)
	if h, err := greet(t, transport.listener.Addr().String(), configOf(t, c), hello{Name: "node-2", To: c.name()}, c); err == nil {
		t.Errorf("greeted with %+v", h)
	}
}

// TestTransport_WrongNode: a node that dials another one by a wrong address notices it.
func TestTransport_WrongNode(t *testing.T) {
	t.Parallel()
	transport, _ := startTransport(t, valid())
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	if _, _, err := transport.dial(ctx, "node-2", transport.listener.Addr().String()); err == nil {
		t.Error("this node was taken for node-2")
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

// TestLimitedLog: what repeats is logged once a minute.
func TestLimitedLog(t *testing.T) {
	now, out := realClock(), &logBuffer{}
	l := &limitedLog{logger: slog.New(slog.NewTextHandler(out, nil)), clock: func() time.Time { return now }}
	for i := range 1000 {
		l.write(fmt.Sprintf("10.0.0.%d:%d is down", i%200, i), slog.LevelWarn, "down")
	}
	l.write("another message", slog.LevelWarn, "another message")
	now = now.Add(repeatInterval)
	l.write("10.0.0.7:1 is down", slog.LevelWarn, "down")
	if got := out.String(); strings.Count(got, "\n") != 3 || strings.Count(got, "msg=down") != 2 {
		t.Errorf("logged:\n%s", got)
	}
}
