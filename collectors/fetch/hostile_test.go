package fetch

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
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

// allocatedMax bounds all that a fetch may allocate, garbage too: no measure of it depends on how busy the machine is.
const allocatedMax = 16 << 20

// wantAllocated runs something and wants it to allocate little.
func wantAllocated(t *testing.T, work func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > allocatedMax {
		t.Errorf("%d bytes are allocated, want at most %d", used, allocatedMax)
	}
}

// hostile is an upstream that does harm.
type hostile struct {
	name    string
	kind    source.FailureKind
	says    string
	within  time.Duration // of virtual time
	address string        // "" = https://bad.example.do/
	method  source.Method // "" = HTMLFields
	listen  func(w *web)
}

func (h hostile) definition() *source.Definition {
	d := get("https://bad.example.do/")
	if h.address != "" {
		d = get(h.address)
	}
	d.IgnoreRobots = true
	d.Pages[0].Extract.Method = cmp.Or(h.method, source.HTMLFields)
	return d
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

// pours writes head and then filling until nobody reads any more, or all of it is out.
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
	if _, err := writer.Write(make([]byte, 10<<20)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func onTLS(talk func(net.Conn)) func(*web) { return func(w *web) { w.rawTLS("bad.example.do", talk) } }

func onPort(talk func(net.Conn)) func(*web) {
	return func(w *web) { w.raw("bad.example.do:443", talk) }
}

func onSite(handler http.HandlerFunc) func(*web) {
	return func(w *web) { w.site("bad.example.do", handler) }
}

func withCertificate(issue func(w *web) tls.Certificate) func(*web) {
	return func(w *web) { w.siteWith("bad.example.do", text("58.90"), issue(w)) }
}

func redirectTo(location string) func(*web) {
	return onSite(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Location", location)
		out.WriteHeader(http.StatusFound)
	})
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

// TestD4_Hostile: whatever an upstream does, the fetch ends in bounded time and memory with a failure that names it, and another host
// is fetched meanwhile as if nothing were.
func TestD4_Hostile(t *testing.T) {
	for _, h := range hostiles(t) {
		t.Run(h.name, func(t *testing.T) {
			wantAllocated(t, func() { inBubble(t, h.check) })
		})
	}
}

func (h hostile) check(t *testing.T, w *web) {
	h.listen(w)
	w.site("good.example.do", text("58.90"))
	c, d := w.client(), h.definition()
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
	for _, size := range []int{0, 1, firstBytes - 1, firstBytes, firstBytes + 1, 4*firstBytes + 4, 1 << 20, 1<<20 + 1} {
		for _, declared := range []int64{-1, int64(size)} {
			for _, cut := range []bool{false, true} {
				const limit = 1 << 20
				whole := bytes.Repeat([]byte("b"), size)
				body, err := readBody(pieces{bytes.NewReader(whole)}, declared, limit, cut)
				switch {
				case size > limit && !cut:
					if err == nil {
						t.Errorf("%d bytes are taken, at most %d", size, limit)
					}
				case err != nil || !bytes.Equal(body, whole[:min(size, limit)]):
					t.Errorf("%d bytes (declared %d, cut %v): got %d, %v", size, declared, cut, len(body), err)
				case cap(body) > limit+1:
					t.Errorf("%d bytes take room for %d", size, cap(body))
				}
			}
		}
	}
}

// pieces reads in small, uneven pieces.
type pieces struct{ io.Reader }

func (r pieces) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1013)]) }

// hostiles lists the upstreams of D4.
func hostiles(t testing.TB) []hostile {
	return slices.Concat(silent(), floods(bomb(t)), broken(bomb(t)), elsewhere(), unbelieved())
}

const okHeader = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

