package rendered

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCache(t *testing.T) {
	start := time.Date(2026, time.January, 15, 12, 0, 0, 0, time.UTC)
	const entriesMax, bytesMax = 3, 100
	c := NewCache[string, int](entriesMax, bytesMax)
	builds := 0
	get := func(key string, after time.Duration, bytes int) (last int) {
		t.Helper()
		last = -1
		value, err := c.Get(key, start.Add(after), func(was int) (Kept[int], error) {
			last = was
			builds++
			return Kept[int]{builds, start.Add(after + time.Minute), bytes}, nil
		})
		if err != nil || value == 0 || len(c.entries) > entriesMax || c.bytes > bytesMax || len(c.entries) != c.byUse.Len() {
			t.Fatalf("%d, %v; %d values of %d bytes", value, err, len(c.entries), c.bytes)
		}
		return last
	}
	const kept = -1
	for i, step := range []struct {
		key   string
		after time.Duration
		bytes int
		want  int // the value that build gets, or kept
	}{
		{"a", 0, 10, 0}, {"a", time.Minute - 1, 10, kept},
		{"a", time.Minute, 10, 1},      // it has expired
		{"a", 59 * time.Second, 10, 2}, // the clock was set back
		{"b", 0, 10, 0}, {"c", 0, 10, 0}, {"a", 59 * time.Second, 0, kept},
		{"d", 0, 10, 0}, // drops b, which was not used for the longest time
		{"a", 59 * time.Second, 0, kept}, {"c", 0, 0, kept}, {"d", 0, 0, kept}, {"b", 0, 10, 0},
		{"c", 0, 90, kept}, {"c", time.Minute, 90, 5}, // drops d, then it fits
		{"b", 0, 0, kept},
		{"e", 0, 101, 0}, // larger than the cache: it drops all, itself too
		{"e", 0, 20, 0}, {"b", 0, 20, 0},
	} {
		if last := get(step.key, step.after, step.bytes); last != step.want {
			t.Fatalf("step %d: build got %d, want %d", i, last, step.want)
		}
	}
	failure := errors.New("no rates")
	if _, err := c.Get("e", start.Add(time.Hour), func(int) (Kept[int], error) { return Kept[int]{}, failure }); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	if last := get("e", time.Hour, 20); last <= 0 {
		t.Fatalf("after an error build got %d, want the value before it", last)
	}
}

// TestCache_Concurrent: requests at the same time make a value once.
func TestCache_Concurrent(t *testing.T) {
	c := NewCache[int, int](2, 10)
	var builds atomic.Int32
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			_, _ = c.Get(1, time.Unix(0, 0), func(int) (Kept[int], error) {
				builds.Add(1)
				return Kept[int]{1, time.Unix(1, 0), 1}, nil
			})
		})
	}
	group.Wait()
	if n := builds.Load(); n != 1 {
		t.Fatalf("made %d times", n)
	}
}

// TestBody_GzipEqualsPlain: whatever the body, its gzip form unpacks to it, before and after the time is changed. A
// connection may still write the last second's bodies, so they do not change. The ETag is that of the data.
func TestBody_GzipEqualsPlain(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		start := time.Date(2026, time.January, 15, 12, 0, 0, 0, time.UTC)
		head := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(r, "head")
		tail := rapid.SliceOfN(rapid.ByteMin(1), 0, 200).Draw(r, "tail")
		now := SecondOf(start)
		e := Encoded{append(append(bytes.Clone(head), now.Text[:]...), tail...), len(head)}
		if rapid.Bool().Draw(r, "undated") {
			e.GeneratedAt = NoGeneratedAt
		}
		page := New(e, &now)
		plainInFlight, gzipInFlight := page.version(&now).plain, page.compress(page.version(&now).plain)
		plainBefore, gzipBefore := bytes.Clone(plainInFlight), bytes.Clone(gzipInFlight)
		for step := range 3 {
			now := SecondOf(start.Add(time.Duration(step) * time.Second))
			plain := page.version(&now).plain
			unpacker, err := gzip.NewReader(bytes.NewReader(page.compress(plain)))
			if err != nil {
				r.Fatal(err)
			}
			if unpacked, err := io.ReadAll(unpacker); err != nil || !bytes.Equal(unpacked, plain) {
				r.Fatalf("second %d: gzip and plain differ: %v", step, err)
			}
			if e.GeneratedAt != NoGeneratedAt && !bytes.Equal(plain[len(head):len(head)+len(now.Text)], now.Text[:]) {
				r.Fatalf("second %d: the time is %s", step, plain[len(head):])
			}
			if same := (Encoded{plain, e.GeneratedAt}).ETag(); !bytes.Equal(same, page.ETag()) {
				r.Fatalf("second %d: the ETag is %s, want %s", step, same, page.ETag())
			}
		}
		if !bytes.Equal(plainInFlight, plainBefore) || !bytes.Equal(gzipInFlight, gzipBefore) {
			r.Fatal("a body in flight was changed")
		}
	})
}

// TestBody_Send: a page of 1,024 bytes is compressed, one of 1,023 is not; a 304 has no body, an error no ETag.
func TestBody_Send(t *testing.T) {
	send := func(b *Body, status int, match string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("If-None-Match", match)
		w.Header().Set("Content-Type", "text/html")
		b.Send(w, r, status)
		return w
	}
	for length, packed := range map[int]bool{1023: false, 1024: true} {
		b := Undated(bytes.Repeat([]byte("n"), length))
		for status, match := range map[int]string{200: "", 404: "*", 304: string(b.ETag())} {
			asked := status
			if status == 304 {
				asked = 200
			}
			w := send(b, asked, match)
			h := w.Header()
			if w.Code != status || (h.Get("Content-Encoding") == Gzip) != (packed && status != 304) || (h.Get("ETag") == "") != (status == 404) ||
				(w.Body.Len() == 0) != (status == 304) || h.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%d bytes, %d: %d with %d bytes, %v", length, status, w.Code, w.Body.Len(), h)
			}
		}
	}
}

// TestHoled: whatever fills the holes, the compressed body unpacks to the plain one.
func TestHoled(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringMatching(`[a-z"{},0-9ñ]{0,300}`)
		var body, other []byte
		var holes []Span
		shared := text.Draw(r, "shared")
		for range rapid.IntRange(0, 30).Draw(r, "holes") {
			piece := shared + text.Draw(r, "piece")
			body, other = append(body, piece...), append(other, piece...)
			n := rapid.IntRange(0, 60).Draw(r, "length")
			holes = append(holes, Span{len(body), len(body) + n})
			body = append(body, rapid.StringOfN(rapid.RuneFrom([]rune("0123456789.\"a")), n, n, -1).Draw(r, "a")...)
			other = append(other, rapid.StringOfN(rapid.RuneFrom([]rune("0123456789.\"a")), n, n, -1).Draw(r, "b")...)
		}
		body, other = append(body, shared...), append(other, shared...)
		packed := NewSplicedGzip(body, holes).Append(nil, other, holes)
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			r.Fatal(err)
		}
		if unpacked, err := io.ReadAll(reader); err != nil || !bytes.Equal(unpacked, other) {
			r.Fatalf("%q, want %q: %v", unpacked, other, err)
		}
	})
}
