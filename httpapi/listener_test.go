package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

// scriptedListener gives the errors of its script in turn, nil standing for a
// connection, then connections for ever; after Close only net.ErrClosed.
type scriptedListener struct {
	mu     sync.Mutex
	script []error
	calls  int
	closed bool
}

func (l *scriptedListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
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

func (l *scriptedListener) Addr() net.Addr { return &net.TCPAddr{} }

// pauses records the pauses and makes none.
type pauses struct{ list []time.Duration }

func (p *pauses) after(d time.Duration) <-chan time.Time {
	p.list = append(p.list, d)
	over := make(chan time.Time)
	close(over)
	return over
}

func repeatErrors(n int, err error) []error {
	script := make([]error, n)
	for i := range script {
		script[i] = err
	}
	return script
}

// TestO4_AcceptRetries: n errors, then a connection. The control is the bare
// listener, whose first Accept fails.
func TestO4_AcceptRetries(t *testing.T) {
	const ms = time.Millisecond
	doubling := []time.Duration{5 * ms, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, time.Second, time.Second}
	tests := []struct {
		err   syscall.Errno
		short bool
	}{
		{syscall.EMFILE, true},
		{syscall.ENFILE, true},
		{syscall.ENOBUFS, true},
		{syscall.ENOMEM, true},
		{syscall.ECONNABORTED, false},
		{syscall.EPROTO, false},
		{syscall.EPERM, false},
		{syscall.EHOSTUNREACH, false},
	}
	for _, test := range tests {
		t.Run(test.err.Error(), func(t *testing.T) {
			if _, err := (&scriptedListener{script: repeatErrors(1, test.err)}).Accept(); !errors.Is(err, test.err) {
				t.Fatalf("control: the bare listener gives %v", err)
			}
			var p pauses
			var text bytes.Buffer
			log := slog.New(slog.NewTextHandler(&text, nil))
			ln := Patient(&scriptedListener{script: repeatErrors(len(doubling), test.err)}, Patience{Log: log, After: p.after})
			if _, err := ln.Accept(); err != nil {
				t.Fatalf("accept: %v", err)
			}
			if len(p.list) != len(doubling) {
				t.Fatalf("%d pauses, want %d", len(p.list), len(doubling))
			}
			for i, pause := range p.list {
				if want := doubling[i]; test.short && pause != want || !test.short && pause != 5*ms {
					t.Errorf("pause %d is %v, want %v", i+1, pause, want)
				}
			}
			if lines := strings.Count(text.String(), "\n"); lines != 1 || !strings.Contains(text.String(), test.err.Error()) {
				t.Errorf("%d lines, want 1 that names the error:\n%s", lines, text.String())
			}
		})
	}
}

// TestO4_OneLineForAnEpisode: errors between successes are one episode; it
// ends after a run of successes, and the next error opens another.
func TestO4_OneLineForAnEpisode(t *testing.T) {
	var script []error
	for range 100 {
		script = append(script, syscall.EMFILE, nil, syscall.EMFILE, nil, nil)
	}
	script = append(script, repeatErrors(acceptCalm, nil)...)
	script = append(script, syscall.ENFILE, nil)
	conns := 3*100 + acceptCalm + 1
	var p pauses
	var text bytes.Buffer
	ln := Patient(&scriptedListener{script: script}, Patience{Log: slog.New(slog.NewTextHandler(&text, nil)), After: p.after})
	for range conns {
		conn, err := ln.Accept()
		if err != nil {
			t.Fatalf("accept: %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(p.list) != 201 || len(lines) != 3 {
		t.Fatalf("%d errors met, %d lines, want 201 and 3:\n%s", len(p.list), len(lines), text.String())
	}
	if !strings.Contains(lines[1], "errors=200") || !strings.Contains(lines[2], "too many open files in system") {
		t.Errorf("lines:\n%s", text.String())
	}
}

// TestO4_OtherErrorsEnd: patience is not for everything, and a failed Accept
// keeps no place under the cap.
func TestO4_OtherErrorsEnd(t *testing.T) {
	for _, want := range []error{syscall.EBADF, syscall.EINVAL, net.ErrClosed, io.EOF} {
		var p pauses
		ln := Patient(&scriptedListener{script: repeatErrors(3, want)}, Patience{MaxConns: 1, After: p.after})
		for range 3 {
			if _, err := ln.Accept(); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if _, err := ln.Accept(); err != nil || len(p.list) != 0 {
			t.Errorf("after three times %v: %v, %d pauses", want, err, len(p.list))
		}
	}
}

// TestO4_CloseEndsAccept wherever it waits: in a pause, at the cap, or inside
// the listener below.
func TestO4_CloseEndsAccept(t *testing.T) {
	never := func(time.Duration) <-chan time.Time { return nil }
	tests := []struct {
		name   string
		script []error
		held   int
	}{
		{"in a pause", []error{syscall.EMFILE}, 0},
		{"at the cap", nil, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ln := Patient(&scriptedListener{script: test.script}, Patience{MaxConns: 1, After: never})
				for range test.held {
					if _, err := ln.Accept(); err != nil {
						t.Fatalf("accept: %v", err)
					}
				}
				ended := make(chan error, 1)
				go func() {
					_, err := ln.Accept()
					ended <- err
				}()
				synctest.Wait()
				if len(ended) != 0 {
					t.Fatalf("Accept did not wait: %v", <-ended)
				}
				for range 2 {
					if err := ln.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				}
				if err := <-ended; !errors.Is(err, net.ErrClosed) {
					t.Errorf("got %v, want %v", err, net.ErrClosed)
				}
				if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
					t.Errorf("after Close: got %v, want %v", err, net.ErrClosed)
				}
			})
		})
	}
}

