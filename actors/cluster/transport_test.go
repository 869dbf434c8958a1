package cluster

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
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
	c.Dir, c.Listen, c.Logger = t.TempDir(), freeAddresses(1)[0], slog.New(slog.NewTextHandler(log, nil))
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
	return readHello(conn)
}

func configOf(t *testing.T, c Config) *tls.Config {
	t.Helper()
	config, err := c.tlsConfig()
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
	for i := range 5 * pendingMax {
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
	eventually(t, "few connections", func() bool { return open() <= pendingMax })
	if h, err := greet(t, address, configOf(t, c), hello{To: c.name()}, c); err != nil || h.Name != c.name() {
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

// TestTransport_Refused: only nodes of this cluster that look for this node get an answer, and a node that dials
// another one by a wrong address notices it.
func TestTransport_Refused(t *testing.T) {
	t.Parallel()
	c := valid()
	transport, log := startTransport(t, c)
	otherCluster := c
	otherCluster.Cluster = "other"
	for _, tt := range []struct {
		name, to string
		c        Config
		words    string
	}{
		{"a node", c.name(), c, ""},
		{"another cluster", c.name(), otherCluster, "belongs to the cluster"},
		{"another node", "node-3", c, "looks for"},
	} {
		h, err := greet(t, transport.listener.Addr().String(), configOf(t, c), hello{To: tt.to}, tt.c)
		if (err == nil) != (tt.words == "") {
			t.Errorf("%s: %+v, %v", tt.name, h, err)
		}
		eventually(t, tt.name+" in the log", func() bool { return strings.Contains(log.String(), tt.words) })
	}
	if _, err := transport.dial(t.Context(), "node-2", transport.listener.Addr().String()); err == nil {
		t.Error("this node was taken for node-2")
	}
}

// TestTransport_OtherSecret: neither end of a connection gets to the hello if the other end has another secret or no
// certificate.
func TestTransport_OtherSecret(t *testing.T) {
	t.Parallel()
	c := valid()
	transport, _ := startTransport(t, c)
	other := c
	other.Secret = strings.ToUpper(testSecret)
	careless, anonymous := configOf(t, other), configOf(t, c)
	careless.InsecureSkipVerify, anonymous.Certificates = true, nil
	for name, config := range map[string]*tls.Config{"a server with another secret": configOf(t, other), "a client with another secret": careless, "no certificate": anonymous} {
		if h, err := greet(t, transport.listener.Addr().String(), config, hello{To: c.name()}, c); err == nil {
			t.Errorf("%s: greeted with %+v", name, h)
		}
	}
	impostor := configOf(t, other) // listens at the port of a stopped node, and takes every client
	impostor.ClientAuth = tls.NoClientCert
	listener, err := tls.Listen("tcp", freeAddresses(1)[0], impostor)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_ = conn.(*tls.Conn).Handshake()
		}
	}()
	var unknown *tls.CertificateVerificationError
	if _, err := transport.dial(t.Context(), "node-2", listener.Addr().String()); !errors.As(err, &unknown) {
		t.Errorf("an impostor: %v", err)
	}
}

// TestTransport_OwnClaim: a node that still has a connection of a process that was killed does not take the node's next
// process for one that refuses it.
func TestTransport_OwnClaim(t *testing.T) {
	t.Parallel()
	c := valid()
	c.Members[1].Address = freeAddresses(1)[0]
	transport, _ := startTransport(t, c)
	transport.mu.Lock()
	transport.open[tls.Client(new(net.TCPConn), nil)] = hello{Name: "node-2", Process: "killed"}
	transport.mu.Unlock()
	c.Node, c.Listen, c.Dir = 2, "", t.TempDir()
	next, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Close() }()
	if _, err := transport.dial(t.Context(), "node-2", c.Members[1].Address); err == nil || !strings.Contains(err.Error(), "another process of this node is connected") || errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
	if _, refusing := transport.acceptance(); refusing > 0 {
		t.Error("the next process counts as refusing")
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

// TestBootstrapMember chooses the member with a log, and none while a member is missing.
func TestBootstrapMember(t *testing.T) {
	config := valid()
	now := realClock()
	received := func(name string, record uint64, stream string) heartbeat {
		return heartbeat{ClusterNode: engine.ClusterNode{Name: name, Record: record, SeenAt: now}, Stream: stream}
	}
	late := received("node-3", 0, "")
	late.SeenAt = now.Add(-reachableWithin)
	for _, tt := range []struct {
		name, founder, words string
		received             []heartbeat
	}{
		{"empty", "node-1", "", []heartbeat{received("node-1", 0, ""), received("node-2", 0, ""), received("node-3", 0, "")}},
		{"one has records", "node-3", "", []heartbeat{received("node-1", 0, ""), received("node-2", 0, ""), received("node-3", 9, "")}},
		{"two have records", "", "node-2 and node-3", []heartbeat{received("node-1", 0, ""), received("node-2", 3, ""), received("node-3", 9, "")}},
		{"one is missing", "", "node-3 is not", []heartbeat{received("node-1", 0, ""), received("node-2", 0, "")}},
		{"one is late", "", "node-3 is not", []heartbeat{received("node-1", 0, ""), received("node-2", 0, ""), late}},
		{"one belongs elsewhere", "", "node-2 belongs to stream s", []heartbeat{received("node-1", 0, ""), received("node-2", 0, "s"), received("node-3", 0, "")}},
		{"another node does not count", "", "node-3 is not", []heartbeat{received("node-1", 0, ""), received("node-2", 0, ""), received("node-4", 0, "")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &peerTable{cluster: &Cluster{config: config}, byName: map[string]heartbeat{}}
			for _, h := range tt.received {
				r.byName[h.Name] = h
			}
			founder, err := r.bootstrapMember(config.Members)
			if founder != tt.founder || (err == nil) != (tt.words == "") || err != nil && !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%q, %v", founder, err)
			}
		})
	}
}

// TestLeaderChanging tells a leadership transfer from a lost majority.
func TestLeaderChanging(t *testing.T) {
	if !maybeTransferring("", leaderChangeMax-1) || maybeTransferring("", leaderChangeMax) || maybeTransferring("node-1", 0) {
		t.Error("no leader for a short time, for too long, or an unreachable leader is taken for another")
	}
}
