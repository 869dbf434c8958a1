package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// scriptedListener gives the errors of its script in turn, nil for a connection, then connections; after Close
// net.ErrClosed.
type scriptedListener struct {
	net.Listener
	mu     sync.Mutex
	script []error
	calls  []time.Time
	closed bool
}

func (l *scriptedListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, time.Now()) //nolint:forbidigo // the time of a bubble
	if l.closed {
		return nil, net.ErrClosed
	}
	if len(l.script) > 0 {
		err := l.script[0]
		l.script = l.script[1:]
		if err != nil {
			return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
		}
	}
	return &rawConn{}, nil
}

func (l *scriptedListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// pauses returns the times between calls of Accept.
func (l *scriptedListener) pauses() (all []time.Duration) {
	for i := 1; i < len(l.calls); i++ {
		all = append(all, l.calls[i].Sub(l.calls[i-1]))
	}
	return all
}

// TestO4_AcceptRetries: temporary errors are retried, others returned. Control: the bare listener fails.
func TestO4_AcceptRetries(t *testing.T) { synctest.Test(t, testAcceptRetries) }

func testAcceptRetries(t *testing.T) {
	const ms = time.Millisecond
	doubling := []time.Duration{5 * ms, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, time.Second, time.Second}
	same := slices.Repeat([]time.Duration{5 * ms}, len(doubling))
	for want, wanted := range map[error][]time.Duration{
		syscall.EMFILE: doubling, syscall.ENFILE: doubling, syscall.ENOBUFS: doubling, syscall.ENOMEM: doubling,
		syscall.ECONNABORTED: same, syscall.EPROTO: same, syscall.EPERM: same, syscall.EHOSTUNREACH: same,
	} {
		if _, err := (&scriptedListener{script: []error{want}}).Accept(); !errors.Is(err, want) {
			t.Fatalf("control: the bare listener gives %v", err)
		}
		var text bytes.Buffer
		below := &scriptedListener{script: slices.Repeat([]error{want}, len(doubling))}
		must(Listen(below, Config{MaxConns: 100, Log: logTo(&text)}).Accept())
		if got := below.pauses(); !slices.Equal(got, wanted) {
			t.Errorf("%v: pauses %v, want %v", want, got, wanted)
		}
		if lines := strings.Count(text.String(), "\n"); lines != 1 || !strings.Contains(text.String(), want.Error()) {
			t.Errorf("%d lines, want 1 that names the error:\n%s", lines, text.String())
		}
	}
	for _, want := range []error{syscall.EBADF, syscall.EINVAL, net.ErrClosed, io.EOF} {
		below := &scriptedListener{script: slices.Repeat([]error{want}, 3)}
		ln := Listen(below, Config{MaxConns: 1})
		for range 3 {
			if _, err := ln.Accept(); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if _, err := ln.Accept(); err != nil || slices.Max(below.pauses()) > 0 {
			t.Errorf("after three times %v: %v, pauses %v", want, err, below.pauses())
		}
	}
}

// TestO4_OneLineAMinute: the next line tells of all errors since the last.
func TestO4_OneLineAMinute(t *testing.T) {
	var e eventLog
	for i, step := range []struct {
		now  time.Duration
		want int
	}{{0, 1}, {0, 0}, {logInterval - 1, 0}, {logInterval, 3}, {2*logInterval - 1, 0}, {5 * logInterval, 2}} {
		if got := e.count(step.now); got != step.want {
			t.Errorf("step %d: %d events, want %d", i, got, step.want)
		}
	}
}

// TestO4_CloseEndsAccept wherever it waits: in a pause, or at the cap.
func TestO4_CloseEndsAccept(t *testing.T) {
	for name, script := range map[string][]error{"in a pause": {syscall.EMFILE}, "at the cap": nil} {
		synctest.Test(t, func(t *testing.T) {
			ln := Listen(&scriptedListener{script: script}, Config{MaxConns: 1})
			if script == nil {
				must(ln.Accept())
			}
			ended := make(chan error, 1)
			go func() {
				_, err := ln.Accept()
				ended <- err
			}()
			synctest.Wait()
			if len(ended) != 0 {
				t.Fatalf("%s: Accept did not wait: %v", name, <-ended)
			}
			_ = ln.Close()
			ok(t, ln.Close())
			_, err := ln.Accept()
			for _, err := range []error{<-ended, err} {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("%s: got %v, want %v", name, err, net.ErrClosed)
				}
			}
		})
	}
}

// TestO1_CapHoldsAcceptBack: at the cap one connection waits, and the listener below is not asked for more; one Close
// lets one in, a second Close none.
func TestO1_CapHoldsAcceptBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &scriptedListener{}
		ln := Listen(below, Config{MaxConns: 2})
		accepted := make(chan net.Conn, 10)
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					close(accepted)
					return
				}
				accepted <- conn
			}
		}()
		expect := func(calls int) {
			t.Helper()
			synctest.Wait()
			below.mu.Lock()
			defer below.mu.Unlock()
			if len(below.calls) != calls {
				t.Fatalf("%d connections taken, want %d", len(below.calls), calls)
			}
		}
		expect(3)
		first, second := <-accepted, <-accepted
		for i, conn := range []net.Conn{first, second} {
			ok(t, conn.Close())
			ok(t, conn.Close())
			expect(4 + i)
		}
		ok(t, ln.Close())
		synctest.Wait()
	})
}

