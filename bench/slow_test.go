//go:build faults && linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	slowClients = 10_000
	slowSpan    = 60 * time.Second // each client is opened anew when it was closed
	slowClosed  = 6 * time.Second
	slowP99     = 20 * time.Millisecond
	// slowMiB is what the node may take in all. A client that takes nothing of its answers holds some 25 KiB of buffers; the others sleep.
	slowMiB  = 300
	goodRate = 200
	// slowBeat is how often a slow client sends another byte.
	slowBeat = time.Second
	// slowArrival is how long it takes until all of them are there: they are slow, and no flood.
	slowArrival = 4 * time.Second
)

// slowKinds are the ways to keep a server waiting, by what a client sends at first: a header or a body byte by byte, or requests for so
// much that no socket takes the answers in, which are never read.
func slowKinds() []string {
	return []string{
		"GET /v1/currencies HTTP/1.1\r\nHost: a\r\nX-Slow: ",
		"POST /v1/account/codes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n{",
		strings.Repeat("GET /v1/rates?limit=200 HTTP/1.1\r\nHost: a\r\n\r\n", 5),
	}
}

const slowReader = 2 // the kind that reads nothing

// slowCrowd are slow clients, and what became of those of each kind.
type slowCrowd struct {
	address string
	running sync.WaitGroup
	mu      sync.Mutex
	closed  [3]int
	longest [3]time.Duration // until the server closed one
	failed  atomic.Int64     // clients that could not come
}

// raiseDescriptors lets this process have as many as the test needs.
func raiseDescriptors(t *testing.T, wanted uint64) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur, limit.Max = max(limit.Cur, wanted), max(limit.Max, wanted)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Skipf("NEEDS %d descriptors: ulimit -n: %v", wanted, err)
	}
}

// client is slow until the context ends; when the server closes its connection it comes again.
func (s *slowCrowd) client(ctx context.Context, number int) {
	kind := number % len(slowKinds())
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, byte(number/100/250), byte(1+number/100%250))}}
	if kind == slowReader { // little room, so that answers stay with the server
		dialer.Control = func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 2048) })
		}
	}
	for ctx.Err() == nil {
		conn, err := dialer.DialContext(ctx, "tcp", s.address)
		if err != nil {
			s.failed.Add(1) // or it is the end
			return
		}
		opened := time.Now()
		_ = write(conn, slowKinds()[kind])
		for ctx.Err() == nil && !closedBy(ctx, conn.(*net.TCPConn), kind) {
		}
		conn.Close()
		s.mu.Lock()
		if ctx.Err() == nil {
			s.closed[kind]++
			s.longest[kind] = max(s.longest[kind], time.Since(opened))
		}
		s.mu.Unlock()
		waitBeat(ctx) // not a flood
	}
}

func waitBeat(ctx context.Context) {
	select {
	case <-time.NewTimer(slowBeat).C:
	case <-ctx.Done():
	}
}

// closedBy waits for a beat, in which the server may end the connection. Of a slow reader the kernel knows it before the answers are read.
func closedBy(ctx context.Context, conn *net.TCPConn, kind int) (closed bool) {
	if kind != slowReader {
		_ = conn.SetReadDeadline(time.Now().Add(slowBeat))
		_, err := conn.Read(make([]byte, 512))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err != nil
		}
		return !write(conn, "x")
	}
	waitBeat(ctx)
	raw, _ := conn.SyscallConn() // it is open
	_ = raw.Control(func(fd uintptr) {
		const established = 1
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		closed = err != nil || info.State != established
	})
	return closed
}

// TestFaultsO3_SlowClients: ten thousand that send their headers, or a body, byte by byte, or read nothing of what they asked for. All
// others are served as if they were not there, and each of them is closed in time. The control is a node that has all the time in the world.
func TestFaultsO3_SlowClients(t *testing.T) {
	raiseDescriptors(t, 2*slowClients)
	f, err := newFixture(t.TempDir(), fixtureSize{institutions: 50, currencies: 4, accounts: 10, days: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("node", func(t *testing.T) {
		slow, good, peak := besideSlow(t, buildNode(t, "", "", ""), f, slowSpan)
		figure(t, "%d slow clients for %v, closed %v times (headers, bodies, readers), the last after %v; others: %s, slowest %v; %d MiB",
			slowClients, slowSpan, slow.closed, slow.longest, &good.found, time.Duration(good.found.latency.Max()).Round(time.Microsecond), peak)
		if good.found.served != good.found.intended || good.found.quantile(99) > slowP99 || peak > slowMiB {
			t.Errorf("want all served, p99 of %v, %d MiB", slowP99, slowMiB)
		}
		for kind := range slow.closed {
			if slow.closed[kind] < slowClients/3 || slow.longest[kind] > slowClosed+2*slowBeat {
				t.Errorf("kind %d: %d closed, the last after %v; want each within %v", kind, slow.closed[kind], slow.longest[kind], slowClosed)
			}
		}
	})
	t.Run("control", func(t *testing.T) {
		path := buildNode(t, "httpapi/server.go", "readTimeoutDefault      = 5 * time.Second", "readTimeoutDefault = time.Hour")
		slow, _, _ := besideSlow(t, path, f, 2*slowClosed)
		figure(t, "control, no limit of time: %v of %d closed", slow.closed, slowClients)
		if slow.closed[0]+slow.closed[1] > 0 {
			t.Error("clients are closed without the limit that is there for it")
		}
	})
}

// besideSlow has good requests made while slow clients are there.
func besideSlow(t *testing.T, path string, f *fixture, span time.Duration) (*slowCrowd, *group, int) {
	t.Helper()
	node := newNode(path, f, "--connections-per-address", "128")
	node.program.env = []string{fmt.Sprintf("GOMAXPROCS=%d", runtime.NumCPU())} // it is not measured against others: it may have what there is
	found, err := node.start(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	defer node.kill() // slow clients may be there still
	s := &slowCrowd{address: found.address}
	ctx, cancel := context.WithCancel(t.Context())
	arrivals := time.NewTicker(slowArrival / slowClients)
	defer arrivals.Stop()
	for i := range slowClients {
		<-arrivals.C
		s.running.Go(func() { s.client(ctx, i) })
	}
	good := &group{name: "good", asker: asking(t, nil), connections: 20, rate: goodRate, net: 2, perAddress: 1}
	runCrowd(t, found.address, span, time.Second, good)
	peak := peakMemory(t, found.processes[0])
	if failed := s.failed.Load(); failed > 0 {
		t.Errorf("%d slow clients could not come", failed)
	}
	cancel()
	s.running.Wait()
	return s, good, peak
}
