//go:build faults

package httpapi

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
)

// TestFaultsO3_WaitingHoldsLittle: a client that is slow with its first request costs little; one that has asked
// before, as a control, two buffers of the library.
func TestFaultsO3_WaitingHoldsLittle(t *testing.T) {
	const many = 200
	for name, one := range map[string]struct {
		said string
		most int
	}{
		"head": {"GET /v1/currencies HTTP/1.1\r\nX-", 6 << 10},
		"body": {"POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n{", 6 << 10},
		"idle": {"GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n", 20 << 10},
	} {
		held := heldBy(t, many, one.said)
		t.Logf("%s: %d bytes each", name, held)
		if held > one.most || held < one.most/2 {
			t.Errorf("%s: %d bytes each, want up to %d, and half of that at least", name, held, one.most)
		}
	}
}

// TestFaultsO3_LargeBodiesAreNotKept: a connection holds as much behind a large body as behind a small one.
func TestFaultsO3_LargeBodiesAreNotKept(t *testing.T) {
	const many, most = 200, 1 << 10
	post := func(length int) string {
		return fmt.Sprintf("POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", length+4, strings.Repeat("x", length))
	}
	if small, large := heldBy(t, many, post(0)), heldBy(t, many, post(4000)); large-small > most {
		t.Errorf("%d bytes each behind a large body, %d behind a small one", large, small)
	}
}

// heldBy is how many bytes of the heap each of so many connections holds that say something and then no more; the
// least of three tries.
func heldBy(t *testing.T, many int, said string) int {
	t.Helper()
	least := 1 << 30
	for range 3 {
		server := newStaticServer(t)
		server.config.Limits.ConnsPerClient = -1
		s := serveServer(t, server)
		before := heap()
		var conns []net.Conn
		for range many {
			conn := dial(t, s.address)
			conns = append(conns, conn)
			write(t, conn, said)
			if strings.HasSuffix(said, "\r\n\r\n") {
				must(conn.Read(make([]byte, 64<<10)))
			}
		}
		eventually(t, func() bool { return server.http.GetOpenConnectionsCount() >= int32(many) })
		least = min(least, (heap()-before)/many)
		for _, conn := range conns {
			conn.Close()
		}
		s.stop(t)
	}
	return least
}

func heap() int {
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
