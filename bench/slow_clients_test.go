//go:build faults && linux

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	slowClients = 10_000
	slowSpan    = 60 * time.Second // a closed client reconnects
	slowClosed  = 6 * time.Second
	slowP99     = 20 * time.Millisecond
	// slowMiB is the limit of the node's memory. Each client holds some 10 KiB of buffers and 4 to 8 KiB of stack.
	slowMiB  = 300
	goodRate = 200
	// slowInterval is how often a slow client sends another byte; the clients are divided into slowParts, which send
	// at different times.
	slowInterval = time.Second
	slowParts    = 50
	// slowArrival is how long it takes to open all of them.
	slowArrival = 4 * time.Second
)

// slowMethod is a way to keep a server waiting.
type slowMethod int

const (
	slowHeader slowMethod = iota
	slowBody
	slowRead
	slowMethods
)

// slowClient sends or reads hardly anything.
type slowClient struct {
	kind   slowMethod
	socket int
	opened time.Duration // when it began to be slow
	gone   bool
}

// slowClientSet is a set of slow clients, and their results.
type slowClientSet struct {
	target  unix.Sockaddr
	clients []slowClient
	began   time.Time
	closed  [slowMethods]int
	longest [slowMethods]time.Duration // until the server closed one
}

// raiseDescriptors raises this process's limit of file descriptors.
func raiseDescriptors(t *testing.T, wanted uint64) {
	t.Helper()
	var limit unix.Rlimit
	noError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	limit.Cur, limit.Max = max(limit.Cur, wanted), max(limit.Max, wanted)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Skipf("NEEDS %d descriptors: ulimit -n: %v", wanted, err)
	}
}

func (s *slowClientSet) now() time.Duration { return time.Since(s.began) }

// slowRequest is what a client sends first; slow readers request more than a socket buffers.
func slowRequest(kind slowMethod) string {
	switch kind {
	case slowHeader:
		return "GET /v1/currencies HTTP/1.1\r\nHost: a\r\nX-Slow: "
	case slowBody:
		return "POST /v1/account/codes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n{"
	}
	return strings.Repeat("GET /v1/rates?limit=200 HTTP/1.1\r\nHost: a\r\n\r\n", 5)
}

func (s *slowClientSet) open(number int) error {
	c := &s.clients[number]
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	if c.kind == slowRead { // small buffers, so that responses stay with the server
		_ = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUF, 2048)
	}
	_ = unix.SetsockoptInt(socket, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	source := &unix.SockaddrInet4{Addr: [4]byte{127, 9, byte(number / 100 / 250), byte(1 + number/100%250)}}
	if err := errors.Join(unix.Bind(socket, source), unix.Connect(socket, s.target), unix.SetNonblock(socket, true)); err != nil {
		_ = unix.Close(socket)
		return err
	}
	_, _ = unix.Write(socket, []byte(slowRequest(c.kind)))
	c.socket, c.opened, c.gone = socket, s.now(), false
	return nil
}

// tick lets the clients of one part send their next byte, and reopens those that the server has closed. A slow reader
// only checks whether the server has given up.
func (s *slowClientSet) tick(part int) error {
	for i := part; i < len(s.clients); i += slowParts {
		c := &s.clients[i]
		if c.kind != slowRead {
			_, _ = unix.Write(c.socket, []byte("x"))
		}
		if hasEnded(c.socket, c.kind) {
			s.closed[c.kind]++
			s.longest[c.kind] = max(s.longest[c.kind], s.now()-c.opened)
			_ = unix.Close(c.socket)
			c.gone = true
			if err := s.open(i); err != nil {
				return fmt.Errorf("client %d again: %w", i, err)
			}
		}
	}
	return nil
}

// hasEnded reports whether the server has closed a connection. For a slow reader the kernel knows before the
// responses are read.
func hasEnded(socket int, kind slowMethod) bool {
	if kind == slowRead {
		polled := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLRDHUP}}
		_, _ = unix.Poll(polled, 0)
		info, err := unix.GetsockoptTCPInfo(socket, unix.IPPROTO_TCP, unix.TCP_INFO)
		const established = 1
		return polled[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0 || err != nil || info.State != established
	}
	var room [512]byte
	for {
		n, err := unix.Read(socket, room[:])
		switch {
		case err != nil:
			return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
		case n == 0:
			return true
		}
	}
}

