package httpapi

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mutationSeed is printed; TASARD_SEED repeats a run.
func mutationSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(bubbleNow().UnixNano())
	if text := os.Getenv("TASARD_SEED"); text != "" {
		seed = must(strconv.ParseUint(text, 10, 64))
	}
	t.Logf("seed %d; TASARD_SEED=%d repeats it", seed, seed)
	return seed
}

func mutationWords() []string {
	return []string{
		"\r\n", "\n", "\r", "\r\n\r\n", "\x00", " ", "\t", ":", ",", ";", "/", "?", "#", "%", "%00", "%zz", "&", "=", "\x1b", "\x7f", "\xff", "\xe2\x80\xa8",
		"Content-Length: 5\r\n", "Content-Length: 0\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked\r\n",
		"Transfer-Encoding: identity\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n", "Connection: keep-alive\r\n", "Host: b\r\n",
		"Upgrade: h2c\r\n", "Authorization: Basic YQ==\r\n", " HTTP/1.1\r\n", "HTTP/2.0", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "0\r\n\r\n", "1\r\na\r\n",
		"ffffffffffffffff\r\n", "currency=", "limit=-1", "cursor=99999999999999999999", "amount=1e9", "from=0000-00-00", "{", "}", "\"", "[[", "\\u0000", "null",
		strings.Repeat("a", 300), strings.Repeat("X-A: b\r\n", 120), strings.Repeat("a", 9000),
	}
}

func mutate(random *rand.Rand, b []byte, bases [][]byte, words []string) []byte {
	if len(b) == 0 {
		return b
	}
	at := random.IntN(len(b))
	end := min(len(b), at+1+random.IntN(1+random.IntN(64)))
	switch random.IntN(9) {
	case 0: // a bit
		b[at] ^= 1 << random.IntN(8)
	case 1: // a byte
		b[at] = byte(random.IntN(256))
	case 2: // cut off
		b = b[:at]
	case 3: // something missing
		b = slices.Delete(b, at, end)
	case 4: // something twice
		b = slices.Insert(b, end, bytes.Clone(b[at:end])...)
	case 5, 6: // something that does not belong there
		b = slices.Insert(b, at, []byte(words[random.IntN(len(words))])...)
	case 7: // a line of another request
		lines := bytes.SplitAfter(bases[random.IntN(len(bases))], []byte("\r\n"))
		b = slices.Insert(b, at, lines[random.IntN(len(lines))]...)
	case 8: // two places exchanged
		other := random.IntN(len(b))
		b[at], b[other] = b[other], b[at]
	}
	return b
}
