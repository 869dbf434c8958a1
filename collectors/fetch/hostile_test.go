package fetch

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
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
		w.rawTLS("bad.example.do", pours("HTTP/1.1 200 OK\r\n\r\n", bytes.Repeat([]byte("a"), 1<<20), 1024))
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
	kib := grown() >> 10
	t.Logf("the heap grew by %d KiB", kib)
	if kib > heapGrowthMax>>10 {
		t.Errorf("that is more than %d", heapGrowthMax>>10)
	}
}