// blockingConn is a connection whose Close blocks, as that of TLS does while it sends its alert to a peer that does
// not read.
type blockingConn struct{ net.Conn }

func (*blockingConn) Close() error { select {} }

// TestO5_EvictionBelowTLS: a newcomer takes the place of an idle connection whose peer does not read. Without that,
// Accept never returns here.
func TestO5_EvictionBelowTLS(t *testing.T) {
	below := must(net.Listen("tcp", "127.0.0.1:0"))
	ln := Listen(below, Config{MaxConns: 1})
	accept := func() *Conn {
		client := must(net.Dial("tcp", below.Addr().String()))
		t.Cleanup(func() { client.Close() })
		return must(ln.Accept()).(*Conn)
	}
	idle, ended := accept(), make(chan error, 1)
	idle.Conn = &blockingConn{idle.Conn}
	go func() {
		_, err := idle.Read(make([]byte, 1))
		ended <- err
	}()
	newcomer := accept()
	if err := <-ended; err == nil {
		t.Error("the idle connection goes on")
	}
	ok(t, newcomer.Close())
	ok(t, ln.Close())
}

// TestO3_SendBuffer: the kernel keeps no more than sendBufferBytes for a client that does not read.
func TestO3_SendBuffer(t *testing.T) {
	below := must(net.Listen("tcp", "127.0.0.1:0"))
	ln := Listen(below, Config{MaxConns: 1})
	client := must(net.Dial("tcp", below.Addr().String()))
	defer client.Close()
	served := must(ln.Accept()).(*Conn)
	ok(t, must(served.tcp.SyscallConn()).Control(func(fd uintptr) {
		if got := must(syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)); got > 2*sendBufferBytes { // Linux doubles it
			t.Errorf("the send buffer has %d bytes", got)
		}
	}))
	ok(t, served.Close())
	ok(t, ln.Close())
}

// TestO5_OneClient: how many of 200 connections from each of some addresses stay open.
func TestO5_OneClient(t *testing.T) {
	proxy := func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.2") }
	for name, c := range map[string]struct {
		limit, maxConns int
		exempt          func(netip.Addr) bool
		sources         []string
		kept            int
	}{
		"IPv4, two addresses":           {128, 16384, nil, []string{"127.0.0.2", "127.0.0.3"}, 2 * 128},
		"IPv4, a fifth of 200":          {128, 200, nil, []string{"127.0.0.2"}, 40},
		"IPv6, two addresses of a /64":  {128, 16384, nil, []string{"2001:db8:1::1", "2001:db8:1::2"}, 128},
		"IPv6, zones of one address":    {128, 16384, nil, []string{"fe80::1%a", "fe80::1%b"}, 128},
		"IPv6, two networks":            {128, 16384, nil, []string{"2001:db8:1::1", "2001:db8:2::1"}, 2 * 128},
		"a trusted proxy":               {128, 16384, proxy, []string{"127.0.0.2", "127.0.0.3"}, 200 + 128},
		"no limit":                      {0, 16384, nil, []string{"127.0.0.2", "127.0.0.3"}, 400},
		"no limit, as for a bare field": {-1, 16384, nil, []string{"127.0.0.2"}, 200},
	} {
		l, kept := newClientLimit(c.limit, c.maxConns, c.exempt), 0
		for range 2 { // as many again when all have left
			var open []netip.Addr
			for _, source := range c.sources {
				for range 200 {
					if key := l.keyOf(netip.MustParseAddr(source)); l.acquire(key) {
						open = append(open, key)
					}
				}
			}
			kept = len(open)
			for _, key := range open {
				l.release(key)
			}
		}
		if kept != c.kept || len(l.open) > 0 {
			t.Errorf("%s: %d connections stay open, want %d; %d clients are still counted", name, kept, c.kept, len(l.open))
		}
	}
}