// TestO1_CapHoldsAcceptBack: at the cap the listener below is not asked; one
// Close lets one in, a second Close of the same connection nobody.
func TestO1_CapHoldsAcceptBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &scriptedListener{}
		ln := Patient(below, Patience{MaxConns: 2})
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
			if below.calls != calls {
				t.Fatalf("%d connections taken, want %d", below.calls, calls)
			}
		}
		expect(2)
		first, second := <-accepted, <-accepted
		closeTwice(t, first)
		expect(3)
		closeTwice(t, second)
		expect(4)
		if err := ln.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		synctest.Wait()
	})
}

func closeTwice(t *testing.T, conn net.Conn) {
	t.Helper()
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// TestO1_CapOverTCP: sixty clients through three places; all are served, never
// more than three at a time. Control: with a place for each, all are in at once.
func TestO1_CapOverTCP(t *testing.T) {
	const clients, places = 60, 3
	if most := mostOpen(t, places, clients); most > places {
		t.Errorf("%d connections open at once, want at most %d", most, places)
	}
	if most := mostOpen(t, clients, clients); most != clients {
		t.Errorf("control: only %d connections open at once", most)
	}
}

// mostOpen serves so many clients at once and returns the largest number of
// connections that were open together. A handler lingers until the house is
// full, so that the number is reached and not left to luck.
func mostOpen(t *testing.T, places, clients int) int64 {
	t.Helper()
	var open, most atomic.Int64
	full := make(chan struct{})
	server := &fasthttp.Server{
		Handler: func(*fasthttp.RequestCtx) { <-full },
		ConnState: func(_ net.Conn, state fasthttp.ConnState) {
			if state != fasthttp.StateNew {
				return
			}
			if n := open.Add(1); n > most.Load() {
				most.Store(n) // ConnState(StateNew) comes from one goroutine
				if n == int64(places) {
					close(full)
				}
			}
		},
		CloseOnShutdown: true,
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	counted := &countingListener{Listener: ln, open: &open}
	served := make(chan error, 1)
	go func() { served <- server.Serve(Patient(counted, Patience{MaxConns: places})) }()
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			if status, err := askOnce(ln.Addr().String()); status != http.StatusOK {
				t.Errorf("got %d, %v", status, err)
			}
		})
	}
	group.Wait()
	if err := server.Shutdown(); err != nil {
		t.Errorf("shut down: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	return most.Load()
}

// countingListener counts a connection down when it is closed, before its
// place is free again.
type countingListener struct {
	net.Listener
	open *atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: conn, open: l.open}, nil
}

type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// askOnce sends one request on a connection of its own.
func askOnce(address string) (int, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	timer := time.AfterFunc(rawPatience, func() { conn.Close() })
	defer timer.Stop()
	if _, err := io.WriteString(conn, rawProbe); err != nil {
		return 0, err
	}
	answer, err := readRawAnswer(bufio.NewReader(conn), false)
	return answer.status, err
}

