package conn

import (
	"slices"
	"strings"
	"testing"
)

// framingRead is what a connection handed over in one read, and how many requests the library was done with behind it.
type framingRead struct {
	text string
	done int
}

const (
	framingGet   = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	framingLF    = "GET / HTTP/1.1\nHost: a\r\n\r\n"
	framingPost  = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{\n\n}"
	framingChunk = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// TestO6_Framing: each request gets its own verdict, whatever came with it and in whatever pieces.
func TestO6_Framing(t *testing.T) {
	tests := []struct {
		name  string
		reads []framingRead
		want  []string
	}{
		{"plain", []framingRead{{framingGet, 1}, {framingGet, 1}}, []string{"", ""}},
		{"bare LF", []framingRead{{framingLF, 1}}, []string{reasonLineEnd}},
		{"bare LF behind a good one", []framingRead{{framingGet + framingLF, 2}}, []string{"", reasonLineEnd}},
		{"bare LF in the next read", []framingRead{{framingGet, 1}, {framingLF, 1}}, []string{"", reasonLineEnd}},
		{"good behind a bare LF", []framingRead{{framingLF + framingGet, 2}}, []string{reasonLineEnd, reasonLineEnd}},
		{"LF in a body", []framingRead{{framingPost + framingGet, 2}}, []string{"", ""}},
		{"bare LF behind a body", []framingRead{{framingPost + framingLF, 2}}, []string{"", reasonLineEnd}},
		{"empty line first", []framingRead{{"\r\n" + framingGet, 1}}, []string{""}},
		{"bare empty line first", []framingRead{{"\n" + framingGet, 1}}, []string{reasonLineEnd}},
		{"bare empty line between", []framingRead{{framingGet + "\n" + framingGet, 2}}, []string{"", reasonLineEnd}},
		{"chunked", []framingRead{{framingChunk + "2;a=\"b\"\r\n{}\r\n0\r\nX: y\r\n\r\n" + framingGet, 2}}, []string{"", ""}},
		{"chunk with a blank", []framingRead{{framingChunk + "2 \r\n{}\r\n0\r\n\r\n", 1}}, []string{reasonChunk}},
		{"last chunk with a tab", []framingRead{{framingChunk + "2\r\n{}\r\n0\t\r\n\r\n", 1}}, []string{reasonChunk}},
		{"blank before the extension", []framingRead{{framingChunk + "2 ;a\r\n{}\r\n0\r\n\r\n", 1}}, []string{reasonChunk}},
		{"chunk with a bare LF", []framingRead{{framingChunk + "2\n{}\r\n0\r\n\r\n", 1}}, []string{reasonChunk}},
		{"chunk behind a good one", []framingRead{{framingGet + framingChunk + "2 \r\n{}\r\n0\r\n\r\n", 2}}, []string{"", reasonChunk}},
		{"endless extension", []framingRead{{framingChunk + "2;" + strings.Repeat("a", framingLineMax) + "\r\n{}\r\n0\r\n\r\n", 1}}, []string{reasonExtent}},
		{"the library is done too early", []framingRead{{framingPost[:len(framingPost)-1], 1}}, []string{reasonExtent}},
		{"and twice", []framingRead{{framingGet, 2}}, []string{"", reasonExtent}},
		{"two lengths", []framingRead{{"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 1}}, []string{reasonTwoLengths}},
		{"a length that is none", []framingRead{{"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 1}}, []string{reasonLength}},
		{"a length without end", []framingRead{{"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 1}}, []string{reasonLength}},
		{"another coding", []framingRead{{"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 1}}, []string{reasonCoding}},
	}
	for _, test := range tests {
		for _, step := range []int{0, 1, 2, 7} {
			if got := framingResults(test.reads, step); !slices.Equal(got, test.want) {
				t.Errorf("%s, %d bytes at a time: %q, want %q", test.name, step, got, test.want)
			}
		}
	}
}

// framingResults hands reads over, step bytes at a time (0: whole), and asks as often as the library was done.
func framingResults(reads []framingRead, step int) (verdicts []string) {
	var w framingCheck
	for _, read := range reads {
		pieces := [][]byte{[]byte(read.text)}
		if step > 0 {
			pieces = slices.Collect(slices.Chunk([]byte(read.text), step))
		}
		for i, piece := range pieces {
			if w.deferred != nil {
				w.parseDeferred()
			}
			w.observe(piece, i == 0)
		}
		for i := range read.done {
			w.requestParsed(i == 0 && len(pieces) == 1 && read.text == framingGet)
			verdicts = append(verdicts, w.rejection)
		}
	}
	return verdicts
}

// TestO6_FramingKeepsLittle: on the common way nothing is allocated, and a connection holds no line that is over.
func TestO6_FramingKeepsLittle(t *testing.T) {
	get, w := []byte(framingGet), framingCheck{}
	if n := testing.AllocsPerRun(100, func() {
		w.observe(get, true)
		w.requestParsed(true)
	}); n != 0 || w.partialLine != nil || w.rejection != "" {
		t.Errorf("%v allocations, %d bytes kept", n, cap(w.partialLine))
	}
	two := []byte(framingGet + framingPost)
	if n := testing.AllocsPerRun(100, func() {
		w.observe(two, true)
		w.requestParsed(false)
		w.requestParsed(false)
	}); n != 0 || w.rejection != "" {
		t.Errorf("%v allocations for two at once", n)
	}
}

// FuzzFraming: the pieces in which bytes come make no difference to what is said about each request.
func FuzzFraming(f *testing.F) {
	for _, text := range []string{framingGet, framingLF, framingPost + framingGet, framingChunk + "2;a=\"b\"\r\n{}\r\n0\r\nX: y\r\n\r\n" + framingGet, framingChunk + "2 \r\n{}\r\n0\r\n\r\n"} {
		f.Add([]byte(text), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, step uint8) {
		var whole, pieces framingCheck
		whole.parse(text)
		for piece := range slices.Chunk(text, int(step)+1) {
			pieces.parse(piece)
		}
		if whole.requestsEnded != pieces.requestsEnded || whole.faultyRequest != pieces.faultyRequest || whole.faultReason != pieces.faultReason || whole.state != pieces.state ||
			whole.bodyLeft != pieces.bodyLeft {
			t.Fatalf("%q: whole %+v, in pieces of %d %+v", text, whole, step+1, pieces)
		}
	})
}
