package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

const plainReply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// repeated asks the same thing again and again, and counts.
type repeated struct {
	request string
	asked   uint64
}

func (r *repeated) next(dst []byte, _ *rand.Rand) []byte {
	r.asked++
	return append(dst, r.request...)
}

func simplest() *repeated { return &repeated{request: "GET / HTTP/1.1\r\nHost: x\r\n\r\n"} }

// serveFast runs a fasthttp server for the test, and returns its address.
func serveFast(t testing.TB, handler fasthttp.RequestHandler) string {
	t.Helper()
	listener := listen(t)
	server := &fasthttp.Server{Handler: handler, ReadTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second, Logger: quiet{}}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Errorf("shut the server down: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return listener.Addr().String()
}

// quiet is a log for servers whose connections are broken on purpose.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	return listener
}

// rawServer runs conversation on each connection, in its own goroutine, until it returns.
type rawServer struct {
	listener     net.Listener
	conversation func(conn *net.TCPConn)
	running      sync.WaitGroup
	mu           sync.Mutex
	open         []net.Conn
	ended        bool
}

func serveRaw(t testing.TB, conversation func(*net.TCPConn)) *rawServer {
	t.Helper()
	s := &rawServer{listener: listen(t), conversation: conversation}
	s.running.Go(s.accept)
	t.Cleanup(s.end)
	return s
}

func (s *rawServer) address() string { return s.listener.Addr().String() }

func (s *rawServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil || !s.keep(conn) {
			return
		}
		s.running.Go(func() {
			defer s.drop(conn)
			s.conversation(conn.(*net.TCPConn))
		})
	}
}

// keep remembers a connection, so that end can end it; after end it closes it.
func (s *rawServer) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		conn.Close()
		return false
	}
	s.open = append(s.open, conn)
	return true
}

func (s *rawServer) drop(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(kept net.Conn) bool { return kept == conn })
}

// end closes everything and waits for it. It may be called twice.
func (s *rawServer) end() {
	s.stop()
	s.running.Wait()
}

// stop is end for conversations, which can't wait for themselves.
func (s *rawServer) stop() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, conn := range s.open {
		conn.Close()
	}
}

// readRequest reads what simplest sends: one read, since it is one write and short.
func readRequest(conn net.Conn, buffer []byte) bool {
	n, err := conn.Read(buffer)
	return err == nil && n > 0
}

// answering is a conversation that answers each request with the same bytes.
func answering(reply string) func(*net.TCPConn) {
	return func(conn *net.TCPConn) {
		buffer, bytes := make([]byte, 1024), []byte(reply)
		for readRequest(conn, buffer) {
			if _, err := conn.Write(bytes); err != nil {
				return
			}
		}
	}
}

// silent is a conversation that answers nothing.
func silent(conn *net.TCPConn) { _, _ = io.Copy(io.Discard, conn) }

// misbehaviour is what a server may do with a request, besides answering it.
type misbehaviour func(conn *net.TCPConn) (goesOn bool)

func misbehaviours() []misbehaviour {
	say := func(goesOn bool, pieces ...string) misbehaviour {
		return func(conn *net.TCPConn) bool {
			for _, piece := range pieces {
				if _, err := io.WriteString(conn, piece); err != nil {
					return false
				}
			}
			return goesOn
		}
	}
	return []misbehaviour{
		say(true, plainReply[:9], plainReply[9:30], plainReply[30:]),
		say(false),
		say(false, plainReply[:20]),
		say(false, plainReply[:len(plainReply)-1]),
		say(true, "SSH-2.0-x\r\n\r\n"),
		say(true, plainReply+plainReply),
		say(true, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		say(true, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"),
		say(false, "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
		say(false, plainReply),                                           // closes a connection that says nothing of it
		func(conn *net.TCPConn) bool { return conn.SetLinger(0) != nil }, // then the connection is reset
		func(conn *net.TCPConn) bool { silent(conn); return false },
	}
}

// ignore takes errors of a load that has met nothing but misbehaviour.
func ignore(err error, these ...error) error {
	for _, this := range these {
		if errors.Is(err, this) {
			return nil
		}
	}
	return err
}
