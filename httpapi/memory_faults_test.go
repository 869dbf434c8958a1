//go:build faults

package httpapi

import (
	"net"
	"runtime"
	"strings"
	"testing"
)

// TestFaultsO3_WaitingHoldsLittle: a client costs some buffers of the library, whether it is slow with its request or
// idle behind one.
func TestFaultsO3_WaitingHoldsLittle(t *testing.T) {
	const many, most = 200, 14 << 10
	for name, said := range map[string]string{
		"head": "GET /v1/currencies HTTP/1.1\r\nX-", "body": "POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n{",
		"idle": "GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		held := heldBy(t, many, said)
		t.Logf("%s: %d bytes each", name, held)
		if held > most || held < most/4 {
			t.Errorf("%s: %d bytes each, want up to %d, and a fourth of that at least", name, held, most)
		}
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