// TestFaultsO3_SlowClients runs ten thousand clients that send their headers or a body byte by byte, or do not read
// the response. All others are served as if these were absent, and each of them is closed in time. The control is a
// node without timeouts.
func TestFaultsO3_SlowClients(t *testing.T) {
	raiseDescriptors(t, 2*slowClients)
	f, err := newFixture(t.TempDir(), 10)
	noError(t, err)
	t.Run("node", func(t *testing.T) {
		slow, good, peak := loadBesideSlow(t, buildNode(t, ""), f, slowSpan)
		total := slow.closed[slowHeader] + slow.closed[slowBody] + slow.closed[slowRead]
		figure(t, "%d slow clients for %v, closed %d times (headers within %v, bodies %v, readers %v); others: %d of %d served, p99 %v, slowest %v; %d MiB",
			slowClients, slowSpan, total, slow.longest[slowHeader].Round(time.Millisecond), slow.longest[slowBody].Round(time.Millisecond),
			slow.longest[slowRead].Round(time.Millisecond), good.Statuses[200], good.Intended, p99Of(good), time.Duration(good.Latency.Max()).Round(time.Microsecond), peak)
		if good.Statuses[200] != good.Intended || p99Of(good) > slowP99 || peak > slowMiB {
			t.Errorf("want all served, p99 of %v, %d MiB", slowP99, slowMiB)
		}
		for kind := range slowMethods {
			if slow.closed[kind] < slowClients/int(slowMethods) || slow.longest[kind] > slowClosed+2*slowInterval {
				t.Errorf("kind %d: %d closed, the last after %v; want each within %v", kind, slow.closed[kind], slow.longest[kind], slowClosed)
			}
		}
	})
	t.Run("control", func(t *testing.T) {
		path := buildNode(t, "httpapi/server.go", "l.ReadTimeout), 5*time.Second)", "l.ReadTimeout), time.Hour)")
		slow, _, _ := loadBesideSlow(t, path, f, 2*slowClosed)
		figure(t, "control, no limit of time: %d of %d closed", slow.closed[slowHeader]+slow.closed[slowBody], slowClients)
		if slow.closed[slowHeader]+slow.closed[slowBody] > 0 {
			t.Error("clients are closed without the limit that is there for it")
		}
	})
}

// loadBesideSlow runs normal clients beside slow ones, which reconnect when they are closed.
func loadBesideSlow(t *testing.T, path string, f *fixture, span time.Duration) (*slowClientSet, *results, int) {
	t.Helper()
	found, err := startNode(t.Context(), path, f, anyCore, "--connections-per-address", "128")
	noError(t, err)
	defer found.kill() // slow clients may still be connected
	address := netip.MustParseAddrPort(found.address)
	target := &unix.SockaddrInet4{Addr: address.Addr().As4(), Port: int(address.Port())}
	s := &slowClientSet{target: target, clients: make([]slowClient, slowClients), began: time.Now()}
	defer s.close()
	noError(t, s.openAll())
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- s.tickUntil(stop) }()
	good := &generator{
		Address: found.address, Requests: newMix(benchHost, nil, mixes()[mixBest]), Connections: 20, Rate: goodRate, Subnet: 2, PerAddress: 1, Measure: span,
	}
	noError(t, good.run(t.Context()))
	peak := peakMemory(t, found)
	close(stop)
	noError(t, <-stopped)
	return s, &good.results, peak
}

// openAll opens all of them within slowArrival: they are slow, not a flood.
func (s *slowClientSet) openAll() error {
	ticker := time.NewTicker(slowArrival * slowParts / slowClients)
	defer ticker.Stop()
	for i := range s.clients {
		if i%slowParts == 0 {
			<-ticker.C
		}
		s.clients[i] = slowClient{kind: slowMethod(i) % slowMethods, socket: -1, gone: true}
		if err := s.open(i); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
	}
	return nil
}

// tickUntil ticks until stop.
func (s *slowClientSet) tickUntil(stop <-chan struct{}) error {
	ticker := time.NewTicker(slowInterval / slowParts)
	defer ticker.Stop()
	for part := 0; ; part = (part + 1) % slowParts {
		select {
		case <-stop:
			return nil
		case <-ticker.C:
		}
		if err := s.tick(part); err != nil {
			return err
		}
	}
}

func (s *slowClientSet) close() {
	for i := range s.clients {
		if !s.clients[i].gone && s.clients[i].socket >= 0 {
			_ = unix.Close(s.clients[i].socket)
		}
	}
}
