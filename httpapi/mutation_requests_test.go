//go:build faults

package httpapi

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// mutant is what a client sends, and the places where it pauses.
type mutant struct {
	request []byte
	cuts    []int
}

// mutationBases are good requests of every kind.
func mutationBases() [][]byte {
	const tail = " HTTP/1.1\r\nHost: api.example.do\r\n"
	session, key := bearer(testSession(100)), bearer(testKey(1))
	var bases [][]byte
	add := func(text string) { bases = append(bases, []byte(text)) }
	for _, target := range []string{
		"/v1/currencies", "/v1/institutions?currency=USD&limit=2&cursor=1", "/v1/institutions/bhd", "/v1/rates?currency=USD&limit=3&cursor=0",
		"/v1/rates/best?currency=USD&operation=buy", "/v1/rates/history?currency=USD&from=2025-11-10&to=2025-11-20&limit=5",
		"/v1/convert?currency=USD&operation=sell&amount=250.00", "/v1/institutions/%62hd", "/livez", "/readyz", "/",
	} {
		add("GET " + target + tail + "\r\n")
		add("GET " + target + tail + key + "\r\nAccept-Encoding: gzip, br;q=0.5\r\nIf-None-Match: W/\"a\", \"b\"\r\n\r\n")
		add("GET http://api.example.do" + target + tail + "X-Forwarded-For: 192.0.2.1, [2001:db8::1]:80\r\nConnection: close\r\n\r\n")
	}
	add("GET /v1/currencies HTTP/1.0\r\n\r\n")
	add("HEAD /v1/rates/best?currency=USD&operation=buy" + tail + "\r\n")
	add("OPTIONS /v1/rates" + tail + "Origin: https://a.example\r\nAccess-Control-Request-Method: GET\r\n\r\n")
	add("OPTIONS *" + tail + "\r\n")
	for _, e := range accountGood() {
		add(string(e.bytes()))
	}
	for _, body := range []string{anaBody, anaSession, `{"name":"n"}`} {
		add(fmt.Sprintf("POST %s%s%s\r\n%s\r\nTransfer-Encoding: chunked\r\n\r\n%x;a=b\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n",
			codesPath, tail, jsonLine, session, len(body), body))
	}
	return bases
}

// mutationWords are what requests are spoilt with.
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

// newMutant makes case number of a seed: one to four requests in a row, spoilt up to four times, cut into pieces.
func newMutant(seed, number uint64, bases [][]byte, words []string) mutant {
	random := rand.New(rand.NewPCG(seed, number))
	var m mutant
	for range 1 + random.IntN(4)*random.IntN(2) {
		m.request = append(m.request, bases[random.IntN(len(bases))]...)
	}
	for range random.IntN(5) {
		m.request = mutate(random, m.request, bases, words)
	}
	switch length := len(m.request); {
	case length == 0:
	case random.IntN(8) == 0: // at every byte
		for at := 1; at < length; at++ {
			m.cuts = append(m.cuts, at)
		}
	default:
		for range random.IntN(4) {
			m.cuts = append(m.cuts, random.IntN(length))
		}
		slices.Sort(m.cuts)
	}
	return m
}

// mutate spoils a request once.
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
