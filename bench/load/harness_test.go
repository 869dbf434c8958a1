//go:build linux

package load

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sweep returns whole when SWEEP=whole asks for complete sweeps, as make check does, and sample otherwise.
func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

const plainReply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// fixedRequest sends the same request again and again, and counts.
type fixedRequest struct{ count uint64 }

func (r *fixedRequest) Next(dst []byte, _ *rand.Rand) []byte {
	r.count++
	return append(dst, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"...)
}

// serve runs a conversation on each connection, in its own goroutine, which ends with the connection.
func serve(t testing.TB, conversation func(net.Conn)) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				conversation(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return listener
}

// readRequest reads a request of fixedRequest: a single read, because it is one short write.
func readRequest(conn net.Conn, buffer []byte) bool {
	n, err := conn.Read(buffer)
	return err == nil && n > 0
}

// answering returns a conversation that sends the same response to each request.
func answering(reply string) func(net.Conn) {
	return func(conn net.Conn) {
		for buffer, reply := make([]byte, 1024), []byte(reply); readRequest(conn, buffer); {
			if _, err := conn.Write(reply); err != nil {
				return
			}
		}
	}
}

// silent is a conversation without responses.
func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
