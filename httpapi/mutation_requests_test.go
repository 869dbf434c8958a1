//go:build faults

package httpapi

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// mutant is what a client sends, and the places where it pauses.
type mutant struct {
	request []byte
	cuts    []int
}

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
