package fetch

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

const heapGrowthMax = 16 << 20

// hostile is an upstream that does harm.
type hostile struct {
	name    string
	kind    source.FailureKind
	says    string
	within  time.Duration // of virtual time
	address string        // "" = https://bad.example.do/
	listen  func(w *web)
}

func (h hostile) definition() *source.Definition {
	d := get("https://bad.example.do/")
	if h.address != "" {
		d = get(h.address)
	}
	d.IgnoreRobots = true
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

// floods writes head and then filling until nobody reads any more, or all of it is out.
func floods(head string, filling []byte, times int) func(net.Conn) {
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

// hostiles lists the upstreams of D4.
func hostiles(t testing.TB) []hostile {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	megabyte := bytes.Repeat([]byte("a"), 1<<20)
	return []hostile{
		{name: "nobody listens", kind: source.Network, says: "refused", within: threeTries, listen: func(*web) {}},
		{name: "hangs in the handshake", kind: source.Timeout, within: untilBudget, listen: onPort(hangs)},
		{name: "hangs before the header", kind: source.Timeout, within: untilBudget, listen: onTLS(hangs)},
		{name: "hangs in the header", kind: source.Timeout, within: untilBudget, listen: onTLS(says("HTTP/1.1 200 OK\r\nContent-"))},
		{name: "hangs in the body", kind: source.Timeout, within: untilBudget, listen: onTLS(says(ok + "Content-Length: 100\r\n\r\nhalf"))},
		{name: "trickles", kind: source.Timeout, within: untilBudget, listen: onTLS(trickles(ok + "\r\n"))},
		{name: "trickles its header", kind: source.Timeout, within: untilBudget, listen: onTLS(trickles(""))},
		{name: "reads nothing", kind: source.Timeout, within: untilBudget, listen: onPort(func(conn net.Conn) {
			_ = conn.SetReadDeadline(clock().Add(time.Hour))
			timer := time.NewTimer(time.Minute)
			defer timer.Stop()
			<-timer.C
		})},
		{name: "1 GiB", kind: source.WrongContent, says: "larger", within: atOnce, listen: onTLS(floods(ok+"\r\n", megabyte, 1024))},
		{name: "1 GiB, as it says", kind: source.WrongContent, says: "larger", within: atOnce,
			listen: onTLS(says(ok + "Content-Length: 1073741824\r\n\r\n"))},
		{name: "1 GiB of an error", kind: source.HTTPStatus, says: "404", within: atOnce,
			listen: onTLS(floods("HTTP/1.1 404 Not Found\r\n\r\n", megabyte, 1024))},
		{name: "gzip bomb", kind: source.WrongContent, says: "larger", within: atOnce,
			listen: onTLS(floods(ok+"Content-Encoding: gzip\r\n\r\n", bomb(t), 1000))},
		{name: "damaged gzip", kind: source.WrongContent, says: "gzip", within: atOnce,
			listen: onTLS(floods(ok+"Content-Encoding: gzip\r\n\r\n", []byte("not packed at all"), 1))},
		{name: "half a gzip", kind: source.Network, says: "broke off", within: threeTries,
			listen: onTLS(floods(ok+"Content-Encoding: gzip\r\n\r\n", bomb(t)[:50], 1))},
		{name: "another packing", kind: source.WrongContent, says: "packed as br", within: atOnce,
			listen: onTLS(floods(ok+"Content-Encoding: br\r\n\r\n", []byte("x"), 1))},
		{name: "header flood", kind: source.WrongContent, says: "header", within: atOnce,
			listen: onTLS(floods("HTTP/1.1 200 OK\r\n", []byte("X-A: "+strings.Repeat("a", 1000)+"\r\n"), 1<<20))},
		{name: "a large header", kind: source.WrongContent, says: "header", within: atOnce,
			listen: onTLS(floods(ok+strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 80)+"\r\n58.90", nil, 0))},
		{name: "flood of interim answers", kind: source.WrongContent, says: "header", within: atOnce,
			listen: onTLS(floods("", []byte("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), 1<<20))},
		{name: "reset in the handshake", kind: source.Network, within: threeTries,
			listen: onPort(func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })},
		{name: "half a handshake", kind: source.Network, within: threeTries, listen: onPort(floods("\x16\x03\x03\x00\x7a\x02", nil, 0))},
		{name: "a handshake refused", kind: source.TLS, says: "handshake failure", within: atOnce,
			listen: onPort(says("\x15\x03\x03\x00\x02\x02\x28"))},
		{name: "reset in the header", kind: source.Network, within: threeTries, listen: onTLS(floods("HTTP/1.1 200", nil, 0))},
		{name: "reset in the middle", kind: source.Network, says: "broke off", within: threeTries,
			listen: onTLS(floods(ok+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello", nil, 0))},
		{name: "length lie", kind: source.Network, says: "broke off", within: threeTries,
			listen: onTLS(floods(ok+"Content-Length: 100\r\n\r\nhalf", nil, 0))},
		{name: "no HTTP", kind: source.Network, within: threeTries, listen: onTLS(floods("SSH-2.0-x\r\n\r\n", nil, 0))},
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
			grown := watchHeap()
			defer wantHeap(t, grown)
			inBubble(t, func(t *testing.T, w *web) {
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
			})
		})
	}
}

// TestD4_Workbook: the largest limit, with a size that nobody says before, stays below the memory bound.
func TestD4_Workbook(t *testing.T) {
	grown := watchHeap()
	defer wantHeap(t, grown)
	inBubble(t, func(t *testing.T, w *web) {
		h := hostile{}
		w.rawTLS("bad.example.do", floods("HTTP/1.1 200 OK\r\n\r\n", bytes.Repeat([]byte("a"), 1<<20), 1024))
		d := h.definition()
		d.Pages[0].Extract.Method = source.XLSXRows
		wantFailure(t, w.client(), d, source.WrongContent, "10485760")
	})
}

// TestD4_Loopback: the same over sockets and on real time, with small limits.
func TestD4_Loopback(t *testing.T) {
	w := newWeb(t, loopback)
	w.site("good.example.do", text("58.90"))
	once := func(c *Config) { c.Pause, c.BudgetMax = -1, 1900*time.Millisecond } // too short for the wait before a second try
	quick := func(c *Config) { c.Pause, c.RequestMax, c.BudgetMax = -1, 200*time.Millisecond, 500*time.Millisecond }
	for _, h := range hostiles(t) {
		if h.name == "reads nothing" { // its server waits for a minute
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			h.listen(w)
			grown := watchHeap()
			defer wantHeap(t, grown)
			began := clock()
			limits := once
			if h.kind == source.Timeout {
				limits = quick
			}
			_, err := w.client(limits).Fetch(t.Context(), h.definition(), 0)
			if f, ok := asFailure(err); !ok || failureProblem(f, h.kind, h.says) != "" {
				t.Errorf("got %v, want %s that says %q", err, h.kind, h.says)
			}
			if took := clock().Sub(began); took > 5*time.Second { // the machine may be busy
				t.Errorf("took %v", took)
			}
			wantDocument(t, w.client(noPause), get("https://good.example.do/"), "58.90")
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.listening, "bad.example.do:443")
		})
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

// watchHeap gives a function that says by how much the heap has grown at most, as far as samples show. To be called outside of bubbles:
// in one, a watcher would stop the time or be stopped by it.
func watchHeap() func() uint64 {
	runtime.GC()
	before, peak := heapBytes(), uint64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			peak = max(peak, heapBytes())
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return peak - min(before, peak)
	}
}

// heapBytes is what objects take, the dead ones that wait for the collector included.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// wantHeap wants the heap to have grown within the bound.
func wantHeap(t *testing.T, grown func() uint64) {
	t.Helper()
	if bytes := grown(); bytes > heapGrowthMax {
		t.Errorf("the heap grew by %d KiB, at most %d", bytes>>10, heapGrowthMax>>10)
	}
}