// TestPatientKeepsTCP: the server finds the methods that it looks for, and a
// closed TCP connection gives its place back.
func TestPatientKeepsTCP(t *testing.T) {
	below, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	ln := Patient(below, Patience{MaxConns: 1})
	timer := time.AfterFunc(rawPatience, func() { ln.Close() }) // a lost place would hang
	defer timer.Stop()
	defer ln.Close()
	for range 3 {
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatalf("dial: %v", err)
		}
		defer client.Close()
		conn, err := ln.Accept()
		if err != nil {
			t.Fatalf("accept: %v", err)
		}
		tcp, ok := conn.(interface {
			SetKeepAlive(bool) error
			SetKeepAlivePeriod(time.Duration) error
		})
		if !ok {
			t.Fatalf("%T can not be kept alive", conn)
		}
		if err := tcp.SetKeepAlive(true); err != nil {
			t.Errorf("set keep-alive: %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// The test below starts its own binary again as a server with few descriptors.
const (
	starvedVariable = "TASARD_TEST_STARVED"
	starvedFiles    = 64
	starvedClients  = 200
)

// TestO4_RealShortage: 200 connections to a process with 64 descriptors. It
// lives, says so once, and serves again when they are gone. Control: the same
// server on the bare listener ends.
func TestO4_RealShortage(t *testing.T) {
	t.Run("patient", func(t *testing.T) {
		child := startStarved(t, "patient")
		conns := child.crowd(t)
		if len(conns) != starvedClients {
			t.Fatalf("%d of %d connections", len(conns), starvedClients)
		}
		if line := <-child.lines; !strings.Contains(line, "too many open files") {
			t.Fatalf("the shortage never came: %q", line)
		}
		for _, conn := range conns {
			conn.Close()
		}
		if status, err := askOnce(child.address); status != http.StatusOK {
			t.Fatalf("after the shortage: %d, %v", status, err)
		}
		if err := child.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		for line := range child.lines {
			if strings.Contains(line, "held up") {
				t.Errorf("a second line: %q", line)
			}
		}
	})
	t.Run("control", func(t *testing.T) {
		child := startStarved(t, "bare")
		for _, conn := range child.crowd(t) {
			defer conn.Close()
		}
		for range child.lines {
			continue // until the process ends by itself
		}
		if err := child.command.Wait(); err == nil {
			t.Error("the bare listener survived the shortage: this test proves nothing")
		}
	})
}

// starvedChild is the server process.
type starvedChild struct {
	command *exec.Cmd
	input   io.Closer
	address string
	lines   chan string // what it writes after its address, until it ends
}

// startStarved starts the server process and reads its address.
func startStarved(t *testing.T, listener string) *starvedChild {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestStarvedServer$", "-test.v")
	command.Env = append(os.Environ(), starvedVariable+"="+listener)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatalf("pipe: %v", err)
	}
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatalf("pipe: %v", err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	child := &starvedChild{command: command, input: input, lines: make(chan string, 1000)}
	go func() {
		defer close(child.lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			child.lines <- scanner.Text()
		}
	}()
	address, found := strings.CutPrefix(<-child.lines, "serving ")
	if !found {
		t.Fatalf("the server process gave no address: %q", address)
	}
	child.address = address
	return child
}

// crowd opens more connections than the process has descriptors. The kernel
// takes them all, as long as the process lives.
func (c *starvedChild) crowd(t *testing.T) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, 0, starvedClients)
	for range starvedClients {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			break
		}
		conns = append(conns, conn)
	}
	if len(conns) <= starvedFiles/2 {
		t.Fatalf("only %d connections", len(conns))
	}
	return conns
}

// stop ends the process in good order.
func (c *starvedChild) stop() error {
	if err := c.input.Close(); err != nil {
		return err
	}
	return c.command.Wait()
}

// TestStarvedServer is no test: it is the server process of
// TestO4_RealShortage, which ends when its input does.
func TestStarvedServer(t *testing.T) {
	listener := os.Getenv(starvedVariable)
	if listener == "" {
		t.Skip("only as the server process of TestO4_RealShortage")
	}
	limit := syscall.Rlimit{Cur: starvedFiles, Max: starvedFiles}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatalf("limit the descriptors: %v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	if _, err := io.WriteString(os.Stderr, "serving "+ln.Addr().String()+"\n"); err != nil {
		t.Fatalf("write the address: %v", err)
	}
	if listener == "patient" {
		ln = Patient(ln, Patience{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	}
	server := rawServer(guarded)
	go func() {
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			t.Errorf("wait for the end of the input: %v", err)
		}
		if err := server.Shutdown(); err != nil {
			t.Errorf("shut down: %v", err)
		}
	}()
	if err := server.Serve(ln); err != nil {
		t.Fatalf("serve: %v", err)
	}
}
