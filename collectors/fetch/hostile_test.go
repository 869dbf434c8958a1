package fetch

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// allocatedMax bounds all that a fetch may allocate, garbage too, which does not depend on how busy the machine is.
const allocatedMax = 16 << 20

func wantAllocated(t *testing.T, most uint64, work func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("%d bytes are allocated, want at most %d", used, most)
	}
}

type hostileServer struct {
	name   string
	kind   source.FailureKind
	says   string
	within time.Duration // of virtual time
	method source.Method // "" = HTMLFields
	listen func(w *testNetwork)
}

// slow upstreams keep a fetch until its limits, the others end it at once; only those that may heal are tried again.
const (
	untilBudget = 30 * time.Second
	threeTries  = 9 * time.Second // two waits of 2 s and 4 s, spread, and pauses
	atOnce      = time.Second
)

func hangs(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func says(text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = io.WriteString(conn, text)
		hangs(conn)
	}
}

// pours writes head and then filling, until the client disconnects or all is written.
func pours(head string, filling []byte, times int) func(net.Conn) {
	return func(conn net.Conn) {
		_, err := io.WriteString(conn, head)
		for range times {
			if err != nil {
				return
			}
			_, err = conn.Write(filling)
		}
	}
}

// bomb is 10 MB of gzip that unpack to 10 GB: one member of 10 MB zeros, a thousand times.
func bomb(t testing.TB) []byte {
	t.Helper()
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = writer.Write(make([]byte, 10<<20))
	if err := errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func onTLS(talk func(net.Conn)) func(*testNetwork) {
	return func(w *testNetwork) { w.rawTLS("bad.example.do", talk) }
}

func onPort(talk func(net.Conn)) func(*testNetwork) {
	return func(w *testNetwork) { w.raw("bad.example.do:443", talk) }
}

func onSite(handler http.HandlerFunc) func(*testNetwork) {
	return func(w *testNetwork) { w.site("bad.example.do", handler) }
}

// trickles writes a byte a second, for ever.
func trickles(head string) func(net.Conn) {
	return func(conn net.Conn) {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		_, err := io.WriteString(conn, head)
		for err == nil {
			<-ticker.C
			_, err = conn.Write([]byte("a"))
		}
	}
}

// TestD4_Hostile: the fetch ends in bounded time and memory with a failure that names the harm; another host is
// fetched meanwhile.
func TestD4_Hostile(t *testing.T) {
	for _, h := range hostileServers(t) {
		t.Run(h.name, func(t *testing.T) {
			wantAllocated(t, allocatedMax, func() { inBubble(t, h.check) })
		})
	}
}

func (h hostileServer) check(t *testing.T, w *testNetwork) {
	h.listen(w)
	w.site("good.example.do", text("58.90"))
	c, d := w.client(), getWithoutRobots("https://bad.example.do/")
	d.Pages[0].Extract.Method = cmp.Or(h.method, source.HTMLFields)
	good := make(chan time.Duration, 1)
	go func() {
		began := clock()
		_, err := c.Fetch(t.Context(), get("https://good.example.do/"), 0)
		if err != nil {
			t.Errorf("the other host: %v", err)
		}
		good <- clock().Sub(began)
	}()
	began := clock()
	wantFailure(t, c, d, h.kind, h.says)
	if took := clock().Sub(began); took > h.within {
		t.Errorf("took %v, at most %v", took, h.within)
	}
	if took := <-good; took > atOnce {
		t.Errorf("the other host took %v", took)
	}
}

// TestD4_Body: within the limit a body is whole, beyond it there is none; with cut its beginning is.
func TestD4_Body(t *testing.T) {
	for _, size := range []int{0, 1, smallBodyBytes, smallBodyBytes + 1, 1 << 18, 1<<20 - 1, 1 << 20, 1<<20 + 1} {
		for _, declared := range []int64{-1, int64(size)} {
			for _, cut := range []bool{false, true} {
				const limit = 1 << 20
				whole := bytes.Repeat([]byte("b"), size)
				body, err := readBody(smallReads{bytes.NewReader(whole)}, declared, limit, cut)
				switch {
				case size > limit && !cut:
					if err == nil {
						t.Errorf("%d bytes are taken, at most %d", size, limit)
					}
				case err != nil || !bytes.Equal(body, whole[:min(size, limit)]):
					t.Errorf("%d bytes (declared %d, cut %v): got %d, %v", size, declared, cut, len(body), err)
				case cap(body) > limit+2*smallBodyBytes:
					t.Errorf("%d bytes take room for %d", size, cap(body))
				}
			}
		}
	}
}

type smallReads struct{ io.Reader }

func (r smallReads) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1013)]) }

