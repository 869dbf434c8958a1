package rendered

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"pgregory.net/rapid"
)

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