// silent upstreams say nothing, or too slowly.
func silent() []hostile {
	return []hostile{
		{name: "nobody listens", kind: source.Network, says: "refused", within: threeTries, listen: func(*web) {}},
		{name: "hangs in the handshake", kind: source.Timeout, within: untilBudget, listen: onPort(hangs)},
		{name: "hangs before the header", kind: source.Timeout, within: untilBudget, listen: onTLS(hangs)},
		{name: "hangs in the header", kind: source.Timeout, within: untilBudget, listen: onTLS(says("HTTP/1.1 200 OK\r\nContent-"))},
		{name: "hangs in the body", kind: source.Timeout, within: untilBudget, listen: onTLS(says(okHeader + "Content-Length: 100\r\n\r\nhalf"))},
		{name: "trickles", kind: source.Timeout, within: untilBudget, listen: onTLS(trickles(okHeader + "\r\n"))},
		{name: "trickles its header", kind: source.Timeout, within: untilBudget, listen: onTLS(trickles(""))},
		{name: "reads nothing", kind: source.Timeout, within: untilBudget, listen: onPort(func(conn net.Conn) {
			_ = conn.SetReadDeadline(clock().Add(time.Hour))
			timer := time.NewTimer(time.Minute)
			defer timer.Stop()
			<-timer.C
		})},
	}
}