// hostileServers lists the upstreams of D4.
func hostileServers(t testing.TB) []hostileServer {
	return slices.Concat(silent(), floods(bomb(t)), broken(), elsewhere(), unbelieved())
}

const okHeader = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

func silent() []hostileServer {
	hang := func(name string, listen func(*testNetwork)) hostileServer {
		return hostileServer{name: name, kind: source.Timeout, within: untilBudget, listen: listen}
	}
	return []hostileServer{
		{name: "no listener", kind: source.Network, says: "refused", within: threeTries, listen: func(*testNetwork) {}},
		hang("hangs in the handshake", onPort(hangs)),
		hang("hangs before the header", onTLS(hangs)),
		hang("hangs in the header", onTLS(says("HTTP/1.1 200 OK\r\nContent-"))),
		hang("hangs in the body", onTLS(says(okHeader+"Content-Length: 100\r\n\r\nhalf"))),
		hang("trickles", onTLS(trickles(okHeader+"\r\n"))),
		hang("trickles its header", onTLS(trickles(""))),
		hang("reads nothing", onPort(func(conn net.Conn) {
			_ = conn.SetReadDeadline(clock().Add(time.Hour))
			<-time.NewTimer(time.Minute).C
		})),
	}
}

func floods(bomb []byte) []hostileServer {
	megabyte := bytes.Repeat([]byte("a"), 1<<20)
	tooMuch := func(name, says, head string, filling []byte, times int) hostileServer {
		return hostileServer{name: name, kind: source.WrongContent, says: says, within: atOnce, listen: onTLS(pours(head, filling, times))}
	}
	unreadable := func(name, says, head string, filling []byte, times int) hostileServer {
		return hostileServer{name: name, kind: source.Network, says: says, within: threeTries, listen: onTLS(pours(head, filling, times))}
	}
	const packed, plain = okHeader + "Content-Encoding: gzip\r\n\r\n", okHeader + "\r\n"
	workbook := tooMuch("1 GiB of a workbook", "10485760", "HTTP/1.1 200 OK\r\n\r\n", megabyte, 1024)
	workbook.method = source.XLSXRows
	return []hostileServer{
		workbook,
		tooMuch("1 GiB", "larger", plain, megabyte, 1024),
		tooMuch("1 GiB, as it says", "larger", okHeader+"Content-Length: 1073741824\r\n\r\n", nil, 0),
		tooMuch("gzip bomb", "larger", packed, bomb, 1000),
		tooMuch("another packing", "Content-Encoding br", okHeader+"Content-Encoding: br\r\n\r\n", []byte("x"), 1),
		unreadable("damaged gzip", "gzip", packed, []byte("not packed at all"), 1),
		unreadable("header flood", "header", "HTTP/1.1 200 OK\r\n", []byte("X-A: "+strings.Repeat("a", 1000)+"\r\n"), 1<<20),
		unreadable("a large header", "header", okHeader+strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 80)+"\r\n58.90", nil, 0),
		unreadable("flood of interim answers", "header", "", []byte("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), 1<<20),
		{name: "1 GiB of an error", kind: source.HTTPStatus, says: "404", within: atOnce,
			listen: onTLS(pours("HTTP/1.1 404 Not Found\r\n\r\n", megabyte, 1024))},
		{name: "half a gzip", kind: source.Network, says: "broke off", within: threeTries, listen: onTLS(pours(packed, bomb[:50], 1))},
	}
}

func broken() []hostileServer {
	ends := func(name, says string, listen func(*testNetwork)) hostileServer {
		return hostileServer{name: name, kind: source.Network, says: says, within: threeTries, listen: listen}
	}
	return []hostileServer{
		{name: "changes the protocol", kind: source.HTTPStatus, says: "101", within: atOnce,
			listen: onTLS(says("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello"))},
		{name: "a handshake refused", kind: source.TLS, says: "handshake failure", within: atOnce,
			listen: onPort(says("\x15\x03\x03\x00\x02\x02\x28"))},
		ends("reset in the handshake", "", onPort(func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })),
		ends("reset by the network in the handshake", "reset by peer", func(w *testNetwork) {
			w.raw("bad.example.do:443", hangs)
			w.resets = "bad.example.do:443"
		}),
		ends("half a handshake", "", onPort(pours("\x16\x03\x03\x00\x7a\x02", nil, 0))),
		ends("reset in the header", "", onTLS(pours("HTTP/1.1 200", nil, 0))),
		ends("reset in the middle", "broke off", onTLS(pours(okHeader+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello", nil, 0))),
		ends("length lie", "broke off", onTLS(pours(okHeader+"Content-Length: 100\r\n\r\nhalf", nil, 0))),
		ends("no HTTP", "", onTLS(pours("SSH-2.0-x\r\n\r\n", nil, 0))),
	}
}

func elsewhere() []hostileServer {
	away := func(name, says, location string) hostileServer {
		return hostileServer{name: "redirect " + name, kind: source.HTTPStatus, says: says, within: atOnce,
			listen: onSite(func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("Location", location)
				out.WriteHeader(http.StatusFound)
			})}
	}
	return []hostileServer{
		{name: "100 redirects", kind: source.HTTPStatus, says: "more than 5 redirects, the last one to https://bad.example.do/aaaaaa,", within: 5 * time.Second,
			listen: onSite(func(out http.ResponseWriter, r *http.Request) {
				http.Redirect(out, r, r.URL.Path+"a", http.StatusMovedPermanently)
			})},
		away("to another site", "https://other.com.do/x", "https://other.com.do/x"),
		away("without TLS", "from https to http", "http://bad.example.do/"),
		away("to another port", "port", "https://bad.example.do:22/"),
		away("to a file", "file:///etc/passwd", "file:///etc/passwd"),
		away("to nothing", "names no target", ""),
		away("to no address", "not a URL", "https://["),
	}
}

func unbelieved() []hostileServer {
	with := func(name, says string, issue func(w *testNetwork) tls.Certificate) hostileServer {
		return hostileServer{name: name, kind: source.TLS, says: says, within: atOnce,
			listen: func(w *testNetwork) { w.siteWith("bad.example.do", text("58.90"), issue(w)) }}
	}
	return []hostileServer{
		with("wrong name", "is valid for good.example.do", func(w *testNetwork) tls.Certificate { return w.authority.issue(w.t, "good.example.do") }),
		with("expired", "expired", func(w *testNetwork) tls.Certificate {
			return w.authority.issue(w.t, "bad.example.do", func(c *x509.Certificate) { c.NotAfter = c.NotBefore.AddDate(5, 0, 0) })
		}),
		with("self-signed", "unknown authority", func(w *testNetwork) tls.Certificate {
			return newAuthority(w.t, "self", nil).issue(w.t, "bad.example.do")
		}),
		{name: "plain HTTP on the port of TLS", kind: source.TLS, says: "TLS", within: atOnce,
			listen: func(w *testNetwork) { w.listen("bad.example.do:443", text("58.90"), nil) }},
		{name: "old TLS", kind: source.TLS, says: "protocol version", within: atOnce, listen: func(w *testNetwork) {
			certificates := []tls.Certificate{w.authority.issue(w.t, "bad.example.do")}
			w.listen("bad.example.do:443", text("58.90"), &tls.Config{
				Certificates: certificates, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
			})
		}},
	}
}
