package conn

import "testing"

// TestP5_OneByteBehindIsSeen: after such a request, a single byte would make its length match.
func TestP5_OneByteBehindIsSeen(t *testing.T) {
	for read, want := range map[string]bool{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n":     true,
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nG":    false,
		"GET / HTTP/1.1\nHost: a\r\n\r\n":       false,
		"GET / HTTP/1.1\nHost: a\r\n\r\nG":      false,
		"GET / HTTP/1.1\nHost: a\r\n\r\n\n":     false,
		"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n": false,
	} {
		g := &Conn{transport: transport{lazyDeadlines: lazyDeadlines{Conn: &rawConn{in: []byte(read)}}}}
		must(g.Read(make([]byte, 1<<10)))
		if g.BeginRequest(len("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); g.onlyInRead != want {
			t.Errorf("%q: only is %t", read, g.onlyInRead)
		}
	}
}
