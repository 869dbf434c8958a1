package conn

import (
	"slices"
	"strings"
	"testing"
)

// wireRead is what a connection handed over in one read, and how many requests the library was done with behind it.
type wireRead struct {
	text string
	done int
}

const (
	wireGet   = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	wireLF    = "GET / HTTP/1.1\nHost: a\r\n\r\n"
	wirePost  = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{\n\n}"
	wireChunk = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// TestO6_Wire: each request gets its own verdict, whatever came with it and in whatever pieces.
func TestO6_Wire(t *testing.T) {
	tests := []struct {
		name  string
		reads []wireRead
		want  []string
	}{
		{"plain", []wireRead{{wireGet, 1}, {wireGet, 1}}, []string{"", ""}},
		{"bare LF", []wireRead{{wireLF, 1}}, []string{refusedLineEnd}},
		{"bare LF behind a good one", []wireRead{{wireGet + wireLF, 2}}, []string{"", refusedLineEnd}},
		{"bare LF in the next read", []wireRead{{wireGet, 1}, {wireLF, 1}}, []string{"", refusedLineEnd}},
		{"good behind a bare LF", []wireRead{{wireLF + wireGet, 2}}, []string{refusedLineEnd, refusedLineEnd}},
		{"LF in a body", []wireRead{{wirePost + wireGet, 2}}, []string{"", ""}},
		{"bare LF behind a body", []wireRead{{wirePost + wireLF, 2}}, []string{"", refusedLineEnd}},
		{"empty line first", []wireRead{{"\r\n" + wireGet, 1}}, []string{""}},
		{"bare empty line first", []wireRead{{"\n" + wireGet, 1}}, []string{refusedLineEnd}},
		{"bare empty line between", []wireRead{{wireGet + "\n" + wireGet, 2}}, []string{"", refusedLineEnd}},
		{"chunked", []wireRead{{wireChunk + "2;a=\"b\"\r\n{}\r\n0\r\nX: y\r\n\r\n" + wireGet, 2}}, []string{"", ""}},
		{"chunk with a blank", []wireRead{{wireChunk + "2 \r\n{}\r\n0\r\n\r\n", 1}}, []string{refusedChunk}},
		{"last chunk with a tab", []wireRead{{wireChunk + "2\r\n{}\r\n0\t\r\n\r\n", 1}}, []string{refusedChunk}},
		{"blank before the extension", []wireRead{{wireChunk + "2 ;a\r\n{}\r\n0\r\n\r\n", 1}}, []string{refusedChunk}},
		{"chunk with a bare LF", []wireRead{{wireChunk + "2\n{}\r\n0\r\n\r\n", 1}}, []string{refusedChunk}},
		{"chunk behind a good one", []wireRead{{wireGet + wireChunk + "2 \r\n{}\r\n0\r\n\r\n", 2}}, []string{"", refusedChunk}},
		{"endless extension", []wireRead{{wireChunk + "2;" + strings.Repeat("a", wireLineMax) + "\r\n{}\r\n0\r\n\r\n", 1}}, []string{refusedExtent}},
		{"the library is done too early", []wireRead{{wirePost[:len(wirePost)-1], 1}}, []string{refusedExtent}},
		{"and twice", []wireRead{{wireGet, 2}}, []string{"", refusedExtent}},
		{"two lengths", []wireRead{{"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 1}}, []string{refusedTwoLengths}},
		{"a length that is none", []wireRead{{"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 1}}, []string{refusedLength}},
		{"a length without end", []wireRead{{"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 1}}, []string{refusedLength}},
		{"another coding", []wireRead{{"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 1}}, []string{refusedCoding}},
	}
	for _, test := range tests {
		for _, step := range []int{0, 1, 2, 7} {
			if got := wireVerdicts(test.reads, step); !slices.Equal(got, test.want) {
				t.Errorf("%s, %d bytes at a time: %q, want %q", test.name, step, got, test.want)
			}
		}
	}
}

// wireVerdicts hands reads over, step bytes at a time (0: whole), and asks as often as the library was done.
func wireVerdicts(reads []wireRead, step int) (verdicts []string) {
	var w wire
	for _, read := range reads {
		pieces := [][]byte{[]byte(read.text)}
		if step > 0 {
			pieces = slices.Collect(slices.Chunk([]byte(read.text), step))
		}
		for i, piece := range pieces {
			if w.unread != nil {
				w.catchUp()
			}
			w.received(piece, i == 0)
		}
		for i := range read.done {
			w.begin(i == 0 && len(pieces) == 1 && read.text == wireGet)
			verdicts = append(verdicts, w.refused)
		}
	}
	return verdicts
}

// TestO6_WireKeepsLittle: on the common way nothing is allocated, and a connection holds no line that is over.
func TestO6_WireKeepsLittle(t *testing.T) {
	get, w := []byte(wireGet), wire{}
	if n := testing.AllocsPerRun(100, func() {
		w.received(get, true)
		w.begin(true)
	}); n != 0 || w.line != nil || w.refused != "" {
		t.Errorf("%v allocations, %d bytes kept", n, cap(w.line))
	}
	two := []byte(wireGet + wirePost)
	if n := testing.AllocsPerRun(100, func() {
		w.received(two, true)
		w.begin(false)
		w.begin(false)
	}); n != 0 || w.refused != "" {
		t.Errorf("%v allocations for two at once", n)
	}
}

// FuzzWire: the pieces in which bytes come make no difference to what is said about each request.
func FuzzWire(f *testing.F) {
	for _, text := range []string{wireGet, wireLF, wirePost + wireGet, wireChunk + "2;a=\"b\"\r\n{}\r\n0\r\nX: y\r\n\r\n" + wireGet, wireChunk + "2 \r\n{}\r\n0\r\n\r\n"} {
		f.Add([]byte(text), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, step uint8) {
		var whole, pieces wire
		whole.follow(text)
		for piece := range slices.Chunk(text, int(step)+1) {
			pieces.follow(piece)
		}
		if whole.ended != pieces.ended || whole.fault != pieces.fault || whole.sentence != pieces.sentence || whole.state != pieces.state ||
			whole.left != pieces.left {
			t.Fatalf("%q: whole %+v, in pieces of %d %+v", text, whole, step+1, pieces)
		}
	})
}