// floods are upstreams that say too much.
func floods(bomb []byte) []hostile {
	megabyte := bytes.Repeat([]byte("a"), 1<<20)
	return []hostile{
		{name: "1 GiB", kind: source.WrongContent, says: "larger", within: atOnce, listen: onTLS(pours(okHeader+"\r\n", megabyte, 1024))},
		{name: "1 GiB of a workbook", kind: source.WrongContent, says: "10485760", within: atOnce, method: source.XLSXRows,
			listen: onTLS(pours("HTTP/1.1 200 OK\r\n\r\n", megabyte, 1024))},
		{name: "1 GiB, as it says", kind: source.WrongContent, says: "larger", within: atOnce,
			listen: onTLS(says(okHeader + "Content-Length: 1073741824\r\n\r\n"))},
		{name: "1 GiB of an error", kind: source.HTTPStatus, says: "404", within: atOnce,
			listen: onTLS(pours("HTTP/1.1 404 Not Found\r\n\r\n", megabyte, 1024))},
		{name: "gzip bomb", kind: source.WrongContent, says: "larger", within: atOnce,
			listen: onTLS(pours(okHeader+"Content-Encoding: gzip\r\n\r\n", bomb, 1000))},
		{name: "damaged gzip", kind: source.WrongContent, says: "gzip", within: atOnce,
			listen: onTLS(pours(okHeader+"Content-Encoding: gzip\r\n\r\n", []byte("not packed at all"), 1))},
		{name: "half a gzip", kind: source.Network, says: "broke off", within: threeTries,
			listen: onTLS(pours(okHeader+"Content-Encoding: gzip\r\n\r\n", bomb[:50], 1))},
		{name: "another packing", kind: source.WrongContent, says: "packed as br", within: atOnce,
			listen: onTLS(pours(okHeader+"Content-Encoding: br\r\n\r\n", []byte("x"), 1))},
		{name: "header flood", kind: source.WrongContent, says: "header", within: atOnce,
			listen: onTLS(pours("HTTP/1.1 200 OK\r\n", []byte("X-A: "+strings.Repeat("a", 1000)+"\r\n"), 1<<20))},
		{name: "a large header", kind: source.WrongContent, says: "header", within: atOnce,
			listen: onTLS(pours(okHeader+strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 80)+"\r\n58.90", nil, 0))},
		{name: "flood of interim answers", kind: source.WrongContent, says: "header", within: atOnce,
			listen: onTLS(pours("", []byte("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), 1<<20))},
	}
}

// broken upstreams end too early, or say what is no answer.
func broken(bomb []byte) []hostile {
	return []hostile{
		{name: "changes the protocol", kind: source.HTTPStatus, says: "101", within: atOnce,
			listen: onTLS(says("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello"))},
		{name: "reset in the handshake", kind: source.Network, within: threeTries,
			listen: onPort(func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })},
		{name: "reset by the network in the handshake", kind: source.Network, says: "reset by peer", within: threeTries, listen: func(w *web) {
			w.raw("bad.example.do:443", hangs)
			w.resets = "bad.example.do:443"
		}},
		{name: "half a handshake", kind: source.Network, within: threeTries, listen: onPort(pours("\x16\x03\x03\x00\x7a\x02", nil, 0))},
		{name: "a handshake refused", kind: source.TLS, says: "handshake failure", within: atOnce,
			listen: onPort(says("\x15\x03\x03\x00\x02\x02\x28"))},
		{name: "reset in the header", kind: source.Network, within: threeTries, listen: onTLS(pours("HTTP/1.1 200", nil, 0))},
		{name: "reset in the middle", kind: source.Network, says: "broke off", within: threeTries,
			listen: onTLS(pours(okHeader+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello", nil, 0))},
		{name: "length lie", kind: source.Network, says: "broke off", within: threeTries,
			listen: onTLS(pours(okHeader+"Content-Length: 100\r\n\r\nhalf", nil, 0))},
		{name: "no HTTP", kind: source.Network, within: threeTries, listen: onTLS(pours("SSH-2.0-x\r\n\r\n", nil, 0))},
	}
}

// elsewhere are upstreams that send us away.
func elsewhere() []hostile {
	return []hostile{
		{name: "100 redirects", kind: source.HTTPStatus, says: "more than 5 redirects", within: 5 * time.Second,
			listen: onSite(func(out http.ResponseWriter, r *http.Request) {
				var n int
				_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
				http.Redirect(out, r, fmt.Sprintf("/%d", n+1), http.StatusMovedPermanently)
			})},
		{name: "redirect to another site", kind: source.HTTPStatus, says: "https://other.com.do/x", within: atOnce,
			listen: redirectTo("https://other.com.do/x")},
		{name: "redirect to a neighbour below a public suffix", kind: source.HTTPStatus, says: "another site", within: atOnce,
			address: "https://bad.com.do/", listen: func(w *web) {
				w.site("bad.com.do", func(out http.ResponseWriter, r *http.Request) {
					http.Redirect(out, r, "https://evil.com.do/", http.StatusFound)
				})
			}},
		{name: "redirect without TLS", kind: source.HTTPStatus, says: "from https to http", within: atOnce,
			listen: redirectTo("http://bad.example.do/")},
		{name: "redirect to another port", kind: source.HTTPStatus, says: "port", within: atOnce, listen: redirectTo("https://bad.example.do:22/")},
		{name: "redirect to a file", kind: source.HTTPStatus, says: "file:///etc/passwd", within: atOnce, listen: redirectTo("file:///etc/passwd")},
		{name: "redirect to nothing", kind: source.HTTPStatus, says: "names no target", within: atOnce, listen: redirectTo("")},
		{name: "redirect to no address", kind: source.HTTPStatus, says: "no address", within: atOnce, listen: redirectTo("https://[")},
	}
}

// unbelieved upstreams are not who they say they are.
func unbelieved() []hostile {
	return []hostile{
		{name: "wrong name", kind: source.TLS, says: "wrong name", within: atOnce,
			listen: withCertificate(func(w *web) tls.Certificate { return w.authority.issue(w.t, "good.example.do") })},
		{name: "expired", kind: source.TLS, says: "expired", within: atOnce, listen: withCertificate(func(w *web) tls.Certificate {
			return w.authority.issue(w.t, "bad.example.do", func(c *x509.Certificate) { c.NotAfter = c.NotBefore.AddDate(5, 0, 0) })
		})},
		{name: "self-signed", kind: source.TLS, says: "unknown authority", within: atOnce,
			listen: withCertificate(func(w *web) tls.Certificate { return newAuthority(w.t, "self", nil).issue(w.t, "bad.example.do") })},
		{name: "plain HTTP on the port of TLS", kind: source.TLS, says: "TLS", within: atOnce,
			listen: func(w *web) { w.listen("bad.example.do:443", text("58.90"), nil) }},
		{name: "old TLS", kind: source.TLS, says: "protocol version", within: atOnce, listen: func(w *web) {
			w.listen("bad.example.do:443", text("58.90"), &tls.Config{
				Certificates: []tls.Certificate{w.authority.issue(w.t, "bad.example.do")},
				MinVersion:   tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
			})
		}},
	}
}
