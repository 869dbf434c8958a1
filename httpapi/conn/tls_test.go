package conn

import (
	"net"
	"testing"
)

// TestTLS_LeavesAtOnce: a client that takes nothing does not hold up the end.
func TestTLS_LeavesAtOnce(t *testing.T) {
	ln := listen(t)
	defer ln.Close()
	dial(t, ln.Addr().String())
	near, full := must(ln.Accept()).(*net.TCPConn), make([]byte, 1<<20)
	defer near.Close()
	b := &tlsTransport{lazyDeadlines: &lazyDeadlines{Conn: near}, tcp: near}
	b.closing.Store(true)
	for {
		if _, err := b.Write(full); err != nil {
			break // the kernel takes no more, and says so instead of waiting
		}
	}
	if _, err := b.Write([]byte("goodbye")); err == nil {
		t.Error("a full connection took more")
	}
}
